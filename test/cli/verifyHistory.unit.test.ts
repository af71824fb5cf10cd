/**
 * Tests `spindle verify --history`: the tampering that it finds in a log, and that it continues where it
 * stopped.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { UsageError } from '../../src/cli/command.js';
import { type Given, verifyHistory } from '../../src/cli/verifyHistory.js';
import { readVectors } from '../domain/publicLog/proofVectors.js';
import { printedBy } from '../support/printed.js';
import { GAME_ID, LOGGED_SHEET, ServedLog } from '../support/servedLog.js';

const folder = mkdtempSync(join(tmpdir(), 'spindle-history-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const keyFile = file('key', 'ks_test_1');
const sheet = file('sheet.json', JSON.stringify(LOGGED_SHEET));

const served: ServedLog[] = [];
afterEach(async () => {
  for (const log of served.splice(0)) await log.close();
});

/** Serves a log of four blocks, 300 records of other games and a rotation, to which a fault is then added. */
async function logWith(plant: (log: ServedLog) => void = () => {}): Promise<ServedLog> {
  const log = new ServedLog();
  log.block(0, 512, true);
  log.fill(300);
  log.block(512, 512, true);
  log.reports.push(null, log.checkpoint());
  log.block(1024, 512, false);
  log.void(1030, 506);
  plant(log);
  log.fill(3);
  await log.serve();
  served.push(log);
  return log;
}

async function run(log: ServedLog, given: Partial<Given> = {}): Promise<{ status: number; lines: string[] }> {
  const about = { game: GAME_ID, url: log.base, keyFile, logKey: log.vkey, sheet };
  const { status, out } = await printedBy(() => verifyHistory(undefined, { ...about, ...given }));
  return {
    status,
    lines: out
      .trimEnd()
      .split('\n')
      .map((line) => line.trim()),
  };
}

test('spindle verify --history proves a whole history, with and without the PAR sheet, and retries temporary refusals', async () => {
  const log = await logWith();
  log.refusals = 4;
  const { status, lines } = await run(log);
  expect([status, ...lines]).toEqual([
    0,
    `PROVEN: game 7, ${log.records.length} records in the log`,
    '4 entries; indices 0 to 1535; voided 1030 to 1535',
    expect.stringMatching(/^2 blocks revealed, 1 not revealed yet; p = 0\.\d+$/),
    '1 settlement reports with a checkpoint; 0 spins checked',
  ]);
  const bare = await run(log, { sheet: undefined } as never);
  expect([bare.status, bare.lines[2]]).toEqual([
    0,
    '2 blocks revealed, 1 not revealed yet; p = - (no sheet, or too few outcomes)',
  ]);
});

test('spindle verify --history reads every page of a game with many blocks', async () => {
  const log = new ServedLog();
  for (let i = 0; i < 201; i++) log.block(4 * i, 4, i % 2 === 0);
  await log.serve();
  served.push(log);
  const { status, lines } = await run(log);
  expect([status, ...lines.slice(1, 3)]).toEqual([
    0,
    '201 entries; indices 0 to 803; voided none',
    expect.stringMatching(/^101 blocks revealed, 100 not revealed yet/),
  ]);
});

