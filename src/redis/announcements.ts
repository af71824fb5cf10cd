/**
 * What the workers tell the front ends over Redis. A message may be lost: nothing depends on one.
 *
 * In a cluster the channels are sharded, one for each cell that there is: the node that holds a cell tells its messages itself. PUBLISH would send
 * each of them to all nodes, and whoever listens at several would hear it several times; listening at one, it would hear nothing of
 * the others' cells while that one is away.
 */
import { openSubscriber, type RedisClient } from './client.js';

/** Every ledger entry of the cell, under this epoch, up to the cursor is committed. */
export interface BookedAnnouncement {
  readonly cell: number;
  /** Dataset and number: channels are shared by all databases of a server. */
  readonly epoch: string;
  readonly cursor: bigint;
}

export function publishBooked(
  redis: RedisClient,
  { cell, epoch, cursor }: BookedAnnouncement,
  channel: string,
  isSharded: boolean,
): void {
  redis.call(isSharded ? 'SPUBLISH' : 'PUBLISH', channel, `${cell} ${epoch} ${cursor}`).catch(() => {});
}

export interface BookedListener {
  /** Settles with the first try to connect; further ones follow by themselves. */
  readonly isOpen: Promise<void>;
  /** Subscribes to the channels as they are now. */
  subscribe(): void;
  close(): void;
}

/**
 * Listens over a connection of its own, which subscribes again whenever it is made anew.
 * @param channel one for all cells, or the sharded ones of the node's cells
 */
export function listenBooked(
  url: string,
  channel: string | (() => readonly string[]),
  onBooked: (announcement: BookedAnnouncement) => void,
  onError: (error: Error) => void,
): BookedListener {
  const subscriber = openSubscriber(url, onError);
  const onMessage = (_channel: string, message: string): void => {
    const [cell, epoch, cursor] = message.split(' ');
    onBooked({ cell: Number(cell), epoch: epoch!, cursor: BigInt(cursor!) });
  };
  subscriber.on('message', onMessage);
  subscriber.on('smessage', onMessage);
  // Where it fails the connection is lost, or a cell has moved, and the next one subscribes; meanwhile Postgres is asked.
  const subscribe = (): void => {
    if (typeof channel === 'string') subscriber.subscribe(channel).catch(() => {});
    else for (const each of channel()) subscriber.ssubscribe(each).catch(() => {});
  };
  subscriber.on('ready', subscribe);
  return { isOpen: subscriber.connect(), subscribe, close: () => subscriber.disconnect() };
}
