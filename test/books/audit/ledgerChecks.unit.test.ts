/** Tests the checks of the pass over the ledger one by one, with entries as plain values. */
import { expect, test } from 'vitest';
import type { Facts } from '../../../src/books/audit/auditReads.store.js';
import { BalanceCheck } from '../../../src/books/audit/balanceCheck.js';
import { CommunalReplay } from '../../../src/books/audit/communalReplay.js';
import { CursorCheck } from '../../../src/books/audit/cursorCheck.js';
import { DayCheck } from '../../../src/books/audit/dayCheck.js';
import { IndexCheck } from '../../../src/books/audit/indexCheck.js';
import { CheckedEntry, type LedgerCheck } from '../../../src/books/audit/ledgerCheck.js';
import { OutcomeCheck } from '../../../src/books/audit/outcomeCheck.js';
import { payoutsOf } from '../../../src/books/audit/payouts.js';
import { RefundReplay } from '../../../src/books/audit/refundReplay.js';
import { Findings } from '../../../src/books/audit/report.js';
import { RequestCheck } from '../../../src/books/audit/requestCheck.js';
import { PlayerTable } from '../../../src/books/audit/tables.js';
import { BindingTimes } from '../../../src/domain/bindingTimes.js';
import { SpinIds } from '../../../src/domain/spinId.js';

const START_MS = Date.UTC(2026, 10, 1);
const DAY_MS = 86_400_000;
const idAt = (timeMs: number, cell = 1): bigint => (BigInt(timeMs) << 22n) | (BigInt(cell) << 14n);
const SPIN_IDS = new SpinIds(Buffer.alloc(16));

const FACTS = {
  partnerCells: new Map([[1, 1]]),
  formerCells: new Map(),
  sandboxPartners: new Set<number>(),
  games: [{ gameId: 3, partnerId: 1, cell: 1, parSheetId: 4 }],
  sheets: new Map([[4, { denomination: '0.25', multipliers: ['0', '2'] }]]),
  raffles: new Map(),
  tables: new Map(),
  cursors: new Map(),
  progress: new Map(),
  voids: [],
  rotations: [],
  gameDays: [],
  sandboxDays: [],
  openingDays: [],
  adjustmentDays: [],
  intents: new Map(),
  binding: new BindingTimes([{ sinceMs: 0, seconds: DAY_MS / 1000 }]),
  communal: { rules: [], pots: [], tellers: new Map(), fundings: [], days: [] },
  boundary: { fromId: 0n, games: new Map(), cells: new Map(), pots: [], days: [] },
} satisfies Partial<Facts>;

type Values = Partial<Omit<CheckedEntry, 'id' | 'take' | 'place'>> & { cell?: number };

function entryOf({ timeMs = START_MS, cell = 1, ...values }: Values): CheckedEntry {
  const id = idAt(timeMs, cell);
  const words = { high: Number(id >> 32n), low: Number(id & 0xffff_ffffn) };
  const usual = { kind: 'spin', kindCode: 1, partnerId: 1, playerId: 'ann', gameId: 3, wager: 250_000 };
  return Object.assign(new CheckedEntry(SPIN_IDS, false), usual, words, { timeMs }, values);
}

/** Gives entries to a check, and returns what the check reports, each as "problem: expected / found". */
async function found(make: (findings: Findings) => LedgerCheck, ...entries: Values[]): Promise<string[]> {
  const findings = new Findings(100);
  const check = make(findings);
  for (const entry of entries) check.row(entryOf(entry));
  await check.pause?.();
  check.end();
  return findings
    .checks()
    .flatMap(({ listed }) => listed.map((each) => `${each.problem}: ${each.expected} / ${each.found}`));
}

const OPENING: Values = { kind: 'opening', gameId: 0, number: 1, wager: 0, credit: 9, balance: 9 };
const { high: previousHigh, low: previousLow } = entryOf({});
const NEXT: Values = { previousHigh, previousLow, number: 2, wager: 2, credit: 3, balance: 10 };

test.each<[problem: string, spin: Values]>([
  ['the balance does not follow from the previous balance: 10 / 11', { balance: 11 }],
  [
    `the entry does not name the player's previous entry: ${idAt(START_MS)} / 0`,
    { previousLow: 0, previousHigh: 0 },
  ],
  ["the numbers of the player's entries are not consecutive: 2 / 3", { number: 3 }],
  ['no later entry may be one: any but 2 / 1', { kind: 'opening' }],
])('the check of balances reports: %s', async (problem, spin) => {
  const make = (findings: Findings) => new BalanceCheck(findings);
  expect(await found(make, OPENING, NEXT)).toEqual([]);
  expect(await found(make, OPENING, { ...NEXT, ...spin })).toEqual([expect.stringContaining(problem)]);
});

const OVERLAP = 'a void covers indices that are already dealt or voided: from 3 / from 2';
const COUNTER = 'game_progress.next_index is not the index after the last dealt or voided outcome: 1 / 2';

