/**
 * Compares the ledger with the model's history: it must have exactly one row for each spin with the spin's
 * amounts, and totals that are their sums.
 */
import type postgres from 'postgres';
import { until } from '../support/wait.js';
import { Violation } from './changing.js';
import { usd } from './decimal.js';
import type { PartnerModel } from './model.js';
import type { State } from './state.js';

interface Row {
  readonly entry_id: bigint;
  readonly previous_id: bigint;
  readonly wager_micros: bigint;
  readonly credit_micros: bigint;
  readonly balance_micros: bigint;
  readonly outcome_index: bigint;
  readonly game_id: number;
  readonly entry_number: number;
  readonly kind: number;
  readonly player_id: string;
  readonly request_id: string | null;
}

type Sql = postgres.Sql<{ bigint: bigint }>;

/** The player who sends the last spin of a scenario, and no other spin. */
export const LAST_PLAYER = 'the last';

const SPIN = 1;
const OPENING = 2;
const SHARE = 4;
const FORCED = 9;
const KINDS = { spin: SPIN, share: SHARE, forced: FORCED };

/**
 * Waits until every acknowledged spin is committed and compares the ledger with the model.
 * @throws Violation if the ledger matches no possible state of the model
 */
export async function judgeLedger(sql: Sql, model: PartnerModel): Promise<void> {
  const { partnerId } = model;
  // Entries are committed in order, and the last player's last spin is the partner's newest entry.
  const spins = Math.max(...model.states.map((state) => spinsOf(state, LAST_PLAYER)));
  await until(async () => {
    const [booked] = await sql`
      SELECT count(*)::int AS spins FROM ledger
      WHERE partner_id = ${partnerId} AND player_id = ${LAST_PLAYER} AND kind = ${SPIN}`;
    return booked!.spins >= spins;
  }, `the last spin of partner ${partnerId} is booked`);
  const [rows, gameDays, openingDays] = await sql.begin('ISOLATION LEVEL REPEATABLE READ', async (tx) => [
    await tx<Row[]>`SELECT * FROM ledger WHERE partner_id = ${partnerId} ORDER BY entry_id`,
    await tx<{ game_id: number; spins: bigint; wagered: bigint; paid: bigint }[]>`
      SELECT game_id, sum(spins)::bigint AS spins, sum(wagered_micros)::bigint AS wagered, sum(paid_micros)::bigint AS paid
      FROM game_days WHERE partner_id = ${partnerId} GROUP BY game_id`,
    await tx<{ players: bigint; opened: bigint }[]>`
      SELECT coalesce(sum(players), 0)::bigint AS players, coalesce(sum(opened_micros), 0)::bigint AS opened
      FROM opening_days WHERE partner_id = ${partnerId}`,
  ]);
  const faults = model.states.map((state) => faultOf(model, state, rows));
  if (!faults.includes(undefined)) throw new Violation(`The ledger of partner ${partnerId}: ${faults[0]}`);

  const line = (...values: unknown[]) => values.join(' ');
  const dealt = rows.filter((row) => row.kind === SPIN);
  const openings = rows.filter((row) => row.kind === OPENING);
  const wanted = [...new Set(dealt.map((row) => row.game_id))].map((gameId) => {
    const own = dealt.filter((row) => row.game_id === gameId);
    own.forEach((row, index) => {
      if (row.outcome_index !== BigInt(index)) {
        throw new Violation(`Game ${gameId} dealt outcome ${row.outcome_index} where ${index} was next`);
      }
    });
    return line(gameId, own.length, sum(own, 'wager_micros'), sum(own, 'credit_micros'));
  });
  compare(
    'game_days',
    gameDays.map((day) => line(day.game_id, day.spins, day.wagered, day.paid)),
    wanted,
  );
  const forced = rows.filter((row) => row.kind === FORCED);
  if (forced.some((row) => row.outcome_index !== 0n)) throw new Violation('A forced spin has an index');
  const sandboxDays = await sql`
    SELECT game_id, sum(spins) AS spins, sum(wagered_micros) AS wagered, sum(paid_micros) AS paid FROM sandbox_days
    WHERE partner_id = ${partnerId} GROUP BY game_id`;
  compare(
    'sandbox_days',
    sandboxDays.map((day) => line(day.game_id, day.spins, day.wagered, day.paid)),
    [...new Set(forced.map((row) => row.game_id))].map((gameId) => {
      const own = forced.filter((row) => row.game_id === gameId);
      return line(gameId, own.length, sum(own, 'wager_micros'), sum(own, 'credit_micros'));
    }),
  );
  const shares = rows.filter((row) => row.kind === SHARE);
  const potDays = await sql`
    SELECT game_id, sum(shares) AS shares, sum(paid_micros) AS paid FROM communal_days
    WHERE partner_id = ${partnerId} GROUP BY game_id`;
  compare(
    'communal_days',
    potDays.map((day) => line(day.game_id, day.shares, day.paid)),
    [...new Set(shares.map((row) => row.game_id))].map((gameId) => {
      const own = shares.filter((row) => row.game_id === gameId);
      return line(gameId, own.length, sum(own, 'credit_micros'));
    }),
  );
  compare(
    'opening_days',
    openingDays.map((day) => line(day.players, day.opened)),
    [line(openings.length, sum(openings, 'credit_micros'))],
  );
}

