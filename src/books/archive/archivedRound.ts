/**
 * Proves a blackjack round from the archive of its day. Postgres keeps the seed of the shoe for ever, and the
 * archive has the moves; seed and moves determine every card. Wagers and payout are checked against the
 * archived ledger entries of the round.
 */
import { join } from 'node:path';
import { dayOf } from '../../domain/days.js';
import { entryTimeMs } from '../../domain/entryId.js';
import { IllegalActionError } from '../../domain/games/blackjack.js';
import { rulesHash } from '../../domain/games/blackjackRules.js';
import { moveOfCode, type RoundRecord, viewRound } from '../../domain/games/round.js';
import { SHOE_SEED_BYTES, shoeCommitment, shoesCommitment } from '../../domain/games/shoe.js';
import type { BlackjackTable } from '../../domain/games/tableTerms.js';
import { fileName } from '../../domain/ledgerDay.js';
import { usdToMicros } from '../../domain/money.js';
import { Rounds } from '../../engine/blackjack/rounds.store.js';
import type { Sql } from '../../postgres/connection.js';
import { type Group, readGroups } from './parquetFile.js';
import { checkArchives } from './readArchive.js';

const ROUND = [
  ...['game_id', 'shoe_index', 'partner_id', 'player_id', 'request_id', 'deal_id', 'status'],
  ...['moves', 'entry_ids', 'wagers_micros', 'balances_micros', 'payout_micros'],
];
const ENTRY = [
  'entry_id',
  'game_id',
  'partner_id',
  'wager_micros',
  'credit_micros',
  'balance_micros',
  'player_id',
];

type Row = Readonly<Record<string, bigint | number | string | null>>;

async function rowsOf(path: string, columns: readonly string[], idName: string, ids: ReadonlySet<bigint>) {
  const found: Row[] = [];
  await readGroups(path, columns, (group: Group, rows) => {
    const id = group.get(idName)!;
    for (let i = 0; i < rows; i++)
      if (ids.has(id[i] as bigint))
        found.push(Object.fromEntries(columns.map((name) => [name, group.get(name)![i]!])));
  });
  return found;
}

const listOf = <T>(text: unknown, of: (item: string) => T): T[] =>
  text === '' || text === null ? [] : String(text).split(',').map(of);

const recordOf = (row: Row): RoundRecord => ({
  gameId: Number(row.game_id),
  partnerId: Number(row.partner_id),
  playerId: String(row.player_id),
  shoeIndex: Number(row.shoe_index),
  requestId: row.request_id === null ? null : String(row.request_id),
  status: row.status as RoundRecord['status'],
  moves: listOf(row.moves, (code) => moveOfCode(Number(code))),
  entryIds: listOf(row.entry_ids, BigInt),
  wagersMicros: listOf(row.wagers_micros, Number),
  balancesMicros: listOf(row.balances_micros, Number),
  payoutMicros: row.payout_micros === null ? undefined : Number(row.payout_micros),
  isToVoid: false,
});

export interface ArchivedRound {
  readonly record: RoundRecord;
  /** Commitment to the shoe, hexadecimal, as shown to the player when the round was dealt. */
  readonly commitment: string;
  /** Faults found in the round. An empty list means that the round is proven. */
  readonly faults: readonly string[];
}

/**
 * @param dealId ledger entry of the deal
 * @returns the round, or a list of faults if the archive is damaged or has no such round
 */
