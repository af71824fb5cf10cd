/**
 * The cell operation `endSale`, with which the request that voids a raffle ends its sale in Redis
 * (lua/endSale.lua). If it fails, the worker that owns the cell ends the sale (raffleVoids.ts).
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { CellClient } from '../cells/cellClient.js';
import type { CellOperation, CellRequest } from '../cells/operation.js';
import { writeGame } from '../redis/cellRecords.js';
import type { Raffles, SalePlace } from './raffles.store.js';

const END_SALE: CellOperation<SalePlace & CellRequest, true> = {
  name: 'endSale',
  batchMax: 1,
  slots: 4,
  overlapMin: 1,
  isStored: false,
  waitsForStore: true,
  partnerOf: ({ partnerId }) => partnerId,
  codec: () => ({
    encode: ([request]) => {
      const { partnerId, gameId, poolSize } = request!;
      return [partnerId, gameId, writeGame(poolSize, poolSize)];
    },
    decode: () => ({ replies: [true], entryId: () => 0n }),
  }),
};

const POLL_MS = 50;

/**
 * @param deadlineMs maximum time, including retries, in ms
 * @returns whether Redis is certain to sell no further ticket
 */
export async function endSale(
  cells: Pick<CellClient, 'execute'>,
  raffles: Pick<Raffles, 'salePlace'>,
  gameId: number,
  deadlineMs: number,
): Promise<boolean> {
  const deadline = performance.now() + deadlineMs;
  while (performance.now() < deadline) {
    // Each attempt reads the place again, because the epoch or the cell of the partner may have changed.
    const place = await raffles.salePlace(gameId).catch(() => undefined);
    if (place === undefined) return false;
    if (place === 'closed') return true;
    const outcome = await cells.execute(END_SALE, { ...place, waitsForLedger: false, deadline });
    if (outcome.kind === 'reply') return true;
    if (outcome.kind !== 'epochMoved') return false;
    await pause(POLL_MS);
  }
  return false;
}
