/**
 * Tests the proof verifier: what it proves, that a fault in one step is reported for that step alone, and
 * that it detects any flipped bit.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { checkpointText, tlogProofText } from '../../../src/domain/publicLog/checkpoints.js';
import { outcomeLeafData, shoeLeafData } from '../../../src/domain/publicLog/leaves.js';
import {
  entryCommitment,
  labelKeyHash,
  labelOf,
  privateRecord,
} from '../../../src/domain/publicLog/logEntries.js';
import { signatureLine, signerOf, vkeyOf } from '../../../src/domain/publicLog/notes.js';
import { tileOf } from '../../../src/domain/publicLog/tiles.js';
import { inclusionPath, leafHash, MemoryTree } from '../../../src/domain/publicLog/tree.js';
import { examine, type VerifyOptions, verify } from '../../../verifier/verify.mjs';
import { ROOT } from '../../support/root.js';
import { readVectors } from './proofVectors.js';

const { proof, log, witness, entry } = readVectors();
const TRUST = { logKeys: [log.vkey] };
const POLICY = `log ${log.vkey}\nwitness w ${witness.vkey}\nquorum w\n`;
const jcs = (value: Record<string, unknown>): string =>
  JSON.stringify(Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))));
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const turned = (text: string, at = 0, bit = 0): string =>
  text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ (1 << bit)) + text.slice(at + 1);

/** Builds a log of three records with the given entry at index 1, and a proof of it. */
function proofOf(
  leafData: Buffer,
  members: Record<string, unknown>,
  of: Record<string, unknown>,
  others: readonly Buffer[] = [],
) {
  const labelKey = Buffer.from(entry.labelKey, 'hex');
  const salt = Buffer.alloc(32, 9);
  const block = new MemoryTree([leafData, ...others].map(leafHash));
  const path = inclusionPath(0, block.size, block.read).map((hash) => hash.toString('hex'));
  const text = jcs({
    version: 1,
    gameId: 7,
    number: 5,
    labelKeyHash: labelKeyHash(labelKey).toString('hex'),
    count: block.size,
    root: block.root().toString('hex'),
    late: false,
    sealedAt: '2026-01-01T00:00:00.000Z',
    ...members,
  });
  const label = labelOf(labelKey, 5);
  const record = privateRecord(label, entryCommitment(salt, text));
  const tree = new MemoryTree([Buffer.of(1), record, Buffer.of(2)].map(leafHash));
  const signer = signerOf(log.origin, 'log', Buffer.from(log.seed, 'hex'));
  const checkpoint = checkpointText({ origin: log.origin, size: 3, root: tree.root() });
  const tlogProof = tlogProofText({
    index: 1,
    path: inclusionPath(1, 3, tree.read),
    checkpoint: `${checkpoint}\n${signatureLine(checkpoint, signer)}`,
  });
  const proven = { format: 'spindle proof v1', gameId: 7, path, entry: text, logIndex: 1, tlogProof };
  return { ...proven, salt: salt.toString('hex'), label: label.toString('hex'), ...of };
}

/**
 * Returns each text and number within a value, each with a function that returns the value with that part
 * replaced.
 */
function textsOf(value: unknown): { text: string; set: (to: string) => unknown }[] {
  if (typeof value === 'string') return [{ text: value, set: (to) => to }];
  if (typeof value === 'number') return [{ text: String(value), set: Number }];
  const isList = Array.isArray(value);
  return Object.entries(value as object).flatMap(([name, part]) =>
    textsOf(part).map(({ text, set }) => ({
      text,
      set: (to: string) =>
        isList ? (value as unknown[]).with(Number(name), set(to)) : { ...(value as object), [name]: set(to) },
    })),
  );
}

/**
 * Builds a proof for each kind of game from blocks of five outcomes, and the options for its verification.
 */
function generatedProofs(): [string, Record<string, unknown>, VerifyOptions][] {
  const { shoe } = readVectors();
  const others = [1, 2, 3, 4].map((byte) => Buffer.alloc(54, byte));
  const nonce = Buffer.alloc(32, 0xa5);
  const shown = (index: number, code: number) => ({ outcome: { index, code, nonce: nonce.toString('hex') } });
  const slot = proofOf(
    outcomeLeafData({ gameId: 7, index: 4103 }, 17, nonce),
    { type: 'block', fromIndex: 4103, mathHash: sha256('sheet'), secretHash: sha256('secret') },
    { spinId: 's', loggedAt: '2026-01-01T00:00:00.000Z', ...shown(4103, 17) },
    others,
  );
  const ticket = proofOf(
    outcomeLeafData({ gameId: 7, index: 0 }, 0, nonce),
    { type: 'pool', fromIndex: 0, mathHash: sha256('table'), commitment: sha256('pool') },
    { spinId: 't', loggedAt: '2026-01-01T00:00:00.000Z', ...shown(0, 0) },
    others,
  );
  const dealt = proofOf(
    shoeLeafData({ gameId: 9, index: 17 }, Buffer.from(shoe.commitment, 'hex')),
    { type: 'shoes', gameId: 9, fromIndex: 17, mathHash: shoe.rulesHash, commitment: sha256('shoes') },
    { roundId: 'r', gameId: 9, shoe: { index: 17, commitment: shoe.commitment, seed: shoe.seed } },
    others,
  );
  return [
    ['the published proof', proof, { policy: POLICY }],
    ['a slot spin', slot, TRUST],
    ['a ticket', ticket, TRUST],
    ['a shoe', dealt, TRUST],
  ];
}

