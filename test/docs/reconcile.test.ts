/**
 * Runs the programs of docs/reconcile.md as printed: with a correct book, and with books that differ. The
 * service has spins, raffle tickets, a round, a communal bonus, an adjustment and a voided raffle.
 */
import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { transform } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import type { TestPartner } from '../support/client.js';
import { RULES, setUp } from '../support/communal.js';
import { docCode } from '../support/docBlocks.js';
import { deal, newTable, playOut } from '../support/rounds.js';
import { startService } from '../support/service.js';
import { dayAt, microsOf } from '../support/settlement.js';
import { parSheet } from '../support/sheets.js';
import type { TestStores } from '../support/stores.js';
import { until } from '../support/wait.js';

const run = promisify(execFile);
const HAS_PYTHON = spawnSync('python3', ['--version']).status === 0;
if (!HAS_PYTHON)
  process.stderr.write('The Python program of docs/reconcile.md is not run: python3 is not installed\n');

const PRICE = 0.5;
const OPENING = 100;
/** Every tenth spin fires the bonus. */
const BONUS = {
  ...RULES,
  tiers: [{ tierLevel: 1, tierName: 'Mini', triggerAtSpins: 10, amountUsd: '1.00' }],
};
const PLAYERS = ['alice', 'bob', 'Ünï "🎰"'];

/** A line of the partner's book. */
interface Line {
  kind: string;
  id: string;
  at: string;
  playerId: string;
  wagerUsd: number;
  payoutUsd: number;
  balanceUsd?: number;
}
interface Spun {
  outcome: { payoutUsd: number };
  balance: { balanceUsd: number };
  communityBonus: { eventId: string; yourShareUsd: string } | null;
}

let stores: TestStores;
let service: Awaited<ReturnType<typeof startService>>;
let partner: TestPartner;
let folder: string;
let day: string;
let book: Line[];
const programs: Record<string, readonly string[]> = {};

async function spin(gameId: number, playerId: string, id: string, wagerUsd: number): Promise<void> {
  const { status, text, body } = await service.spin<Spun>(partner.key, {
    gameId,
    playerId,
    wagerUsd,
    requestId: id,
  });
  expect(status, text).toBe(200);
  const at = new Date().toISOString();
  const { payoutUsd } = body.outcome;
  book.push({ kind: 'spin', id, at, playerId, wagerUsd, payoutUsd, balanceUsd: body.balance.balanceUsd });
  const share = body.communityBonus;
  if (share !== null)
    book.push({
      kind: 'bonus',
      id: share.eventId,
      at,
      playerId,
      wagerUsd: 0,
      payoutUsd: Number(share.yourShareUsd),
    });
}

