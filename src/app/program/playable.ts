/** Waits, within bounds, until what a start announces can be played. */
import type { Catalog } from '../../engine/catalog/catalog.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';

const PLAYABLE_WITHIN_MS = 5000;
const SERVED_WITHIN_MS = 6000;

/**
 * Waits until every cell can be dealt from: those of a worker that was killed are leased for some seconds more. What
 * must be rebuilt may take longer; then the start goes on, and /readyz says so.
 */
export async function untilServed(nodes: RedisNodes, catalog: Catalog): Promise<void> {
  const deadline = performance.now() + SERVED_WITHIN_MS;
  while (performance.now() < deadline) {
    // A store that is slow to answer is asked again.
    const isRead = await catalog.refresh().then(
      () => true,
      () => false,
    );
    const { closed, away } = await nodes.closed(catalog.epochs);
    if (isRead && closed.length + away.length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Waits for the first block of a game, so that what is printed for it works; a slow machine may print sooner. */
export async function untilPlayable(nodes: RedisNodes, gameId: number, catalog: Catalog): Promise<void> {
  const game = catalog.game(gameId);
  const cell = game === undefined ? undefined : catalog.partner(game.partnerId)?.cell;
  const deadline = performance.now() + PLAYABLE_WITHIN_MS;
  while (cell !== undefined && performance.now() < deadline) {
    if (((await nodes.cell(cell).findGame(gameId))?.queueEnd ?? 0) > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
