/**
 * What processes announce to each other over Redis: workers how far cells are booked, whoever has read the catalog what it found, and the
 * scripts that deal which block is dealt out. A message may be lost: nothing depends on one.
 *
 * In a cluster the channels are sharded (those of the scripts always are), one for each cell that there is, and one for the catalog on each node: the node that holds a
 * cell publishes its messages itself. PUBLISH would send each of them to all nodes, and whoever listens at several would hear it several
 * times; listening at one, it would hear nothing of the others' cells while that one is away.
 */
import { openSubscriber, type RedisClient } from './redisClient.js';

/** Every ledger entry of the cell, under this epoch, up to the cursor is committed. */
export interface CommitAnnouncement {
  readonly cell: number;
  /** Dataset and number: channels are shared by all databases of a server. */
  readonly epoch: string;
  readonly cursor: bigint;
}

/** What a process found when it read the catalog from Postgres. */
export interface CatalogAnnouncement {
  /** Names the process. */
  readonly reader: string;
  /** Channels are shared by all databases of a server. */
  readonly datasetId: string;
  /** Number of the newest change that is known there. */
  readonly newest: bigint;
  /** Up to this one all are known there that take something away. */
  readonly newestRestriction: bigint;
  /** Of all else that was read with it. */
  readonly digest: string;
}

type Words<Count extends number, Of extends string[] = []> = Of['length'] extends Count
  ? Of
  : Words<Count, [...Of, string]>;

/** The first words of a message. A newer version may add some, which are not looked at. @throws RangeError where one lacks */
function words<const Count extends number>(message: string, count: Count): Words<Count> {
  const found = message.split(' ', count);
  if (found.length < count || found.includes('')) throw new RangeError('A message lacks a member');
  return found as Words<Count>;
}

/** @throws RangeError */
function whole(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number)) throw new RangeError('A member of a message is not a whole number');
  return number;
}

export const commitMessage = ({ cell, epoch, cursor }: CommitAnnouncement): string =>
  `${cell} ${epoch} ${cursor}`;

export const catalogMessage = (read: CatalogAnnouncement): string =>
  `${read.reader} ${read.datasetId} ${read.newest} ${read.newestRestriction} ${read.digest}`;

export function readCatalogMessage(message: string): CatalogAnnouncement {
  const [reader, datasetId, newest, newestRestriction, digest] = words(message, 5);
  return { reader, datasetId, digest, newest: BigInt(newest), newestRestriction: BigInt(newestRestriction) };
}

/** A script has dealt out a block of a game (lua/include/writeGames.lua). */
export interface DealtAnnouncement {
  readonly cell: number;
  /** The field `epoch` of the cell: channels are shared by all databases of a server. */
  readonly token: string;
  readonly gameId: number;
  /** Of the game's next outcome. */
  readonly nextIndex: number;
}

export function readDealtMessage(message: string): DealtAnnouncement {
  const [cell, token, gameId, nextIndex] = words(message, 4);
  return { cell: whole(cell), token, gameId: whole(gameId), nextIndex: whole(nextIndex) };
}

/** @param isSharded in a cluster */
export function publish(redis: RedisClient, channel: string, message: string, isSharded: boolean): void {
  redis.call(isSharded ? 'SPUBLISH' : 'PUBLISH', channel, message).catch(() => {});
}

export interface Listener {
  /** Settles with the first try to connect; further ones follow by themselves. */
  readonly isOpen: Promise<void>;
  /** Subscribes to the channels as they are now. */
  subscribe(): void;
  close(): void;
}

export interface Listening {
  readonly onMessage: (message: string) => void;
  /** The connection is up, and subscribed. */
  readonly onHearing?: () => void;
  /** It is broken: whatever is announced now is missed. */
  readonly onDeaf?: () => void;
  readonly onError: (error: Error) => void;
}

/**
 * Listens over a connection of its own, which subscribes again whenever it is made anew.
 * @param channel one for all cells, or the sharded ones of the node's cells
 */
export function listenOn(
  url: string,
  channel: string | (() => readonly string[]),
  { onMessage, onHearing, onDeaf, onError }: Listening,
): Listener {
  const subscriber = openSubscriber(url, onError);
  const heard = (_channel: string, message: string): void => {
    try {
      onMessage(message);
    } catch (error) {
      // Anybody who may publish there can send what is no message of ours.
      onError(new Error('A message is not one of this service', { cause: error }));
    }
  };
  subscriber.on('message', heard).on('smessage', heard);
  // Where it fails the connection is lost, a cell has moved, or the user may not; the next one subscribes.
  const subscribe = (): void => {
    const subscribed =
      typeof channel === 'string'
        ? [subscriber.subscribe(channel)]
        : channel().map((each) => subscriber.ssubscribe(each));
    Promise.all(subscribed).then(onHearing, () => {});
  };
  subscriber.on('ready', subscribe);
  if (onDeaf !== undefined) subscriber.on('close', onDeaf);
  return { isOpen: subscriber.connect(), subscribe, close: () => subscriber.disconnect() };
}

/** Listens to how far cells are booked; meanwhile whoever waits for it asks Postgres. */
export function listenForCommits(
  url: string,
  channel: string | (() => readonly string[]),
  onBooked: (announcement: CommitAnnouncement) => void,
  onError: (error: Error) => void,
): Listener {
  const onMessage = (message: string): void => {
    const [cell, epoch, cursor] = words(message, 3);
    onBooked({ cell: whole(cell), epoch, cursor: BigInt(cursor) });
  };
  return listenOn(url, channel, { onMessage, onError });
}
