/** Compares reports over intervals, liability and significant events (docs/reports.md) with the ledger. */
import { beforeAll, expect, test } from 'vitest';
import { completeTo } from '../../../src/domain/reportIntervals.js';
import { world } from '../../setup/world.js';
import { OPERATOR_KEY } from '../../support/client.js';
import { command } from '../../support/command.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const {
  service,
  ownSql: sql,
  partner,
} = world({}, { partner: { openingBalanceUsd: 7.25, largeWinThresholdUsd: 0.2 } });
let games: number[];
const today = () => new Date().toISOString().slice(0, 10);

const micros = (text: string): bigint => {
  const [, sign, whole, fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text)!;
  return BigInt(`${sign}${whole}${fraction.padEnd(6, '0')}`);
};
const csvOf = (text: string): Record<string, string>[] => {
  const [head, ...lines] = text.trimEnd().split('\r\n');
  const names = head!.split(',');
  return lines.map((line) => {
    const fields = [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].map((match) => match[1]!);
    return Object.fromEntries(names.map((name, place) => [name, fields[place]!.replace(/^"|"$/g, '')]));
  });
};
const asCsv = (base: 'operator' | 'partner', path: string) =>
  service.request('GET', `/api/${base}/v1${path}`, {
    key: base === 'operator' ? OPERATOR_KEY : partner.key,
    headers: { Accept: 'text/csv' },
  });

beforeAll(async () => {
  games = [
    await service.newGame(partner.key, parSheet('classic-3-reel')),
    await service.newGame(partner.key, parSheet('classic-3-reel')),
  ];
  for (let spins = 0; spins < 60; spins++) {
    const body = { gameId: games[0], playerId: `p${spins % 7}`, wagerUsd: 0.25, requestId: `r${spins}` };
    expect((await service.partner('POST', '/spin', partner.key, body)).status).toBe(200);
  }
  await service.operator('POST', `/partners/${partner.partnerId}/players/p3/adjustments`, {
    amountUsd: -50.5,
    reason: 'a test',
    requestId: 'a1',
  });
  await until(async () => {
    const [row] = await sql<{ spins: bigint }[]>`SELECT coalesce(sum(spins), 0) AS spins FROM game_days`;
    return row!.spins === 60n;
  }, 'all is booked');
});

interface Figures {
  spins: number;
  wageredUsd: number;
  paidOutUsd: number;
  ggrUsd: number;
}
interface Report {
  rows: (Figures & { gameConfigId: number })[];
  totals: Figures;
  noActivity: boolean;
  nextCursor: string | null;
}

test('reports sums for every interval that equal the CSV of spins and the settlement report, to the micro-USD', async () => {
  const spins = csvOf((await asCsv('partner', '/spins')).text);
  expect(spins).toHaveLength(60);
  const sum = (name: string) => spins.reduce((total, spin) => total + micros(spin[name]!), 0n);
  const day = today();
  for (const query of [
    'interval=DTD',
    'interval=MTD',
    'interval=YTD',
    'interval=LTD',
    `interval=RANGE&from=${day}&to=${day}`,
  ]) {
    for (const base of ['operator', 'partner'] as const) {
      const rows = csvOf((await asCsv(base, `/reports/games?${query}`)).text);
      expect(rows.map(({ gameConfigId }) => Number(gameConfigId))).toEqual(games);
      expect(rows[0]!.spins).toBe('60');
      expect(micros(rows[0]!.wageredUsd!)).toBe(sum('wagerUsd'));
      expect(micros(rows[0]!.paidOutUsd!)).toBe(sum('payoutUsd'));
      expect(micros(rows[0]!.ggrUsd!)).toBe(sum('wagerUsd') - sum('payoutUsd'));
      expect([rows[1]!.spins, rows[1]!.wageredUsd, rows[1]!.actualRtp]).toEqual(['0', '0', '']);
    }
  }
  const { body: report } = await service.operator<{ totalWageredUsd: number; totalPaidOutUsd: number }>(
    'POST',
    `/partners/${partner.partnerId}/settlements/${day}`,
  );
  const { body } = await service.operator<Report>('GET', '/reports/games?interval=DTD');
  expect([body.totals.wageredUsd, body.totals.paidOutUsd]).toEqual([
    report.totalWageredUsd,
    report.totalPaidOutUsd,
  ]);
  expect(body).toMatchObject({ noActivity: false, nextCursor: null, totals: { spins: 60 } });
});