test('spindle verify --history reads only new records if it stored its position', async () => {
  const log = await logWith();
  const state = join(folder, 'state');
  expect((await run(log, { state })).status).toBe(0);
  const later = log.block(1536, 64, true);
  const { reveal } = later;
  Object.assign(later, { status: 'DEALING', reveal: null });
  log.asked.length = 0;
  const second = await run(log, { state });
  expect([second.status, second.lines[2]]).toEqual([
    0,
    expect.stringMatching(/^2 blocks revealed, 2 not revealed yet/),
  ]);
  expect(log.asked.filter((path) => path.includes('/entries/'))).toEqual([
    expect.stringMatching(/^\/log\/tile\/entries\/001\.p\//),
  ]);
  expect(log.asked.filter((path) => /blocks\/\d/.test(path))).toEqual([expect.stringMatching(/blocks\/4$/)]);
  expect(JSON.parse(readFileSync(state, 'utf8')).size).toBe(log.records.length);
  Object.assign(later, { status: 'EXHAUSTED', reveal });
  const third = await run(log, { state });
  expect([third.status, third.lines[2]]).toEqual([
    0,
    expect.stringMatching(/^3 blocks revealed, 1 not revealed yet/),
  ]);
  log.records.splice(5, 1, Buffer.alloc(49, 1));
  expect((await run(log, { state })).lines[1]).toMatch(/^log: .* two histories$/);
});

const spoiled: [name: string, plant: (log: ServedLog) => void, fault: RegExp][] = [
  [
    'a block that is logged twice under its number',
    (log) => void log.log({ ...log.opened[1]!.entry, root: '0'.repeat(64) } as never),
    /^number 1 is logged twice, at 302 and 305$/,
  ],
  [
    'a number that is left out',
    (log) => {
      log.opened.push({} as never);
      log.block(1536, 64, false);
      log.opened.splice(4, 1);
    },
    /^number 4 is not logged$/,
  ],
  [
    'an entry that the service does not show',
    (log) => {
      log.block(1536, 64, false);
      log.opened.pop();
    },
    /^number 4 is logged at 305, but the service does not show it$/,
  ],
  [
    'a gap in the indices',
    (log) => void log.block(1600, 64, false),
    /^the indices 1536 to 1599 are missing in the log$/,
  ],
  [
    'indices that are logged twice',
    (log) => void log.block(1020, 64, false),
    /^number 4: the indices 1020 to 1083 overlap with indices of an earlier block$/,
  ],
  [
    'an altered reveal',
    (log) => {
      const { reveal } = log.opened[1]!;
      reveal!.seed = `${reveal!.seed!.slice(0, -1)}${reveal!.seed!.endsWith('0') ? '1' : '0'}`;
    },
    /^number 1: the revealed seed and nonce do not match the commitment$/,
  ],
  [
    'outcomes that are not those of the seed',
    (log) => {
      const { entry } = log.opened[1]!;
      (entry as { root: string }).root = '1'.repeat(64);
      const again = log.log(entry);
      [log.records[302], again.logIndex] = [log.records.pop()!, 302];
    },
    /^number 1: the revealed outcomes do not lead to the logged root$/,
  ],
  [
    'an entry that is not what was logged',
    (log) => void Object.assign(log.opened[2]!.entry, { count: 511 }),
    /^number 2: the entry differs from the log$/,
  ],
  [
    'an entry of another game',
    (log) => {
      const again = log.log({ ...log.opened[2]!.entry, gameId: 8, number: 4 } as never);
      log.opened.push(again);
    },
    /^number 4: its entry belongs to game 8$/,
  ],
  [
    'an entry of another number',
    (log) => {
      const again = log.log({ ...log.opened[2]!.entry, number: 9 }, 4);
      log.opened.push({ ...again, number: 4 });
    },
    /^number 4: its entry contains the number 9$/,
  ],
  [
    'an answer about another block',
    (log) => void log.answers.set('/api/partner/v1/games/7/blocks/2', { number: 3 }),
    /^number 2: the service returned another number$/,
  ],
  [
    'an entry of another label key',
    (log) => {
      const again = log.log({ ...log.opened[2]!.entry, labelKeyHash: '0'.repeat(64), number: 4 } as never);
      log.opened.push(again);
    },
    /^number 4: its entry contains another label key$/,
  ],
  [
    'a block of indices that were voided earlier',
    (log) => {
      log.void(1536, 64);
      log.block(1590, 64, false);
    },
    /^number 5: the indices 1590 to 1653 overlap with indices that were voided earlier$/,
  ],
  [
    'a block that is elsewhere than the service says',
    (log) => void log.opened[2]!.logIndex--,
    /^number 2 is logged at 303, but the service says 302$/,
  ],
  [
    "a report's checkpoint of another tree",
    (log) => void log.reports.push(log.checkpoint([...log.records.slice(0, 299), Buffer.alloc(49, 5)])),
    /^report 2026-01-03: the checkpoint of the report is wrong: log: .* two histories$/,
  ],
];
test.each(spoiled)('spindle verify --history finds %s', async (_, plant, fault) => {
  const { status, lines } = await run(await logWith(plant));
  expect([status, lines.find((line) => fault.test(line)) ?? lines]).toEqual([
    1,
    expect.stringMatching(fault),
  ]);
});

test('spindle verify --history accepts missing numbers only if a log entry declares them lost', async () => {
  const restored = (log: ServedLog): void => {
    log.lose(log.block(1536, 64, false));
    log.void(1536, 2 ** 32);
  };
  const named = await logWith((log) => {
    restored(log);
    log.lost(4, 4);
    log.block(1536 + 2 ** 32, 64, true);
  });
  const state = join(folder, 'restored');
  for (let again = 0; again < 2; again++) expect(await run(named, { state })).toMatchObject({ status: 0 });
  const silent = await logWith(restored);
  expect((await run(silent)).lines[1]).toBe("number 4 can't be opened, and no entry declares it lost");
  const hidden = await logWith((log) => {
    restored(log);
    log.lost(4, 4);
    log.opened.splice(4, 1);
  });
  expect((await run(hidden)).status).toBe(0);
});

test('spindle verify --history reports a malformed answer of the service', async () => {
  const log = await logWith();
  log.answers.set('/api/partner/v1/settlements', {});
  await expect(run(log)).rejects.toThrow('does not contain the list «reports»');
  log.answers.set('/api/partner/v1/games/7/blocks', { labelKey: 'x' });
  await expect(run(log)).rejects.toThrow('label key');
  log.answers.set('/api/partner/v1/games/7/blocks', { labelKey: null });
  await expect(run(log)).rejects.toThrow('The public log has no records of game 7');
});

test('spindle verify --history finds a log that has shrunk, and a checkpoint without a known signature', async () => {
  const log = await logWith();
  const state = join(folder, 'smaller');
  expect((await run(log, { state })).status).toBe(0);
  log.records.splice(-2, 2);
  expect((await run(log, { state })).lines[1]).toMatch(/^log: it has 306 records, but it had 308/);
  const other = new ServedLog();
  const { lines } = await run(log, { logKey: other.vkey.replace('history.', 'other.') }).catch((error) => ({
    lines: ['', String(error)],
  }));
  expect(lines[1]).toMatch(/the key id of other\.example\/log does not match its key/);
  const witness = 'witness.example/w1+20324abe+BCmsuuFBvMrwsi4alNNNC8c2HlJtC/4SyJeUvJMilm3X';
  const policy = file('policy', `log ${log.vkey}\nwitness one ${witness}\nquorum one\n`);
  const few = await run(log, { logKey: undefined, policy } as never);
  expect([few.status, few.lines[1]]).toEqual([1, expect.stringMatching(/^checkpoint: the witnesses/)]);
});

test('spindle verify --history finds spins with invalid proofs and spins without proofs', async () => {
  const log = await logWith();
  const spin = { spinId: 'a', createdAt: '2026-01-01T00:00:00.000Z', outcomeIndex: 3 };
  log.answers.set('/api/partner/v1/spins', { spins: [spin] });
  expect((await run(log, { sample: 1 })).lines[1]).toMatch(/^spin a: .* KS-4215$/);
  const { proof } = readVectors();
  log.answers.set('/api/partner/v1/spins/a/proof', { ...proof, gameId: 8 });
  const { status, lines } = await run(log, { sample: 1 });
  expect(status).toBe(1);
  expect(lines).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^spin a: checkpoint: you gave no key of «spindle\.example\/log»/),
      'spin a: the service returned the proof of another spin or round',
      'spin a: the service returned a proof of another game',
      'spin a: the log index of the proof differs from the position of the entry in the log',
      'spin a: the proof has another index; the history has the index 3',
    ]),
  );
});

