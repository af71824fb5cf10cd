/** What a cell holds of one partner: copied, turned away and removed when the partner moves to another cell. */
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
 * Lets nothing more be done for a partner in a cell, or lets it be done again (lua/setAway.lua), as a step of a move.
 * @param backBy `away`; or it lives there: the move by which it has come back, 0 where it never left; `keep`: as it is
 * @throws OutrunError (also where the cell has seen a later step of the partner), RefusedError, NotSentError: nothing was done.
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

/** Id of the newest that the outbox of a cell holds, a ledger entry or a note; 0: it is empty. */
export async function newestId(store: CellStore): Promise<bigint> {
  const [newest] = await store.node[CLIENT].xrevrange(outboxKey(store.name), '+', '-', 'COUNT', 1);
  if (newest === undefined) return 0n;
  const [timeMs, sequence] = newest[0].split('-').map(Number) as [number, number];
  return makeEntryId({ timeMs, cell: store.cell, sequence });
}

/** A partner's windows and net as a cell has them; undefined: it has none. */
export async function findPartner(store: CellStore, partnerId: number): Promise<Buffer | undefined> {
  const record = await store.node[CLIENT].hgetBuffer(partnersKey(store.name), String(partnerId));
  return record ?? undefined;
}

/**
 * Empties the list of the shares that wait for a player.
 * @throws OutrunError, RefusedError, NotSentError: nothing was done.
 */
export const unlistWaitingShares = (store: CellStore, owner: CellOwner, player: string): Promise<void> =>
  removeKeys(store, owner, [waitingSharesKey(store.name, player)]);

/**
 * Removes all that a cell holds of a partner but request ids, which are released with all others.
 * @param gameIds the partner's games
 * @throws OutrunError, RefusedError, NotSentError: what was not removed yet is not.
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

// Taken also where memory is full: it makes room.
const remover = (store: CellStore) => store.node.script('fencedRemove', 'allow-oom');
