/** Waits, with a timeout, until the games that the service lists at its start can be played. */
import type { Catalog } from '../../engine/catalog/catalog.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';

const PLAYABLE_WITHIN_MS = 5000;
const SERVED_WITHIN_MS = 6000;

/**
 * Waits until outcomes can be dealt from every cell. Cells of a killed worker stay leased for a few seconds.
 * If a rebuild takes longer than the timeout, the start continues, and /statusz reports the state.
 */
export async function untilServed(nodes: RedisNodes, catalog: Catalog): Promise<void> {
  const deadline = performance.now() + SERVED_WITHIN_MS;
  while (performance.now() < deadline) {
    // A failed read of the catalog is repeated, because a store may answer slowly.
    const isRead = await catalog.refresh().then(
      () => true,
      () => false,
    );
    const { closed, away } = await nodes.closed(catalog.epochs);
    if (isRead && closed.length + away.length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/**
 * Waits for the first block of a game, so that the example request that the start prints works. On a slow
 * machine the timeout may expire before there is a block.
 */
export async function untilPlayable(nodes: RedisNodes, gameId: number, catalog: Catalog): Promise<void> {
  const game = catalog.game(gameId);
  const cell = game === undefined ? undefined : catalog.partner(game.partnerId)?.cell;
  const deadline = performance.now() + PLAYABLE_WITHIN_MS;
  while (cell !== undefined && performance.now() < deadline) {
    if (((await nodes.cell(cell).findGame(gameId))?.queueEnd ?? 0) > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
