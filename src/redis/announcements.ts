/** What the workers tell the front ends over Redis. A message may be lost: nothing depends on one. */
import { openSubscriber, type RedisClient } from './client.js';

/** Every ledger entry of the cell, under this epoch, up to the cursor is committed. */
export interface BookedAnnouncement {
  readonly cell: number;
  /** Dataset and number: channels are shared by all databases of a server. */
  readonly epoch: string;
  readonly cursor: bigint;
}

const CHANNEL = 'spindle:booked';

export function publishBooked(redis: RedisClient, { cell, epoch, cursor }: BookedAnnouncement): void {
  redis.publish(CHANNEL, `${cell} ${epoch} ${cursor}`).catch(() => {});
}

/**
 * Listens over a connection of its own, which subscribes again whenever it is made anew.
 * @returns what ends that.
 * @throws where the server can't be reached.
 */
export async function listenBooked(
  url: string,
  onBooked: (announcement: BookedAnnouncement) => void,
  onError: (error: Error) => void,
): Promise<() => void> {
  const subscriber = await openSubscriber(url, onError);
  subscriber.on('message', (_channel: string, message: string) => {
    const [cell, epoch, cursor] = message.split(' ');
    onBooked({ cell: Number(cell), epoch: epoch!, cursor: BigInt(cursor!) });
  });
  // Where it fails the connection is lost, and the next one subscribes; meanwhile Postgres is asked.
  const subscribe = (): void => void subscriber.subscribe(CHANNEL).catch(() => {});
  subscriber.on('ready', subscribe);
  subscribe();
  return () => subscriber.disconnect();
}
