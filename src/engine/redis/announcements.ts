/**
 * Announcements between processes over Redis. Workers announce the committed watermark of a cell, processes
 * announce what they read of the catalog, and scripts announce that a block has been dealt out. Any
 * announcement may be lost, so nothing may depend on it.
 *
 * In a cluster the channels are sharded, with one channel per cell and one per node for the catalog; the
 * channels of the scripts are always sharded. The node that holds a cell publishes the cell's messages
 * itself. PUBLISH would send each message to all nodes. A subscriber of several nodes would then receive a
 * message several times, and a subscriber of one node would miss the messages of all cells while that node is
 * unreachable.
 */
import { openSubscriber, type RedisClient } from './redisClient.js';

/** Announces that every ledger entry of the cell, up to the cursor, is committed under this epoch. */
export interface CommitAnnouncement {
  readonly cell: number;
  /**
   * Dataset and number of the epoch. The dataset is needed because all databases of a server share its
   * channels.
   */
  readonly epoch: string;
  readonly cursor: bigint;
}

/** Announces the state of the catalog that a process read from Postgres. */
export interface CatalogAnnouncement {
  readonly reader: string;
  /** Id of the catalog's database. It is needed because all databases of a server share its channels. */
  readonly datasetId: string;
  readonly newest: bigint;
  /**
   * Watermark of restricting changes: the process has read every change of the catalog up to this number that
   * revokes or restricts something.
   */
  readonly newestRestriction: bigint;
  /** Hash of everything else that was read of the catalog in the same poll. */
  readonly digest: string;
}

type Words<Count extends number, Of extends string[] = []> = Of['length'] extends Count
  ? Of
  : Words<Count, [...Of, string]>;

/** Splits a message into its first words. Further words, which a newer version may add, are ignored. */
function words<const Count extends number>(message: string, count: Count): Words<Count> {
  const found = message.split(' ', count);
  if (found.length < count || found.includes(''))
    throw new RangeError('A pub/sub message has too few members');
  return found as Words<Count>;
}

function whole(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number))
    throw new RangeError('A member of a pub/sub message is not a whole number');
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

/** Announces that a script has dealt the last outcome of a game's block (lua/include/writeGames.lua). */
export interface DealtAnnouncement {
  readonly cell: number;
  /**
   * The cell's field `epoch`. It identifies the database, because all databases of a server share its
   * channels.
   */
  readonly token: string;
  readonly gameId: number;
  readonly nextIndex: number;
}

export function readDealtMessage(message: string): DealtAnnouncement {
  const [cell, token, gameId, nextIndex] = words(message, 4);
  return { cell: whole(cell), token, gameId: whole(gameId), nextIndex: whole(nextIndex) };
}

/** Asks the worker of a cell to commit soon. */
export interface AwaitedAnnouncement {
  readonly cell: number;
  /** Id of the cell's database, because all databases of a server share its channels. */
  readonly datasetId: string;
}

export const awaitedMessage = ({ cell, datasetId }: AwaitedAnnouncement): string => `${cell} ${datasetId}`;

export function readAwaitedMessage(message: string): AwaitedAnnouncement {
  const [cell, datasetId] = words(message, 2);
  return { cell: whole(cell), datasetId };
}

/**
 * The promise never rejects.
 * @param isSharded true in a cluster, where channels are sharded
 * @returns the number of subscribers that received the message; undefined if it is unknown
 */
export async function publish(
  redis: RedisClient,
  channel: string,
  message: string,
  isSharded: boolean,
): Promise<number | undefined> {
  const receivers = redis.call(isSharded ? 'SPUBLISH' : 'PUBLISH', channel, message) as Promise<number>;
  return receivers.catch(() => undefined);
}

export interface Listener {
  /** The promise settles after the first attempt to connect. Failed connections are retried automatically. */
  readonly isOpen: Promise<void>;
  /** Subscribes to the channels again after the list of channels has changed. */
  subscribe(): void;
  /** Opens a new connection, because the address may lead to another server. */
  renew(): void;
  close(): void;
}

export interface Listening {
  readonly onMessage: (message: string, channel: string) => void;
  /** Called when the connection for announcements is up and subscribed. */
  readonly onHearing?: () => void;
  /** Called when the connection for announcements is lost. Announcements are missed until it is up again. */
  readonly onDeaf?: () => void;
  readonly onError: (error: Error) => void;
}

/**
 * Subscribes on a dedicated connection, and again after each reconnection.
 * @param channel one channel for all cells, or a function that returns the sharded channels of the node's
 * cells
 */
export function listenOn(
  url: string,
  channel: string | (() => readonly string[]),
  { onMessage, onHearing, onDeaf, onError }: Listening,
): Listener {
  const subscriber = openSubscriber(url, onError);
  const heard = (channel: string, message: string): void => {
    try {
      onMessage(message, channel);
    } catch (error) {
      // The message may not be from this service, because any client that may publish on the channel can send
      // messages.
      onError(new Error('A pub/sub message was not sent by this service', { cause: error }));
    }
  };
  subscriber.on('message', heard).on('smessage', heard);
  // A subscription fails if the connection is lost, a cell has moved, or the Redis user has no permission.
  // The subscription is tried again after the next reconnection.
  const subscribe = (): void => {
    const subscribed =
      typeof channel === 'string'
        ? [subscriber.subscribe(channel)]
        : channel().map((each) => subscriber.ssubscribe(each));
    Promise.all(subscribed).then(onHearing, () => {});
  };
  subscriber.on('ready', subscribe);
  if (onDeaf !== undefined) subscriber.on('close', onDeaf);
  return {
    isOpen: subscriber.connect(),
    subscribe,
    renew: () => subscriber.disconnect(true),
    close: () => subscriber.disconnect(),
  };
}

/** If announcements are missed, waiting callers poll Postgres. */
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
