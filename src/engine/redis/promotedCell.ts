/**
 * Reads and prunes the data of a cell on a promoted replica. The cell's owner uses it for a repair
 * (src/engine/recovery/repair.ts).
 */
import { streamIdOf } from '../../domain/entryId.js';
import { ENTRY_KINDS } from '../../domain/ledgerEntry.js';
import { type OutboxRecord, readOutbox } from './cellRecords.js';
import type { CellOwner, CellStore } from './cellStore.js';
import {
  type CellName,
  cellKey,
  cellKeysPattern,
  idempotencyKey,
  outboxKey,
  partnersKey,
  playersKey,
  waitingSharesKey,
} from './keys.js';
import { CLIENT } from './redisClient.js';

const SCAN_COUNT = 1000;
const PLAYERS_A_CALL = 500;

type StreamEntries = [id: Buffer, fields: Buffer[]][];

/**
 * Returns the newest outbox entry, up to and including an id, that has a row in the ledger. Undefined if that
 * entry was trimmed or never existed.
 */
export async function newestInOutboxUpTo(
  store: CellStore,
  entryId: bigint,
): Promise<OutboxRecord | undefined> {
  const [newest] = (await store.node[CLIENT].xrevrangeBuffer(
    outboxKey(store.name),
    streamIdOf(entryId),
    '-',
    'COUNT',
    1,
  )) as StreamEntries;
  if (newest === undefined) return undefined;
  return readOutbox(newest[1][1]!).findLast(({ kind }) => ENTRY_KINDS[kind].counterpart !== 'none');
}

/** Returns the records of players in the order of the given fields; null for a player that does not exist. */
export async function playerRecords(store: CellStore, fields: readonly string[]): Promise<(Buffer | null)[]> {
  const records: (Buffer | null)[] = [];
  for (let from = 0; from < fields.length; from += PLAYERS_A_CALL) {
    const some = fields.slice(from, from + PLAYERS_A_CALL);
    records.push(...(await store.node[CLIENT].hmgetBuffer(playersKey(store.name), ...some)));
  }
  return records;
}

/**
 * Removes the data that the repair writes anew: blocks, games, rounds, pots, forced outcomes, and the pending
 * shares of the given players. Players, request ids, partners and the outbox stay.
 * @param players fields of the players whose pending shares are removed
 */
export async function removeRenewed(
  store: CellStore,
  owner: CellOwner,
  players: readonly string[],
): Promise<void> {
  const { name } = store;
  const kept = keptKeys(name);
  const removed = new Set(players.map((player) => waitingSharesKey(name, player)));
  let cursor = '0';
  do {
    const [next, keys] = await store.node[CLIENT].scan(
      cursor,
      'MATCH',
      cellKeysPattern(name),
      'COUNT',
      SCAN_COUNT,
    );
    for (const key of keys) if (!kept.some((each) => key.startsWith(each))) removed.add(key);
    cursor = next;
  } while (cursor !== '0');
  await store.removeKeys(owner, [...removed]);
}

const keptKeys = (name: CellName): string[] => [
  cellKey(name),
  partnersKey(name),
  playersKey(name),
  outboxKey(name),
  idempotencyKey(name, 0).slice(0, -1),
  waitingSharesKey(name, ''),
];
