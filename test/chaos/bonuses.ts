/**
 * Checks the communal progressives of a chaos run. It compares the notifications of the players with the
 * ledger, which it reads without the service.
 */
import postgres from 'postgres';
import { bodyOf } from '../../src/api/client/apiClients.js';
import { eventIdOf } from '../../src/api/communal/views.js';
import { usdToMicros } from '../../src/domain/money.js';
import type { SpinIds } from '../../src/domain/spinId.js';
import type { Api } from '../support/api.js';
import type { OwnStores } from '../support/stores.js';
import { atRest } from './atRest.js';
import { spinIdsOf } from './books.js';
import type { Clients } from './clients.js';
import { nameOf, type SpinRecord, type Target } from './records.js';

type Sql = postgres.Sql<{ bigint: bigint }>;

const INTERVAL = 10;
const TIERS = [20, 100, 500];
const AMOUNTS_USD = ['1.000003', '10.00', '50.000001'];
const COMMUNITY_SIZE = 10;
const ANNOUNCED_WITHIN_MS = 60_000;
const SPIN_WITHIN_MS = 10_000;

/**
 * Gives a game a communal progressive that fires often.
 * @returns the spin counts of the tiers
 */
export async function addPot(
  { operator }: Api,
  gameId: number,
  runsOut: boolean,
): Promise<readonly number[]> {
  const params = { path: { id: gameId } };
  const tiers = TIERS.map((triggerAtSpins, i) => ({
    tierLevel: i + 1,
    tierName: `Tier ${i + 1}`,
    triggerAtSpins,
    amountUsd: AMOUNTS_USD[i]!,
  }));
  const rules = {
    enabled: true,
    triggerInterval: INTERVAL,
    triggerSplitPct: 33.33,
    communitySplitPct: 66.67,
    tiers,
    windowMinutes: 60,
    communitySize: COMMUNITY_SIZE,
    onShortBudget: 'PAY_REMAINING' as const,
    resetProgress: false,
  };
  await bodyOf(operator.PUT('/games/{id}/communal', { params, body: rules }));
  const funding = { amountUsd: runsOut ? '500.00' : '1000000.00', reason: 'chaos', requestId: 'chaos' };
  await bodyOf(operator.POST('/games/{id}/communal/funding', { params, body: funding }));
  return TIERS;
}

/**
 * Spins for each player who must still be notified of shares, on games without a communal progressive, until
 * every player is notified.
 * @returns the number of shares of which no player was notified in time
 */
export async function tellAll(
  stores: OwnStores,
  clients: Clients,
  targets: readonly Target[],
): Promise<number> {
  const sql = connect(stores.postgres.url);
  const deadline = performance.now() + ANNOUNCED_WITHIN_MS;
  try {
    for (;;) {
      await atRest(stores);
      const waiting = await sql<{ partner_id: number; player_id: string; shares: number }[]>`
        SELECT partner_id, player_id, count(*)::int AS shares FROM communal_shares WHERE told_by IS NULL GROUP BY 1, 2`;
      const left = waiting.reduce((sum, { shares }) => sum + shares, 0);
      if (left === 0 || performance.now() > deadline) return left;
      await Promise.all(
        waiting.map(async ({ partner_id, player_id, shares }) => {
          const target = targets.find(({ partnerId }) => partnerId === partner_id)!;
          const game = target.games.find(({ tiers }) => tiers === undefined)!;
          for (let i = 0; i < shares; i++) await clients.spinOnce(target, game, player_id, SPIN_WITHIN_MS);
        }),
      );
    }
  } finally {
    await sql.end();
  }
}

/**
 * Checks all bonuses by the notifications of the players. The ledger must be at rest, and every share must
 * have been notified.
 */
export async function judgeBonuses(
  url: string,
  targets: readonly Target[],
  records: readonly SpinRecord[],
): Promise<{ readonly wrong: string[]; readonly summary: string }> {
  const sql = connect(url);
  try {
    const wrong = [...(await wrongSums(sql)), ...(await wrongEvents(sql, targets))];
    const { told, wrong: untrue } = await wrongTellings(sql, await spinIdsOf(sql), records);
    const [sums] = await sql<{ events: number; shares: number; skipped: number }[]>`
      SELECT count(*)::int AS events, count(*) FILTER (WHERE status <> 'PAID')::int AS skipped,
             (SELECT count(*)::int FROM communal_shares) AS shares FROM communal_events`;
    const { events, skipped, shares } = sums!;
    const summary = `${events} communal events (${skipped} without budget) with ${shares} shares, ${told} of them told by an answer`;
    return { wrong: [...wrong, ...untrue], summary };
  } finally {
    await sql.end();
  }
}

