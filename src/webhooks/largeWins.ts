/** The events of large wins (docs/contract.md §13.1). */
import type { Game } from '../domain/game.js';
import { microsToUsdText } from '../domain/money.js';
import type { SpinIds } from '../domain/spinId.js';
import type { NewEvent } from '../domain/webhook.js';
import type { LargeWin } from '../ledger/transcoder.js';

/** What is asked of the catalog. */
export interface LargeWinCatalog {
  largeWinThreshold(partnerId: number): number | undefined;
  game(gameId: number): Game | undefined;
  /** Reads what changed; partner or game may have been made a moment ago, elsewhere. */
  refresh(): Promise<void>;
}

/** Tells the large wins from what may be some. @throws where the catalog can't be read, or lacks what was spun. */
export async function largeWinEvents(
  spinIds: SpinIds,
  catalog: LargeWinCatalog,
  wins: readonly LargeWin[],
): Promise<NewEvent[]> {
  const isKnown = ({ partnerId, gameId }: LargeWin): boolean =>
    catalog.largeWinThreshold(partnerId) !== undefined && catalog.game(gameId) !== undefined;
  if (!wins.every(isKnown)) await catalog.refresh();
  const events: NewEvent[] = [];
  for (const { entryId, partnerId, gameId, playerId, requestId, outcomeCode, payoutMicros, timeMs } of wins) {
    const threshold = catalog.largeWinThreshold(partnerId);
    const fragment = catalog.game(gameId)?.fragments[outcomeCode];
    if (threshold === undefined || fragment === undefined) {
      throw new Error(`The outcome ${outcomeCode} of game ${gameId} of partner ${partnerId} is not known`);
    }
    if (payoutMicros <= threshold) continue;
    const { outcome } = JSON.parse(`{${fragment.toString()}}`) as { outcome: { prizeTier: number } };
    events.push({
      event: 'spin.large_win',
      partnerId,
      createdAt: new Date(timeMs),
      data: {
        spinId: spinIds.encodeOne(entryId, partnerId),
        gameId,
        playerId,
        payoutUsd: Number(microsToUsdText(payoutMicros)),
        prizeTier: outcome.prizeTier,
        ...(requestId === null ? {} : { requestId }),
      },
    });
  }
  return events;
}