test.each<[what: string, indices: number[], voids: string, next: number, found: string[]]>([
  ['nothing in a gapless game', [0, 1, 4], '2-4', 5, []],
  ['a gap', [0, 2], '', 3, ['indices were neither dealt nor voided: 1 / 2']],
  ['an index that was dealt twice', [0, 0], '', 1, ['the index was already dealt: 1 / 0']],
  ['a dealt index of a void', [0, 2], '1-3', 3, ['the index was dealt although it is voided: 3 / 2']],
  ['two voids of the same index', [0], '1-3 2-4', 4, [OVERLAP]],
  ['an index beyond 48 bits', [2 ** 49], '', 0, [`the index is out of range: 0 / ${2 ** 49}`]],
  ['a wrong counter', [0], '', 2, [COUNTER]],
])('the check of indices reports %s', async (_, indices, text, next, expected) => {
  const voids = [...text.matchAll(/(\d+)-(\d+)/g)].map(([, from, to]) => {
    return { gameId: 3, fromIndex: Number(from), toIndex: Number(to), sealedTo: Number(to) };
  });
  const facts = { ...FACTS, voids, progress: new Map([[3, next]]) };
  const make = (findings: Findings) => new IndexCheck(facts, findings);
  expect(await found(make, ...indices.map((index) => ({ index })))).toEqual(expected);
});

test('the check of outcomes compares each entry with its sealed outcome, sheet and partner', async () => {
  const sealed = async (_: number, index: number) =>
    index > 1 ? [] : [{ fromIndex: index, outcomes: Buffer.from([1, 0, 0, 0]).subarray(2 * index) }];
  const make = (findings: Findings) => new OutcomeCheck(FACTS, findings, { nextOf: () => 2 }, { sealed });
  const paid = { code: 1, credit: 500_000, index: 0 };
  expect(await found(make, paid, { index: 1 })).toEqual([]);
  expect(await found(make, { ...paid, index: 1 })).toEqual([
    'the outcome differs from the sealed outcome: 0 / 1',
  ]);
  expect(await found(make, { index: 5 })).toEqual([
    'no sealed block has an outcome of this index: undefined / 0',
  ]);
  expect(await found(make, { ...paid, credit: 1, wager: 2 })).toEqual([
    'the credit differs from the payout of the PAR sheet or prize table: 500000 / 1',
    'the wager is neither the denomination of the sheet nor the ticket price: 250000 / 2',
  ]);
  expect(await found(make, { partnerId: 2, index: 1 })).toEqual([
    'the game belongs to another partner: 2 / 1',
  ]);
  expect(await found(make, { gameId: 9 })).toEqual(['the game belongs to another partner: 1 / undefined']);
  expect(await found(make, { kind: 'forcedSpin' })).toEqual([
    'a production partner has a forced outcome: a sandbox / 1',
  ]);
});

test('the check of days compares each day with its row, whatever the kind of its entries', async () => {
  const row = { gameId: 3, partnerId: 1, spins: 1n, wageredMicros: 250_000n, paidMicros: 0n };
  const facts = { ...FACTS, gameDays: ['2026-11-01', '2026-11-02'].map((day) => ({ ...row, day })) };
  const players = new PlayerTable();
  players.balance[players.slot(1, 'ann')] = -500_000;
  const make = (findings: Findings) => new DayCheck(facts, findings, players);
  const next = { timeMs: START_MS + DAY_MS };
  expect(await found(make, {}, next)).toEqual([]);
  expect(await found(make, {}, { kind: 'roundAction', wager: 5 }, next)).toEqual([
    'game_days.wagered_micros is not their sum in the ledger: 250005 / 250000',
  ]);
  expect(await found(make, {})).toEqual(['game_days has a day without entries in the ledger: 0 / 1']);
  expect(await found(make, {}, next, { ...next, kind: undefined, kindCode: 10 })).toEqual([
    'the kind of the entry is unknown: 1 to 4, or 6 to 9 / 10',
  ]);
  players.balance[0] = 7;
  expect(await found(make, {}, next)).toEqual([
    'the sum of all balances is not openings − wagers + payouts + adjustments + shares: -500000 / 7',
  ]);
});

test('the check of cursors knows the cell of each partner and the newest entry of each cell', async () => {
  const facts = { ...FACTS, cursors: new Map([[1, idAt(START_MS)]]) };
  const make = (findings: Findings) => new CursorCheck(facts, findings);
  expect(await found(make, {})).toEqual([]);
  expect(await found(make, {}, { cell: 2 })).toEqual([
    "the cell in the entry's id is not the cell of its partner: 1 / 2",
  ]);
  const later = START_MS + 1;
  expect(await found(make, { timeMs: later })).toEqual([
    `the ledger has entries above the cursor: ${idAt(later)} / ${idAt(START_MS)}`,
  ]);
});

const REFUNDED = { isDone: true, refundedTo: 0n, failures: new Set<bigint>() };
const RAFFLE = { text: '', poolSize: 1, ticketPrice: '0.25', values: [], counts: [], isClosed: true };
const refundsOf = (findings: Findings): RefundReplay =>
  new RefundReplay(
    { raffles: new Map([[3, { ...RAFFLE, refunds: REFUNDED }]]) },
    findings,
    new PlayerTable(),
    SPIN_IDS,
    { nextOf: () => 1 },
  );