/** Compares the shares with the ledger entries, the events and the budgets. */
async function wrongSums(sql: Sql): Promise<string[]> {
  const entries = await sql<{ entry_id: bigint }[]>`
    SELECT entry_id FROM communal_shares AS s FULL JOIN (SELECT * FROM ledger WHERE kind = 4) AS l USING (entry_id)
    WHERE s.amount_micros IS DISTINCT FROM l.credit_micros OR s.player_id IS DISTINCT FROM l.player_id
       OR s.partner_id IS DISTINCT FROM l.partner_id OR s.game_id IS DISTINCT FROM l.game_id`;
  const events = await sql<{ event_id: bigint }[]>`
    SELECT event_id FROM communal_events LEFT JOIN (
      SELECT event_id, sum(amount_micros) AS paid, count(*) AS shares, count(*) FILTER (WHERE is_trigger) AS triggers,
             count(DISTINCT player_id) AS players FROM communal_shares GROUP BY 1) AS s USING (event_id)
    WHERE paid_micros <> coalesce(s.paid, 0) OR winners <> coalesce(s.shares, 0) OR s.players <> s.shares OR s.triggers <> 1
       OR (status = 'PAID') <> (s.paid IS NOT NULL)`;
  const pots = await sql<{ game_id: number }[]>`
    SELECT game_id FROM communal_pots AS pot
    WHERE progress <> (SELECT count(*) FROM ledger AS l WHERE l.kind = 1 AND l.game_id = pot.game_id)
       OR budget_micros <> (SELECT sum(amount_micros) FROM communal_fundings AS f WHERE f.game_id = pot.game_id AND note_id IS NOT NULL)
            - (SELECT coalesce(sum(amount_micros), 0) FROM communal_shares AS s WHERE s.game_id = pot.game_id)`;
  return [
    ...entries.map((row) => `share ${row.entry_id} and its ledger entry differ`),
    ...events.map((row) => `the shares of event ${row.event_id} are not what it paid`),
    ...pots.map((row) => `progress or budget of game ${row.game_id} is not that of its spins and shares`),
  ];
}

/** Checks that each counter value fired its event exactly once. */
async function wrongEvents(sql: Sql, targets: readonly Target[]): Promise<string[]> {
  const wrong: string[] = [];
  for (const { gameId, tiers } of targets.flatMap(({ games }) => games)) {
    if (tiers === undefined) continue;
    const fired = await sql<{ progress: bigint; tier_level: number }[]>`
      SELECT progress, tier_level FROM communal_events WHERE game_id = ${gameId} ORDER BY event_id`;
    const [pot] = await sql<
      { progress: bigint }[]
    >`SELECT progress FROM communal_pots WHERE game_id = ${gameId}`;
    const is = fired.map(({ progress, tier_level }) => `${progress}/${tier_level}`);
    const should: string[] = [];
    for (let count = tiers[0]!; count <= Number(pot!.progress); count += tiers[0]!)
      should.push(`${count}/${tiers.findLastIndex((spins) => count % spins === 0) + 1}`);
    if (is.join() !== should.join())
      wrong.push(`game ${gameId} fired ${is.length} events by ${pot!.progress} spins, and not those due`);
  }
  return wrong;
}

/**
 * Checks that each answered spin notified its player of the shares that the ledger has for it, and that every
 * share was notified.
 */
async function wrongTellings(
  sql: Sql,
  spinIds: SpinIds,
  records: readonly SpinRecord[],
): Promise<{ readonly told: number; readonly wrong: string[] }> {
  const shares = await sql<
    {
      event_id: bigint;
      partner_id: number;
      amount_micros: bigint;
      paid_micros: bigint;
      is_trigger: boolean;
      told_by: bigint | null;
    }[]
  >`SELECT s.event_id, s.partner_id, s.amount_micros, e.paid_micros, s.is_trigger, s.told_by
    FROM communal_shares AS s JOIN communal_events AS e USING (event_id)`;
  const byTeller = new Map<bigint, string>();
  const wrong: string[] = [];
  for (const share of shares) {
    const { event_id, partner_id, amount_micros, paid_micros, is_trigger, told_by } = share;
    if (told_by === null) wrong.push(`a share of event ${event_id} is never told`);
    else
      byTeller.set(
        told_by,
        `${eventIdOf(spinIds, event_id, partner_id)} ${amount_micros} ${paid_micros} ${is_trigger}`,
      );
  }
  let told = 0;
  for (const record of records) {
    const { dealt } = record;
    if (dealt?.told === undefined) continue;
    const { told: bonus } = dealt;
    const booked = byTeller.get(spinIds.decode(dealt.spinId)!.entryId);
    const heard =
      bonus === null
        ? undefined
        : `${bonus.eventId} ${microsOf(bonus.yourShareUsd)} ${microsOf(bonus.totalAmountUsd)} ${bonus.isTriggerPlayer}`;
    if (heard !== undefined) told++;
    if (heard !== booked) wrong.push(`${nameOf(record)} told ${heard}, booked is ${booked}`);
  }
  return { told, wrong };
}

const microsOf = (usd: string): number | undefined => usdToMicros(Number(usd));
const connect = (url: string): Sql =>
  postgres(url, { max: 1, onnotice: () => {}, connect_timeout: 10, types: { bigint: postgres.BigInt } });