describe('the proof verifier', () => {
  test('the verifier accepts the published proof by the key of the log, and by a policy and a label key', async () => {
    expect(await verify(proof, TRUST)).toEqual([]);
    expect(await verify(proof, { policy: POLICY, labelKey: entry.labelKey })).toEqual([]);
  });

  test('the verifier finds in kept checkpoints since when the log has contained a record', async () => {
    const tiles = new Map([['tile/0/000.p/3', Buffer.from(log.tile, 'hex')]]);
    const readTile = async (path: string) => tiles.get(path)!;
    expect(await examine(proof, { ...TRUST, seen: [log.checkpoint2, log.checkpoint3], readTile })).toEqual({
      faults: [],
      since: 2,
    });
    expect((await examine(proof, TRUST)).since).toBeUndefined();
    expect(await verify(proof, { ...TRUST, seen: [log.checkpoint2] })).toEqual([
      'seen: checkpoint 1 that you kept: the comparison needs tiles of the log. Give the address of the log',
    ]);
    const signer = signerOf(log.origin, 'log', Buffer.from(log.seed, 'hex'));
    const other = checkpointText({ origin: log.origin, size: 2, root: Buffer.alloc(32) });
    const seen = [`${other}\n${signatureLine(other, signer)}`];
    expect((await verify(proof, { ...TRUST, seen, readTile }))[0]).toContain('has shown two histories');
  });

  test('the verifier compares checkpoints of a large log by its tiles', async () => {
    const tree = new MemoryTree(Array.from({ length: 66_000 }, (_, at) => leafHash(Buffer.from(`${at}`))));
    const signer = signerOf(log.origin, 'log', Buffer.from(log.seed, 'hex'));
    const noteOf = (size: number): string => {
      const text = checkpointText({ origin: log.origin, size, root: tree.root(size) });
      return `${text}\n${signatureLine(text, signer)}`;
    };
    const path = inclusionPath(1, 66_000, tree.read);
    const tlogProof = tlogProofText({ index: 1, path, checkpoint: noteOf(66_000) });
    const readTile = async (place: string) => {
      const [, level, rest, width] = /^tile\/(\d)\/([x\d/]+)(?:\.p\/(\d+))?$/.exec(place)!;
      return tileOf(Number(level), Number(rest!.replace(/[x/]/g, '')), Number(width ?? 256), tree.read);
    };
    const seen = [2, 255, 256, 257, 65_536, 65_999].map(noteOf);
    const { faults, since } = await examine({ ...proof, tlogProof }, { ...TRUST, seen, readTile });
    // The record belongs to another log, but the histories agree.
    expect(faults).toEqual(["logged: the record is not at index 1 of the checkpoint's tree"]);
    expect(since).toBe(2);
  });

  const other = signerOf(log.origin, 'log', Buffer.alloc(32, 1));
  const stranger = signerOf('other.example/log', 'log', Buffer.alloc(32, 1));
  const changed = (part: object) => ({ ...proof, ...part });
  const outcome = (part: object) => changed({ outcome: { ...proof.outcome, ...part } });
  const cases: [string, unknown, VerifyOptions, string[]][] = [
    ['no key', proof, {}, ['trust: no key of a log is given. Give a key, or a policy that names one']],
    ['another log', proof, { logKeys: [vkeyOf(stranger)] }, ['checkpoint: you gave no key of']],
    [
      'another key',
      proof,
      { logKeys: [vkeyOf(other)] },
      ['checkpoint: none of the given keys of spindle.example/log signed'],
    ],
    [
      'no quorum',
      changed({ tlogProof: proof.tlogProof.split('— witness')[0] }),
      { policy: POLICY },
      ["checkpoint: the witnesses that signed the checkpoint do not satisfy the policy's quorum"],
    ],
    [
      'another place',
      changed({ logIndex: 2 }),
      TRUST,
      ['logged: logIndex is 2, but tlogProof has the index 1'],
    ],
    ['another salt', changed({ salt: '00'.repeat(32) }), TRUST, ['logged: the record is not at index 1']],
    [
      'another game',
      changed({ gameId: 8 }),
      TRUST,
      ['entry: the entry belongs to game 7', 'outcome: the outcome is not'],
    ],
    ['an index outside', outcome({ index: 2051 }), TRUST, ['entry: the entry has', 'outcome: a tree of']],
    ['another code', outcome({ code: 1 }), TRUST, ['outcome: the outcome is not in the logged block']],
    ['a longer path', changed({ path: [...proof.path, proof.path[0]] }), TRUST, ['outcome: the path has 3']],
    [
      'another sheet',
      proof,
      { ...TRUST, sheet: { symbols: [], tiers: [], combinations: [] } },
      ['math: the hash of the sheet differs'],
    ],
    [
      'another kind of mathematics',
      proof,
      { ...TRUST, rules: {} },
      ['math: an entry of type block needs the sheet'],
    ],
    ["another spin's answer", proof, { ...TRUST, spin: { spinId: 'x' } }, ['answer: the spin is x']],
    [
      'another label key',
      proof,
      { ...TRUST, labelKey: '00'.repeat(32) },
      ['label: the label key does not belong to the game'],
    ],
    [
      'uppercase',
      outcome({ nonce: proof.outcome.nonce!.toUpperCase() }),
      TRUST,
      ['outcome: outcome.nonce must be'],
    ],
    [
      'an entry spelled otherwise',
      changed({ entry: ` ${proof.entry}` }),
      TRUST,
      ['entry: entry is not in its canonical form', 'logged:'],
    ],
    [
      'base64 with other spare bits',
      changed({ tlogProof: proof.tlogProof.replace('J8o=', 'J8p=') }),
      TRUST,
      ['logged: a hash of tlogProof must be canonical base64'],
    ],
    ['another format', changed({ format: 'spindle proof v2' }), TRUST, ['proof: the format is']],
    ['null', null, TRUST, ['proof: the proof must be a JSON object']],
    ['a policy with a wrong line', proof, { policy: 'log x\n' }, ['trust: line 1 of the policy']],
  ];

  test.each(cases)('the verifier reports the fault of a proof with %s', async (_, broken, options, lines) => {
    const faults = await verify(broken, options);
    expect(faults.map((fault, at) => fault.slice(0, lines[at]?.length))).toEqual(lines);
  });

  test.each(generatedProofs())(
    'the verifier detects a flipped bit in any field of %s',
    async (_, generated, options) => {
      expect(await verify(generated, options)).toEqual([]);
      const passed: string[] = [];
      for (const [name, value] of Object.entries(generated)) {
        if (['spinId', 'roundId', 'loggedAt'].includes(name)) continue;
        for (const { text, set } of textsOf(value)) {
          for (let at = 0; at < text.length; at++) {
            // The tests flip the lowest bit of each character, and the bit between upper and lower case.
            for (const bit of [0, 5]) {
              const to = set(turned(text, at, bit));
              if (isDeepStrictEqual(to, value)) continue;
              const faults = await verify({ ...generated, [name]: to }, options);
              if (faults.length === 0) passed.push(`${name} at ${at}, bit ${bit}`);
            }
          }
        }
      }
      expect(passed).toEqual([]);
    },
  );

  test("the verifier ignores a wrong cosignature only if the quorum doesn't need it", async () => {
    const at = proof.tlogProof.indexOf('— witness') + 60;
    const changed = { ...proof, tlogProof: turned(proof.tlogProof, at) };
    expect(await verify(changed, TRUST)).toEqual([]);
    expect((await verify(changed, { policy: POLICY }))[0]).toMatch(/^checkpoint: /);
  });

  test('the verifier is one file of at most 1,000 lines that imports nothing', () => {
    const text = readFileSync(join(ROOT, 'verifier', 'verify.mjs'), 'utf8');
    expect(text.split('\n').length).toBeLessThanOrEqual(1000);
    expect(text).not.toMatch(/^\s*import\b|\bimport\(|\brequire\(|\bfetch\(/m);
  });
});

describe('checks of the mathematics by the verifier', () => {
  let sheet: Record<string, unknown> & { combinations: Record<string, unknown>[]; denominationUsd: number };
  let proven: ReturnType<typeof proofOf>;
  let spin: { spinId: string; outcome: object; presentation: object };

  beforeAll(() => {
    sheet = JSON.parse(readFileSync(join(ROOT, 'test', 'par-sheets', 'classic-3-reel.json'), 'utf8'));
    const nonce = Buffer.alloc(32, 3);
    const names =
      'gameTitle manufacturer numReels virtualStopsPerReel certifiedRtp denominationUsd symbols tiers combinations';
    const sorted = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.map(sorted)
        : value !== null && typeof value === 'object'
          ? Object.fromEntries(
              Object.entries(value)
                .sort(([a], [b]) => (a < b ? -1 : 1))
                .map(([k, v]) => [k, sorted(v)]),
            )
          : value;
    const cut = Object.fromEntries(names.split(' ').map((name) => [name, sheet[name]]));
    const place = { gameId: 7, index: 40 };
    const code = sheet.combinations.findIndex(({ payMultiplier }) => payMultiplier === 2);
    const combination = sheet.combinations[code]!;
    proven = proofOf(
      outcomeLeafData(place, code, nonce),
      { type: 'block', fromIndex: 40, mathHash: sha256(JSON.stringify(sorted(cut))) },
      { spinId: 's', outcome: { index: 40, code, nonce: nonce.toString('hex') } },
    );
    spin = {
      spinId: 's',
      outcome: { prizeTier: combination.tierId, payoutUsd: 0.5 },
      presentation: { comboString: combination.comboString },
    };
  });

  test('the verifier checks a slot outcome against its PAR sheet and the response to the spin', async () => {
    const options = { ...TRUST, sheet: { ...sheet, note: 'no part of it' }, spin };
    expect(await verify(proven, options)).toEqual([]);
    const shows = async (part: object) => verify(proven, { ...options, spin: { ...spin, ...part } });
    expect(await shows({ outcome: { ...spin.outcome, payoutUsd: 0.500001 } })).toEqual([
      'answer: the response pays 0.500001 USD, but the outcome pays 500000 micro-USD',
    ]);
    expect((await shows({ outcome: { payoutUsd: 0.5, prizeTier: 6 } }))[0]).toMatch(/^answer: .*tier 6/);
    expect((await shows({ presentation: { comboString: '7|7|7' } }))[0]).toMatch(/^answer: .*«7\|7\|7»/);
    expect(await verify(proven, { ...TRUST, sheet: { ...sheet, certifiedRtp: 0.9 } })).toEqual([
      'math: the hash of the sheet differs from the log',
    ]);
  });

  test('the verifier checks a blackjack shoe against its seed and rules', async () => {
    const { shoe } = readVectors();
    const of = (seed: string | null) => ({
      ...proofOf(
        shoeLeafData({ gameId: 9, index: 17 }, Buffer.from(shoe.commitment, 'hex')),
        { type: 'shoes', gameId: 9, fromIndex: 17, mathHash: shoe.rulesHash, commitment: '00'.repeat(32) },
        { roundId: 'r', gameId: 9, shoe: { index: 17, commitment: shoe.commitment, seed } },
      ),
    });
    const round = { roundId: 'r', shoe: { index: 17, commitment: shoe.commitment } };
    expect(await verify(of(shoe.seed), { ...TRUST, spin: round })).toEqual([]);
    expect(await verify(of(null), TRUST)).toEqual([]);
    expect(await verify(of(turned(shoe.seed)), TRUST)).toEqual([
      "seed: the seed does not match the shoe's commitment",
    ]);
    expect(await verify(of(null), { ...TRUST, spin: { ...round, roundId: 'q' } })).toEqual([
      'answer: the round is q, but the proof has r',
    ]);
  });

  test('the verifier checks a raffle ticket against its prize table', async () => {
    const table = {
      ticketPriceUsd: 1.5,
      poolSize: 10,
      prizes: [{ prizeName: 'Pen', prizeTier: 2, valueUsd: 0.75, count: 3 }],
    };
    const text =
      '{"poolSize":10,"prizes":[{"count":3,"prizeName":"Pen","prizeTier":2,"valueUsd":0.75}],"ticketPriceUsd":1.5}';
    const nonce = Buffer.alloc(32, 4);
    const ticket = proofOf(
      outcomeLeafData({ gameId: 7, index: 4 }, 1, nonce),
      { type: 'pool', fromIndex: 4, mathHash: sha256(text) },
      { spinId: 't', outcome: { index: 4, code: 1, nonce: nonce.toString('hex') } },
    );
    const shown = {
      spinId: 't',
      outcome: { prizeTier: 2, payoutUsd: 0.75 },
      presentation: { prizeName: 'Pen' },
    };
    expect(await verify(ticket, { ...TRUST, table, spin: shown })).toEqual([]);
    expect((await verify(ticket, { ...TRUST, table: { ...table, poolSize: 11 } }))[0]).toMatch(/^math: /);
  });
});