export async function archivedRound(
  sql: Sql,
  directory: string,
  { dealId, roundId }: { readonly dealId: bigint; readonly roundId: string },
): Promise<ArchivedRound | readonly string[]> {
  const day = dayOf(entryTimeMs(dealId));
  const broken = await brokenDays(directory, [day]);
  if (broken.length > 0) return broken;
  const path = join(directory, day, fileName('rounds'));
  const [row] = await rowsOf(path, ROUND, 'deal_id', new Set([dealId]));
  if (row === undefined) return [`The archive of ${day} does not have this round`];
  const record = recordOf(row);
  const rounds = new Rounds(sql);
  const [terms, block] = await Promise.all([
    rounds.terms(record.gameId),
    rounds.shoeSeeds(record.gameId, record.shoeIndex),
  ]);
  if (terms === undefined || block === undefined)
    return ['Postgres does not have the table or the shoe of this round'];
  const table = { ...terms, rulesHash: rulesHash(terms.rules) };
  const { gameId, shoeIndex } = record;
  const seedAt = (place: number): Buffer =>
    block.seeds.subarray(place * SHOE_SEED_BYTES, (place + 1) * SHOE_SEED_BYTES);
  const commitmentAt = (place: number): Buffer => {
    const shoe = { gameId, index: block.fromIndex + place, rulesHash: table.rulesHash };
    return shoeCommitment({ ...shoe, seed: seedAt(place) });
  };
  const place = shoeIndex - block.fromIndex;
  const shoes = Array.from({ length: block.toIndex - block.fromIndex }, (_, i) => commitmentAt(i));
  const exchanged = shoesCommitment(shoes).equals(block.commitment)
    ? []
    : ['the seeds of the block do not match its commitment'];
  const faults = [
    ...playFaults(table, record, seedAt(place), roundId),
    ...(await entryFaults(directory, record)),
  ];
  return { record, commitment: shoes[place]!.toString('hex'), faults: [...exchanged, ...faults] };
}

/** Plays the round again from the seed and compares status, payout and wagers with the archive. */
function playFaults(table: BlackjackTable, record: RoundRecord, seed: Buffer, roundId: string): string[] {
  let view: ReturnType<typeof viewRound>;
  try {
    view = viewRound(table, record, seed, roundId);
  } catch (error) {
    if (error instanceof IllegalActionError) return [`the moves can't be played: ${error.message}`];
    throw error;
  }
  const { status, payoutUsd, wageredUsd } = view;
  const { payoutMicros, wagersMicros } = record;
  const wagered = wagersMicros.reduce((sum, micros) => sum + Math.max(micros, 0), 0);
  const faults: string[] = [];
  if (status !== record.status) faults.push(`the moves lead to the status ${status}, not ${record.status}`);
  if (payoutUsd === null || usdToMicros(payoutUsd) !== payoutMicros)
    faults.push(`the cards pay ${payoutUsd} USD, but ${payoutMicros} micro-USD were paid`);
  if (usdToMicros(wageredUsd) !== wagered)
    faults.push(`the moves wager ${wageredUsd} USD, but ${wagered} micro-USD were wagered`);
  return faults;
}

async function brokenDays(directory: string, days: readonly string[]): Promise<string[]> {
  const faults: string[] = [];
  for (const only of days) {
    const check = await checkArchives(directory, { only });
    for (const { day, file, problem } of check.faults)
      if (day === only) faults.push(`${day}${file === undefined ? '' : ` ${file}`}: ${problem}`);
  }
  return faults;
}

/** Compares the entries of the round with the archived ledger. A round may have entries on two days. */
async function entryFaults(directory: string, record: RoundRecord): Promise<string[]> {
  const { entryIds, wagersMicros, balancesMicros, gameId, partnerId, playerId, payoutMicros } = record;
  const first = dayOf(entryTimeMs(entryIds[0]!));
  const days = [...new Set(entryIds.map((id) => dayOf(entryTimeMs(id))))];
  const faults = await brokenDays(
    directory,
    days.filter((day) => day !== first),
  );
  if (faults.length > 0) return faults;
  const rows: Row[] = [];
  for (const day of days)
    rows.push(
      ...(await rowsOf(join(directory, day, fileName('ledger')), ENTRY, 'entry_id', new Set(entryIds))),
    );
  const byId = new Map(rows.map((row) => [row.entry_id, row]));
  let credited = 0;
  for (const [i, id] of entryIds.entries()) {
    const row = byId.get(id);
    const said = [gameId, partnerId, playerId, wagersMicros[i], balancesMicros[i]].join();
    const found =
      row && [row.game_id, row.partner_id, row.player_id, row.wager_micros, row.balance_micros].join();
    credited += Number(row?.credit_micros ?? 0);
    if (found !== said)
      faults.push(
        `entry ${id} (game, partner, player, wager, balance) is ${found ?? 'missing'}, not ${said}`,
      );
  }
  if (record.status === 'SETTLED' && credited !== payoutMicros)
    faults.push(`the entries of the round credit ${credited} micro-USD, not ${payoutMicros}`);
  return faults;
}
