/**
 * Tests that the verifier, which has its own code, draws the same outcomes from revealed blocks as the
 * service.
 */
import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { DEFAULT_RULES } from '../../../src/domain/games/blackjackRules.js';
import type { ParSheet } from '../../../src/domain/par.js';
import { secretHash } from '../../../src/domain/publicLog/leaves.js';
import { entryText } from '../../../src/domain/publicLog/logEntries.js';
import { checkReveal, distributionOf, drawSlots } from '../../../verifier/verify.mjs';
import { drawBlock } from '../../../workers/drawBlock.js';
import { makeBlock } from '../../../workers/makeBlock.js';
import { makeShoes } from '../../../workers/makeShoes.js';
import { sealRaffle } from '../../../workers/sealRaffle.js';
import { ROOT } from '../../support/root.js';
import { parSheet } from '../../support/sheets.js';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const SHEETS = readdirSync(join(ROOT, 'test', 'par-sheets')).map((file) => basename(file, '.json'));
const sorted = (value: object): string =>
  JSON.stringify(Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))));
const GAME = { gameId: 0xffff_fffe, fromIndex: 2 ** 40 };

interface Sealed {
  readonly seed: Uint8Array;
  readonly nonce: Uint8Array;
  readonly tree: Uint8Array;
  readonly commitment: Uint8Array;
  readonly mathHash: Uint8Array;
  readonly outcomes: Uint8Array;
}

/** Builds the response of `GET /games/{id}/blocks/{number}` for a block. */
function answerOf(type: 'block' | 'pool' | 'shoes', count: number, sealed: Sealed) {
  const { seed, nonce, tree, commitment, mathHash, outcomes } = sealed;
  const isShoes = type === 'shoes';
  const entry = {
    type,
    version: 1,
    number: 0,
    ...GAME,
    count,
    labelKeyHash: '0'.repeat(64),
    late: false,
    root: hex(tree.subarray(0, 32)),
    mathHash: hex(mathHash),
    sealedAt: '2026-01-01T00:00:00.000Z',
    ...(isShoes ? {} : { secretHash: hex(secretHash(Buffer.from(nonce), Buffer.from(seed))) }),
    ...(type === 'block' ? {} : { commitment: hex(commitment) }),
  };
  const reveal = isShoes
    ? { seeds: Buffer.from(seed).toString('base64') }
    : { seed: hex(seed), nonce: hex(nonce) };
  const text = entryText(entry as never);
  return { number: 0, entry: text, reveal, outcomes: Buffer.from(outcomes).toString('base64') };
}

describe('redrawing of revealed blocks by the verifier', () => {
  test.each(SHEETS)(
    'the verifier draws the same outcomes of the PAR sheet %s as the service',
    async (name) => {
      const sheet = parSheet(name) as unknown as ParSheet;
      const ends = distributionOf(sheet);
      for (const byte of [1, 2]) {
        const seed = Buffer.alloc(32, byte);
        expect(await drawSlots(ends, seed, 20_000)).toEqual(drawBlock(sheet, seed, 20_000));
      }
    },
  );

  test('the verifier draws the same outcomes as the service from a sheet on which many draws need more bits', async () => {
    const [like] = (parSheet('classic-3-reel') as unknown as ParSheet).combinations;
    const combinations = Array.from({ length: 3000 }, (_, at) => ({
      ...like!,
      tierId: at % 7,
      payMultiplier: at,
      comboProbability: 1 / (at + 1.5),
    }));
    const sheet = { ...(parSheet('classic-3-reel') as unknown as ParSheet), combinations };
    const seed = Buffer.alloc(32, 3);
    const drawn = await drawSlots(distributionOf(sheet), seed, 20_000);
    expect(drawn).toEqual(drawBlock(sheet, seed, 20_000));
  });

  test.each([1, 2, 3, 255, 256, 257])(
    'the verifier redraws a revealed block of %i outcomes, and reports each wrong part',
    async (count) => {
      const sheet = parSheet('classic-3-reel') as unknown as ParSheet;
      const block = makeBlock({ sheet, ...GAME, count });
      const answer = answerOf('block', count, block);
      const drawn = await checkReveal(answer, { sheet, ends: distributionOf(sheet) });
      expect([drawn.faults, Buffer.from(drawn.codes!.buffer).equals(block.outcomes)]).toEqual([[], true]);
      expect((await checkReveal(answer)).faults).toEqual([]);
      const other = { ...answer, outcomes: Buffer.from(block.outcomes).fill(9, 0, 2).toString('base64') };
      expect((await checkReveal(other)).faults).toEqual([
        'number 0: the revealed outcomes do not lead to the logged root',
      ]);
      const fewer = { ...answer, outcomes: '' };
      expect((await checkReveal(fewer)).faults).toEqual([`number 0: 0 of ${count} outcomes are revealed`]);
      const wrong = await checkReveal(answer, { sheet: { ...sheet, certifiedRtp: 1 }, ends: [1n] });
      expect(wrong.faults).toEqual(['number 0: the hash of the sheet differs from the log']);
      expect((await checkReveal({ ...answer, reveal: null })).faults).toEqual([
        'number 0: the block is not revealed',
      ]);
    },
  );

  test('the verifier redraws a revealed raffle pool and its shuffle, and reports each wrong part', async () => {
    const prizes = [
      { prizeName: 'Car', prizeTier: 5, valueUsd: 100, count: 1 },
      { prizeName: 'Mug', prizeTier: 2, valueUsd: 1.5, count: 40 },
    ];
    const table = { ticketPriceUsd: 1, poolSize: 300, prizes };
    const { gameId } = GAME;
    const pool = sealRaffle({ gameId, table });
    const answer = answerOf('pool', 300, pool);
    // A pool always begins at index 0.
    const text = sorted({ ...JSON.parse(answer.entry), fromIndex: 0 });
    for (const options of [{ table }, {}])
      expect((await checkReveal({ ...answer, entry: text }, options)).faults).toEqual([]);
    const other = { ...table, prizes: [prizes[1], prizes[0]] };
    expect((await checkReveal({ ...answer, entry: text }, { table: other })).faults).toEqual([
      'number 0: the hash of the table differs from the log',
    ]);
    const commitment = '0'.repeat(64);
    const entry = sorted({ ...JSON.parse(text), commitment });
    expect((await checkReveal({ ...answer, entry }, { table })).faults).toEqual([
      'number 0: the revealed pool does not match the commitment',
    ]);
  });

  test('the verifier redraws revealed blackjack shoes, and reports each wrong part', async () => {
    const shoes = makeShoes({ ...GAME, rules: DEFAULT_RULES, count: 5 });
    const answer = answerOf('shoes', 5, shoes);
    expect((await checkReveal(answer)).faults).toEqual([]);
    const turned = Buffer.from(shoes.seed);
    turned[70]! ^= 1;
    const other = { ...answer, reveal: { seeds: turned.toString('base64') } };
    expect((await checkReveal(other)).faults).toEqual([
      'number 0: the revealed seeds do not lead to the logged root',
    ]);
    const entry = sorted({ ...JSON.parse(answer.entry), commitment: '0'.repeat(64) });
    expect((await checkReveal({ ...answer, entry })).faults).toEqual([
      'number 0: the revealed seeds do not match the commitment',
    ]);
    const four = { ...answer, reveal: { seeds: turned.subarray(0, 128).toString('base64') } };
    expect((await checkReveal(four)).faults).toEqual(['number 0: 4 of 5 seeds are revealed']);
  });
});
