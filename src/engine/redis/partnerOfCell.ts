/**
 * Operations on the data of one partner in a cell, for its move to another cell: copying, blocking and
 * removing the data.
 */
import { makeEntryId } from '../../domain/entryId.js';
import type { MoveStep } from '../../domain/partnerMove.js';
import { fenceText } from './cellHead.js';
import type { CellOwner, CellStore } from './cellStore.js';
import {
  cellKey,
  communalKey,
  gamesKey,
  outboxKey,
  partnersKey,
  playerPrefix,
  playersKey,
  roundsKey,
  waitingSharesKey,
} from './keys.js';
import { CLIENT } from './redisClient.js';

const FIELDS_A_CALL = 500;
const SCAN_COUNT = 1000;

/**
 * Stops or resumes commands for a partner in a cell, as a step of a move (lua/setAway.lua).
 * @param backBy `away` stops commands. A number resumes them: the move by which the partner came back, or 0
 * if it never left. `keep` changes nothing.
 * @throws OutrunError (also if the cell has seen a later step for the partner), RefusedError or NotSentError;
 * nothing was done
 */
export async function setAway(
  store: CellStore,
  owner: CellOwner,
  { partnerId, number }: MoveStep,
  backBy: number | 'away' | 'keep',
): Promise<void> {
  store.assertServer(owner);
  const script = store.node.script('setAway', 'allow-oom');
  const values = [String(owner.fence), partnerId, backBy, String(number)];
  await store.node.run(script, [cellKey(store.name)], values);
}

/** Returns the id of the newest ledger entry or note in a cell's outbox, or 0 if the outbox is empty. */
export async function newestId(store: CellStore): Promise<bigint> {
  const [newest] = await store.node[CLIENT].xrevrange(outboxKey(store.name), '+', '-', 'COUNT', 1);
  if (newest === undefined) return 0n;
  const [timeMs, sequence] = newest[0].split('-').map(Number) as [number, number];
  return makeEntryId({ timeMs, cell: store.cell, sequence });
}

/**
 * Returns a partner's record in a cell, with its rate limit windows and net result; undefined if the cell has
 * none.
 */
export async function findPartner(store: CellStore, partnerId: number): Promise<Buffer | undefined> {
  const record = await store.node[CLIENT].hgetBuffer(partnersKey(store.name), String(partnerId));
  return record ?? undefined;
}

/** Deletes the list of shares that a player has not been notified of. */
export const unlistWaitingShares = (store: CellStore, owner: CellOwner, player: string): Promise<void> =>
  removeKeys(store, owner, [waitingSharesKey(store.name, player)]);

/**
 * Removes all data of a partner from a cell, except its request ids, which are released later together with
 * those of other partners.
 * @throws OutrunError, RefusedError or NotSentError; part of the data may already have been removed
 */
export async function removePartner(
  store: CellStore,
  owner: CellOwner,
  partnerId: number,
  gameIds: readonly number[],
): Promise<void> {
  const ids = gameIds.map(String);
  await removeFields(store, owner, partnersKey(store.name), [String(partnerId)]);
  await removeFields(store, owner, gamesKey(store.name), ids);
  await removeFields(store, owner, communalKey(store.name), ids);
  await removeScanned(store, owner, playersKey(store.name), `${playerPrefix(partnerId)}*`, /./);
  const isRound = new RegExp(`^\\d+:${partnerId}:`);
  await removeScanned(store, owner, roundsKey(store.name), `*:${partnerId}:*`, isRound);
  const games = new Set(ids);
  const { length } = cellKey(store.name).slice(0, -'cell'.length);
  const keys = (await store.otherKeys()).filter((key) => {
    const [kind, of] = key.slice(length).split(':');
    if (kind === 'block' || kind === 'recent') return games.has(of!);
    return (kind === 'untold' || kind === 'forced') && of === String(partnerId);
  });
  for (let at = 0; at < keys.length; at += FIELDS_A_CALL)
    await removeKeys(store, owner, keys.slice(at, at + FIELDS_A_CALL));
}

async function removeScanned(
  store: CellStore,
  owner: CellOwner,
  key: string,
  pattern: string,
  isMeant: RegExp,
): Promise<void> {
  let cursor = '0';
  do {
    const redis = store.node[CLIENT];
    const [next, found] = await redis.hscanBuffer(key, cursor, 'MATCH', pattern, 'COUNT', SCAN_COUNT);
    const fields = found.filter((field, i) => i % 2 === 0 && isMeant.test(field.toString()));
    await removeFields(store, owner, key, fields);
    cursor = next.toString();
  } while (cursor !== '0');
}

async function removeFields(
  store: CellStore,
  owner: CellOwner,
  key: string,
  fields: readonly (string | Buffer)[],
): Promise<void> {
  for (let at = 0; at < fields.length; at += FIELDS_A_CALL) {
    store.assertServer(owner);
    const args = [fenceText(owner), ...fields.slice(at, at + FIELDS_A_CALL)];
    await store.node.run(remover(store), [cellKey(store.name), key], args);
  }
}

async function removeKeys(store: CellStore, owner: CellOwner, keys: readonly string[]): Promise<void> {
  store.assertServer(owner);
  await store.node.run(remover(store), [cellKey(store.name), ...keys], [fenceText(owner)]);
}

// The fencedRemove script may run when Redis is out of memory, because it frees memory.
const remover = (store: CellStore) => store.node.script('fencedRemove', 'allow-oom');