/** Plays a day of a new partner, and books it as a partner would. */
async function playDay(): Promise<void> {
  book = [];
  day = dayAt(Date.now());
  partner = await service.newPartner({ openingBalanceUsd: OPENING });
  const { partnerId, key } = partner;
  const slot = await service.newGame(key, parSheet('classic-3-reel'));
  const communal = await service.newGame(key, parSheet('classic-3-reel'));
  await setUp(service, communal, BONUS);
  const table = await newTable(service, partnerId);
  const raffle = await service.api.newRaffle(partnerId, `r-${partnerId}`, {
    ticketPriceUsd: PRICE,
    poolSize: 10,
    prizes: [{ prizeName: 'Mug', prizeTier: 1, valueUsd: 2, count: 5 }],
  });
  for (let i = 0; i < 12; i++) await spin(slot, PLAYERS[i % 3]!, `slot-${i}`, 0.25);
  for (let i = 0; i < 16; i++) await spin(communal, PLAYERS[i % 3]!, `communal-${i}`, 0.25);
  for (let i = 0; i < 3; i++) await spin(raffle, PLAYERS[i]!, `ticket-${i}`, PRICE);
  const dealt = await deal(service, key, table, 'alice', 'round-1');
  expect(dealt.status, dealt.text).toBe(201);
  const round = await playOut(service, key, dealt.body);
  book.push({
    kind: 'round',
    id: 'round-1',
    at: new Date().toISOString(),
    playerId: 'alice',
    wagerUsd: round.wageredUsd,
    payoutUsd: round.payoutUsd!,
    balanceUsd: round.balance.balanceUsd,
  });
  const adjusted = await service.operator('POST', `/partners/${partnerId}/players/bob/adjustments`, {
    amountUsd: -5.5,
    reason: 'a complaint',
    requestId: 'adjust-1',
  });
  expect(adjusted.status).toBe(200);
  await until(async () => {
    const { body } = await service.operator('POST', `/raffles/${raffle}/void`, { reason: 'cancelled' });
    return body.isDone === true;
  }, 'each ticket is refunded');
  const events = await service.partner<{
    events: {
      event: string;
      createdAt: string;
      data: { entryId: string; playerId: string; amountUsd: number; balanceAfterUsd: number };
    }[];
  }>('GET', '/events?limit=100', key);
  for (const { event, createdAt, data } of events.body.events)
    if (event === 'player.adjusted')
      book.push({
        kind: 'adjustment',
        id: data.entryId,
        at: createdAt,
        playerId: data.playerId,
        wagerUsd: 0,
        payoutUsd: data.amountUsd,
        balanceUsd: data.balanceAfterUsd,
      });
  const report = await service.operator('POST', `/partners/${partnerId}/settlements/${day}`);
  expect(report.status, report.text).toBe(201);
}

beforeAll(async () => {
  stores = await freshStores();
  service = await startService(stores);
  folder = await mkdtemp(join(tmpdir(), 'spindle-reconcile-'));
  // The report covers one day, so the partner plays again if midnight passes meanwhile.
  do await playDay();
  while (dayAt(Date.now()) !== day);
  const [typescript] = docCode('docs/reconcile.md', 'ts');
  const { code } = await transform(typescript!, { loader: 'ts', format: 'esm', target: 'es2022' });
  await writeFile(join(folder, 'reconcile.mjs'), code);
  programs.TypeScript = [process.execPath, join(folder, 'reconcile.mjs')];
  const [python] = docCode('docs/reconcile.md', 'python');
  await writeFile(join(folder, 'reconcile.py'), python!);
  programs.Python = ['python3', join(folder, 'reconcile.py')];
}, 180_000);

afterAll(async () => {
  await service?.stop();
  await stores?.drop();
  await rm(folder, { recursive: true });
});