const spinsOf = (state: State, playerId: string): number =>
  (state.players.get(playerId)?.entries ?? []).filter((entry) => typeof entry !== 'object').length;

/** Describes the difference between the ledger rows and a state. Undefined if there is none. */
function faultOf(model: PartnerModel, state: State, rows: readonly Row[]): string | undefined {
  const byPlayer = new Map<string, Row[]>();
  for (const row of rows) byPlayer.set(row.player_id, [...(byPlayer.get(row.player_id) ?? []), row]);
  for (const playerId of byPlayer.keys()) {
    if (!state.players.has(playerId)) return `«${playerId}» never spun, and is in it`;
  }
  for (const [playerId, { opening }] of state.players) {
    const [first, ...spins] = byPlayer.get(playerId) ?? [];
    if (first === undefined) return `«${playerId}» is missing`;
    if (first.kind !== OPENING || first.credit_micros !== opening || first.balance_micros !== opening) {
      return `«${playerId}» does not open with ${usd(opening)}`;
    }
    const expected = model.rowsOf(state, playerId);
    if (spins.length !== expected.length) {
      return `«${playerId}» has ${spins.length} entries in it, and ${expected.length} follow`;
    }
    let before = first;
    for (const [place, row] of spins.entries()) {
      const { kind, gameId, requestId, wager, credit, balance } = expected[place]!;
      const found = [
        row.kind,
        row.game_id,
        row.request_id,
        row.wager_micros,
        row.credit_micros,
        row.balance_micros,
      ];
      const wanted = [KINDS[kind], gameId, requestId, wager, credit, balance];
      if (found.join() !== wanted.join())
        return `entry ${place} of «${playerId}» is ${found}, and should be ${wanted}`;
      if (row.previous_id !== before.entry_id || row.entry_number !== before.entry_number + 1) {
        return `entry ${row.entry_id} of «${playerId}» does not follow ${before.entry_id}`;
      }
      before = row;
    }
    const disorder = model.orderFault(state, playerId);
    if (disorder !== undefined) return `«${playerId}»: ${disorder}`;
  }
  return undefined;
}

const sum = (rows: readonly Row[], name: 'wager_micros' | 'credit_micros'): bigint =>
  rows.reduce((total, row) => total + row[name], 0n);

function compare(what: string, found: readonly string[], wanted: readonly string[]): void {
  if ([...found].sort().join() === [...wanted].sort().join()) return;
  throw new Violation(`${what} holds ${found.join('; ')}, and the ledger sums to ${wanted.join('; ')}`);
}
