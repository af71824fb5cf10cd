/** How the front end reaches the cells: spins in batches, adjustments, and the wait for the ledger behind both. */
import { Acknowledgements } from '../cells/acknowledgements.js';
import { Adjuster } from '../cells/adjuster.js';
import { type Dealt, SpinBatcher } from '../cells/batcher.js';
import type { SpinIds } from '../domain/spinId.js';
import { closing } from '../runtime/service.js';
import type { RoleParts } from './parts.js';

/** Requests that may wait for one cell: half a second at full speed. */
const WAITING_MAX = 10_000;

export interface Dealing {
  readonly batcher: SpinBatcher;
  readonly adjuster: Adjuster;
}

/** @param isVolatile the Redis of a cell may lose what it acknowledges, and is not served from for that. */
export async function openDealing(
  parts: RoleParts,
  spinIds: SpinIds,
  isVolatile: (cell: number) => boolean,
): Promise<Dealing> {
  const { config, log, services, nodes, scripts, catalog, metrics, store } = parts;
  const acknowledgements = new Acknowledgements({
    read: store.cellCursors,
    serverOf: (cell) => nodes.of(cell).serverId,
    deadlineMs: config.SPIN_DEADLINE_MS,
    onBooked: (seconds) => metrics.ackSeconds.observe(seconds),
    onError: (error) => {
      metrics.storeErrors.inc({ store: 'postgres' });
      log.warn({ err: error }, 'spins wait for the ledger, which does not answer');
    },
  });
  for (const node of nodes.all) {
    const endListening = await node.listenBooked(
      ({ cell, epoch, cursor }) => acknowledgements.advance(cell, epoch, cursor),
      () => metrics.storeErrors.inc({ store: 'redis' }),
    );
    await services.add(closing('Redis subscription', endListening));
  }
  const booked = async (cell: number, { epoch, serverId }: Dealt, id: bigint): Promise<boolean> => {
    if (!(await acknowledgements.booked(cell, { epoch, serverId }, id))) return false;
    // A Redis that came back may lack what was dealt before: then the ledger has later entries, and not this one.
    return nodes.of(cell).serverId === serverId || (await store.findEntry(id)) !== undefined;
  };
  const batcher = new SpinBatcher({
    call: (call) => scripts.spin(call),
    pipelined: (calls) => nodes.pipelined(calls),
    isReady: (cell) => nodes.of(cell).isReady,
    whenReady: (cell, timeoutMs) => nodes.of(cell).whenReady(timeoutMs),
    epochOf: (cell) => (isVolatile(cell) ? undefined : catalog.epochOf(cell)),
    spinIds,
    serverOf: (cell) => nodes.of(cell).serverId,
    booked,
    isStalled: (cell) => acknowledgements.isStalled(cell),
    deadlineMs: config.SPIN_DEADLINE_MS,
    batchMax: config.BATCH_MAX,
    waitingMax: WAITING_MAX,
    onBatch: (size, seconds) => metrics.batch(size, seconds),
    onError: (error, cell, size) => {
      metrics.storeErrors.inc({ store: 'redis' });
      log.warn({ err: error, cell, size }, 'a batch of spins had no answer');
    },
    // A rebuilt cell has another epoch: the sooner it is known here, the sooner the cell deals again.
    onEpoch: () => void catalog.refresh().catch(() => {}),
  });
  const adjuster = new Adjuster({
    store,
    call: (call) => scripts.adjust(call),
    newestInOutbox: (cell) => nodes.cell(cell).newestInOutbox(),
    isDurable: (cell) => !isVolatile(cell),
    isReady: (cell) => nodes.of(cell).isReady,
    whenReady: (cell, timeoutMs) => nodes.of(cell).whenReady(timeoutMs),
    serverOf: (cell) => nodes.of(cell).serverId,
    waitsForLedger: config.ACK === 'ledger',
    booked,
    deadlineMs: config.SPIN_DEADLINE_MS,
    onError: (error, cell) => {
      metrics.storeErrors.inc({ store: 'redis' });
      log.warn({ err: error, cell }, 'a store did not answer to an adjustment');
    },
  });
  return { batcher, adjuster };
}