test('reports an interval without play as zeros for each game, and as No Activity in CSV', async () => {
  const query = '/reports/games?interval=RANGE&from=2020-01-01&to=2020-01-31';
  const { body } = await service.operator<Report>('GET', query);
  expect(body).toMatchObject({ noActivity: true, totals: { spins: 0, wageredUsd: 0 } });
  expect(body.rows.map(({ gameConfigId }) => gameConfigId)).toEqual(games);
  expect((await asCsv('operator', query)).text).toBe('No Activity\r\n');
});

test('refuses a report for an invalid interval, game, partner or day, with the error code of that fault', async () => {
  const code = async (path: string) => {
    const { status, body } = await service.operator<{ errorCode: string }>('GET', `/reports/${path}`);
    return [status, body.errorCode];
  };
  expect(await code('games?interval=RANGE&from=2026-01-01')).toEqual([400, 'KS-4102']);
  expect(await code('games?interval=RANGE&from=2026-01-02&to=2026-01-01')).toEqual([400, 'KS-4105']);
  expect(await code('games?interval=RANGE&from=2026-02-30&to=2026-03-01')).toEqual([400, 'KS-4105']);
  expect(await code('games?interval=LTD&gameId=999999')).toEqual([404, 'KS-4201']);
  expect(await code('games?interval=LTD&partnerId=999999')).toEqual([404, 'KS-4209']);
  expect(await code(`liability?date=${today()}`)).toEqual([400, 'KS-4105']);
  const other = await service.newPartner();
  const strange = await service.partner<{ errorCode: string }>(
    'GET',
    `/reports/games?interval=LTD&gameId=${games[0]}`,
    other.key,
  );
  expect([strange.status, strange.body.errorCode]).toEqual([403, 'KS-4006']);
});

test('reports a liability that equals the sum of all statements, split into positive and negative balances', async () => {
  let [balance, positive, negative] = [0n, 0n, 0n];
  for (let player = 0; player < 7; player++) {
    const { text } = await service.operator(
      'GET',
      `/partners/${partner.partnerId}/players/p${player}/statement`,
    );
    const own = micros(/"balanceUsd":(-?[\d.]+)/.exec(text)![1]!);
    balance += own;
    if (own > 0n) positive += own;
    else negative += own;
  }
  expect(negative).toBeLessThan(0n);
  await until(async () => {
    const [row] = await sql<{ made: bigint }[]>`SELECT count(*) AS made FROM ledger WHERE kind = 3`;
    return row!.made === 1n;
  }, 'the adjustment is booked');
  const rows = csvOf((await asCsv('operator', '/reports/liability')).text);
  const own = rows.find(({ partnerId }) => Number(partnerId) === partner.partnerId)!;
  expect(own.players).toBe('7');
  expect([own.balancesUsd, own.positiveUsd, own.negativeUsd].map((text) => micros(text!))).toEqual([
    balance,
    positive,
    negative,
  ]);
  const { body: past } = await service.operator<{ noActivity: boolean }>(
    'GET',
    '/reports/liability?date=2020-01-01',
  );
  expect(past).toMatchObject({ noActivity: true, date: '2020-01-01' });
});