test("spindle verify --history finds records that don't match the checkpoint, and outcomes that don't fit the PAR sheet", async () => {
  const log = await logWith();
  const { checkpoint } = log;
  const signed = log.checkpoint();
  log.checkpoint = () => signed;
  log.records[4] = Buffer.alloc(49, 1);
  expect((await run(log)).lines[1]).toMatch(/^log: its records do not give the root/);
  log.checkpoint = checkpoint;
  // The PAR sheet is the logged sheet, but it can't have produced these counts of outcomes.
  const state = join(folder, 'biased');
  const clean = await logWith();
  await run(clean, { state });
  const kept = JSON.parse(readFileSync(state, 'utf8'));
  const [hash] = Object.keys(kept.counts);
  kept.counts[hash!] = kept.counts[hash!].map(() => 60);
  writeFileSync(state, JSON.stringify(kept));
  expect((await run(clean, { state })).lines[1]).toMatch(/^reveals: .* \(p = \d/);
});

test('spindle verify --history names the missing argument on wrong usage', async () => {
  const log = await logWith();
  const wrong: [Partial<Record<keyof Given, unknown>>, string][] = [
    [{ game: undefined }, '--game'],
    [{ keyFile: undefined }, '--key-file'],
    [{ url: undefined }, '--url'],
    [{ url: 'nowhere' }, 'address'],
    [{ logKey: undefined }, '--log-key or --policy'],
    [{ logKey: 'x' }, 'is not a key'],
    [{ sample: 10_001 }, '--sample'],
    [{ state: keyFile }, 'Cannot read'],
    [{ labelKeyFile: keyFile }, 'label key'],
  ];
  for (const [given, names] of wrong) {
    await expect(run(log, given as never), names).rejects.toThrow(UsageError);
    await expect(run(log, given as never)).rejects.toThrow(names);
  }
});