/** Runs a program with a book. Returns its exit status and the lines that it printed. */
async function reconcile(language: string, lines: readonly Line[]): Promise<[number, string[]]> {
  const file = join(folder, `${language}.jsonl`);
  await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const [program, ...args] = programs[language]!;
  const env = { PATH: process.env.PATH, SPINDLE_URL: service.base, SPINDLE_KEY: partner.key };
  const result = await run(program!, [...args, file, day], { env }).then(
    ({ stdout }) => ({ code: 0, stdout, stderr: '' }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
  expect(result.stderr).toBe('');
  return [result.code, result.stdout.trimEnd().split('\n')];
}

const keyOf = ({ kind, id, playerId }: Line): string => `${kind} ${id} of ${playerId}`;
const indexOf = (fits: (line: Line) => boolean): number => {
  const index = book.findIndex(fits);
  expect(index).toBeGreaterThanOrEqual(0);
  return index;
};
const without = (fits: (line: Line) => boolean): [Line[], Line] => {
  const index = indexOf(fits);
  return [book.toSpliced(index, 1), book[index]!];
};
const changed = (fits: (line: Line) => boolean, change: Partial<Line>): [Line[], Line] => {
  const index = indexOf(fits);
  return [book.with(index, { ...book[index]!, ...change }), book[index]!];
};
const isBet = ({ id }: Line): boolean => id === 'slot-7';

describe.each(['TypeScript', 'Python'])('the %s program of docs/reconcile.md', (language) => {
  const check = HAS_PYTHON || language !== 'Python' ? test : test.skip;
  const found = async (lines: readonly Line[]): Promise<string[]> => {
    const [code, printed] = await reconcile(language, lines);
    expect(code).toBe(1);
    expect(printed.at(-1)).toContain(`, ${printed.length - 1} differences`);
    return printed.slice(0, -1);
  };

  check('finds no difference in a correct book', async () => {
    for (const kind of ['spin', 'bonus', 'round', 'adjustment'])
      expect(book.some((line) => line.kind === kind)).toBe(true);
    const [code, printed] = await reconcile(language, book);
    expect(printed).toHaveLength(1);
    expect(printed[0]).toMatch(new RegExp(`^${day}, report PENDING: \\d+ movements, 0 differences$`));
    expect(code).toBe(0);
  });

  check('finds a missing bet', async () => {
    const [lines, line] = without(isBet);
    const [difference, ...more] = await found(lines);
    expect(difference).toContain(`${keyOf(line)}: not in your book, wager 0.250000`);
    expect(more).toEqual([]);
  });

  check('finds a wrong payout, a wrong wager and a wrong balance', async () => {
    const [payouts, line] = changed(isBet, { payoutUsd: 99.000001 });
    expect(await found(payouts)).toEqual([
      `${keyOf(line)}: payout 99.000001 in your book, ${line.payoutUsd.toFixed(6)} at Spindle`,
    ]);
    const [wagers] = changed(isBet, { wagerUsd: 0.3 });
    expect(await found(wagers)).toEqual([`${keyOf(line)}: wager 0.300000 in your book, 0.250000 at Spindle`]);
    const [balances] = changed(isBet, { balanceUsd: 1 });
    expect(await found(balances)).toEqual([
      `${keyOf(line)}: balance 1.000000 in your book, ${line.balanceUsd!.toFixed(6)} at Spindle`,
    ]);
  });

  check('finds a bet that was booked twice', async () => {
    const line = book[indexOf(isBet)]!;
    expect(await found([...book, line])).toEqual([`${keyOf(line)}: more than once in your book`]);
  });

  check('finds a bet that Spindle does not know', async () => {
    const line = { ...book[indexOf(isBet)]!, id: 'never-sent' };
    expect(await found([...book, line])).toEqual([`${keyOf(line)}: unknown to Spindle`]);
  });

  check('finds an adjustment, a refund, a bonus and a round that the book does not have', async () => {
    for (const fits of [
      ({ kind, payoutUsd }: Line) => kind === 'adjustment' && payoutUsd === -5.5,
      ({ kind, payoutUsd }: Line) => kind === 'adjustment' && payoutUsd === PRICE,
      ({ kind }: Line) => kind === 'bonus',
      ({ kind }: Line) => kind === 'round',
    ]) {
      const [lines, line] = without(fits);
      expect(await found(lines)).toEqual([
        `${keyOf(line)}: not in your book, wager ${line.wagerUsd.toFixed(6)}, payout ${line.payoutUsd.toFixed(6)}`,
      ]);
    }
  });
});

test('the movements of docs/reconcile.md add up to the balance of each player', async () => {
  for (const playerId of PLAYERS) {
    const query = new URLSearchParams({ playerId });
    const { body } = await service.partner('GET', `/players/_?${query}`, partner.key);
    const ofPlayer = book.filter((line) => line.playerId === playerId);
    const untold = await service.partner<{
      bonuses: { amountUsd: string; toldBySpinId: string | null; isTriggerPlayer: boolean }[];
    }>('GET', `/players/_/community-bonuses?${query}`, partner.key);
    const shares = untold.body.bonuses.filter((each) => !each.isTriggerPlayer && each.toldBySpinId === null);
    const sum = ofPlayer.reduce(
      (total, { wagerUsd, payoutUsd }) => total + microsOf(payoutUsd) - microsOf(wagerUsd),
      microsOf(OPENING),
    );
    expect(shares.reduce((total, { amountUsd }) => total + microsOf(amountUsd), sum)).toBe(
      microsOf(body.balanceUsd),
    );
  }
});