test('a requestId belongs to one entry while it binds, and again to one afterwards', async () => {
  const make = (findings: Findings) => new RequestCheck(FACTS, findings, refundsOf(findings));
  const requestId = Buffer.from('r-1');
  const again = { requestId, timeMs: START_MS + DAY_MS - 1 };
  expect(await found(make, { requestId }, again)).toEqual([
    `an earlier entry already has the requestId: entry ${idAt(START_MS)} alone / this entry, too`,
  ]);
  expect(await found(make, { requestId }, { ...again, timeMs: START_MS + DAY_MS })).toEqual([]);
  expect(await found(make, { requestId }, { ...again, partnerId: 2 })).toEqual([]);
});

test('an adjustment needs one request of an operator, and a refund its ticket', async () => {
  const refund = `raffle-void:3:${SPIN_IDS.encodeOne(idAt(START_MS), 1)}`;
  const intents = new Map([[`1:${refund}`, { playerId: 'ann', amountMicros: 250_000 }]]);
  const make = (findings: Findings): LedgerCheck => {
    const refunds = refundsOf(findings);
    const requests = new RequestCheck({ ...FACTS, intents }, findings, refunds);
    const both = [refunds, requests];
    return {
      row: (entry) => both.forEach((check) => void check.row(entry)),
      end: () => both.forEach((check) => void check.end()),
    };
  };
  const made: Values = {
    ...{ kind: 'adjustment', kindCode: 3, gameId: 0, wager: 0, credit: 250_000 },
    ...{ requestId: Buffer.from(refund), timeMs: START_MS + 1 },
  };
  expect(await found(make, {}, made)).toEqual([]);
  expect(await found(make, {}, { ...made, requestId: undefined })).toEqual([
    'the adjustment has no recorded request of an operator: undefined / undefined',
    'a voided raffle is on record as refunded, but tickets lack a refund; the first one is listed: 0 / 1',
  ]);
  expect((await found(make, {}, made, { ...made, timeMs: START_MS + 2 })).slice(0, 2)).toEqual([
    'the adjustment was made twice: one entry / a second entry',
    'the refund names no ticket of a voided raffle, or a ticket that already has a refund: undefined / undefined',
  ]);
});

test('a communal progressive fires, pays and counts as its rules say', async () => {
  const rules = {
    ...{
      gameId: 3,
      version: 1,
      isEnabled: true,
      triggerInterval: 2n,
      triggerSplit: 10_000n,
      windowMinutes: 1,
    },
    ...{
      communitySize: 0,
      returnsToBudget: false,
      paysRemaining: false,
      resetsProgress: false,
      inForceFrom: 0n,
    },
    tiers: [{ level: 1, triggerAtSpins: 2n, amountMicros: 5n }],
  };
  const funding = { gameId: 3, cell: 1, noteId: 1n, amountMicros: 8n, budgetMicros: 8n };
  const pot = { gameId: 3, cell: 1, version: 1, progress: 2n, budgetMicros: 3n, notedTo: 0n };
  const day = { gameId: 3, day: '2026-11-01', partnerId: 1, shares: 1n, paidMicros: 5n };
  const communal = { ...FACTS.communal, rules: [rules], fundings: [funding], pots: [pot], days: [day] };
  const players = new PlayerTable();
  players.slot(1, 'ann');
  const make = (findings: Findings) => new CommunalReplay({ ...FACTS, communal }, findings, players);
  const event = { gameId: 3, version: 1, progress: 2n, tier: 1, paid: 5n, winners: 1, status: 'PAID' };
  const eventId = idAt(START_MS + 1);
  const share = { eventId, micros: 5n, gameId: 3, playerId: 'ann' };
  const paid: Values = {
    kind: 'communalShare',
    kindCode: 4,
    wager: 0,
    credit: 5,
    timeMs: START_MS + 2,
    share,
  };
  const fires: Values = { timeMs: START_MS + 1, event };
  expect(await found(make, {}, fires, paid)).toEqual([]);
  expect(await found(make, {}, { ...fires, event: undefined }, paid)).toEqual([
    'an event differs from the event that follows from the ledger: 3, 1, 2, 1, 5, 1, PAID / none',
  ]);
  expect(await found(make, {}, fires)).toContain(
    'a share of an event is missing in the ledger: undefined / undefined',
  );
});

test('computes payouts for the audit exactly from decimal text', () => {
  const { wager, paid } = payoutsOf('0.25', [
    '0',
    '5',
    '1e1',
    '0.000004',
    '2.5E-1',
    '0.0000001',
    '12345678.9',
  ]);
  expect([wager, ...paid]).toEqual([
    250_000,
    0,
    1_250_000,
    2_500_000,
    1,
    62_500,
    Number.NaN,
    3_086_419_725_000,
  ]);
  expect(payoutsOf('1e-6', ['3']).paid[0]).toBe(3);
  expect(payoutsOf('0.0000001', []).wager).toBe(Number.NaN);
  for (const text of ['', '.5', '1e', '0x1', '1.2.3', 'NaN', '1e999']) {
    expect(() => payoutsOf(text, [])).toThrow(RangeError);
  }
});
