/** What a replica that has taken over holds of a cell: read and cut down by the cell's owner, which repairs it (src/engine/recovery/repair.ts). */
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

/** The newest entry of the outbox up to an id (with) that has a row in the ledger; undefined: it was trimmed, or there is none. */
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

/** The records of players by their fields, in the order of the fields; null where a player is not known. */
export async function playerRecords(store: CellStore, fields: readonly string[]): Promise<(Buffer | null)[]> {
  const records: (Buffer | null)[] = [];
  for (let from = 0; from < fields.length; from += PLAYERS_A_CALL) {
    const some = fields.slice(from, from + PLAYERS_A_CALL);
    records.push(...(await store.node[CLIENT].hmgetBuffer(playersKey(store.name), ...some)));
  }
  return records;
}

/**
 * Removes what is written anew: blocks, games, rounds, pots, forced outcomes, and the shares that wait for some players. Players,
 * request ids, partners and the outbox stay.
 * @param players whose untold shares are removed, by their fields
 * @throws OutrunError, RefusedError, NotSentError: nothing was done.
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