test('the CSV and the command show the game, player, spin and payout of a large win in columns', async () => {
  const wins = csvOf((await asCsv('operator', '/reports/events?type=spin.large_win')).text);
  expect(wins.length).toBeGreaterThan(0);
  for (const { data, ...columns } of wins) {
    const { gameId, playerId, spinId, payoutUsd } = JSON.parse(data!.replaceAll('""', '"'));
    expect(columns).toMatchObject({
      gameId: String(gameId),
      playerId,
      spinId,
      payoutUsd: String(payoutUsd),
      partnerId: String(partner.partnerId),
    });
  }
  const { out } = await command(service, 'report', 'events', '--type', 'spin.large_win');
  expect(out).toMatch(/^time .* partner +game +player +spin +payout USD$/m);
  const [win] = wins;
  expect(out).toMatch(
    new RegExp(` ${win!.partnerId} +${win!.gameId} +${win!.playerId} +${win!.spinId} +[\\d.]+$`, 'm'),
  );
  const adjusted = csvOf((await asCsv('operator', '/reports/events?type=player.adjust')).text);
  expect(adjusted[0]).toMatchObject({
    playerId: adjusted[0]!.subject!.split(':')[2],
    spinId: '',
    payoutUsd: '',
  });
});

test('reports audit log entries and large wins as events, each once over all pages, and filters them by field', async () => {
  interface Event {
    eventId: string;
    type: string;
    severity: string;
    partnerId: number | null;
  }
  const all: Event[] = [];
  let query = '';
  do {
    const { body } = await service.operator<{ events: Event[]; nextCursor: string | null }>(
      'GET',
      `/reports/events?limit=3${query}`,
    );
    all.push(...body.events);
    query = body.nextCursor === null ? '' : `&cursor=${body.nextCursor}`;
  } while (query !== '');
  const [row] = await sql<{ logged: bigint; wins: bigint }[]>`
    SELECT (SELECT count(*) FROM audit_log) AS logged,
      (SELECT count(*) FROM ledger WHERE kind = 1 AND credit_micros > 200000) AS wins`;
  expect(new Set(all.map(({ eventId }) => eventId)).size).toBe(all.length);
  expect(all.length).toBe(Number(row!.logged + row!.wins));
  const of = async (filter: string) =>
    (await service.operator<{ events: Event[] }>('GET', `/reports/events?limit=100&${filter}`)).body.events;
  expect((await of('type=spin.large_win')).length).toBe(Number(row!.wins));
  expect(row!.wins).toBeGreaterThan(0n);
  for (const severity of ['INFO', 'WARNING', 'CRITICAL'])
    expect((await of(`severity=${severity}`)).map(({ eventId }) => eventId).sort()).toEqual(
      all
        .filter((event) => event.severity === severity)
        .map(({ eventId }) => eventId)
        .sort(),
    );
  const own = await of(`partnerId=${partner.partnerId}`);
  expect(own.length).toBe(all.filter(({ partnerId }) => partnerId === partner.partnerId).length);
  expect(own.map(({ type }) => type)).toContain('player.adjust');
  expect((await of('from=2099-01-01T00:00:00Z')).length).toBe(0);
  expect((await asCsv('operator', '/reports/events?to=2020-01-01T00:00:00Z')).text).toBe('No Activity\r\n');
  expect(csvOf((await asCsv('operator', '/reports/events?type=key.issue')).text).length).toBe(2);
});

test('considers reports complete up to the day before the first day whose report is missing', async () => {
  const missingOf = (days: readonly string[]) => async (from: string, through: string) =>
    days.filter((day) => day >= from && day <= through);
  expect(await completeTo('2026-01-01', '2026-11-22', missingOf([]))).toBe('2026-11-21');
  expect(await completeTo('2026-01-01', '2026-11-22', missingOf(['2026-11-20', '2026-11-21']))).toBe(
    '2026-11-19',
  );
  expect(await completeTo('2026-11-22', '2026-11-22', missingOf([]))).toBe(null);
  expect(await completeTo('2026-11-01', '2026-11-22', missingOf(['2026-11-01']))).toBe(null);
});
