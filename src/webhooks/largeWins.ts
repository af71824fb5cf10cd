/** Creates the events of large wins (docs/contract.md §13.1). */
import { type Game, prizeTierOf } from '../domain/game.js';
import { microsToUsdText } from '../domain/money.js';
import type { SpinIds } from '../domain/spinId.js';
import type { NewEvent } from '../domain/webhook.js';
import type { LargeWin } from '../engine/ledger/transcoder.js';

/** Part of the catalog that is needed to find large wins. */
export interface LargeWinCatalog {
  largeWinThreshold(partnerId: number): number | undefined;
  game(gameId: number): Game | undefined;
  /** Updates the catalog, because another process may have just created the partner or game. */
  refresh(): Promise<void>;
}

/** Returns the entry id of the deal with which a blackjack round began. The deal is already committed. */
export type FindDeal = (gameId: number, shoeIndex: number) => Promise<bigint | undefined>;

/**
 * Returns events for those candidates whose payout exceeds the threshold of their partner.
 * @throws Error if the catalog can't be read or lacks a game or partner of a spin
 */
export async function largeWinEvents(
  spinIds: SpinIds,
  catalog: LargeWinCatalog,
  wins: readonly LargeWin[],
  findDeal: FindDeal,
): Promise<NewEvent[]> {
  const isKnown = ({ partnerId, gameId }: LargeWin): boolean =>
    catalog.largeWinThreshold(partnerId) !== undefined && catalog.game(gameId) !== undefined;
  if (!wins.every(isKnown)) await catalog.refresh();
  const events: NewEvent[] = [];
  for (const win of wins) {
    const { entryId, partnerId, gameId, playerId, requestId, payoutMicros, timeMs } = win;
    const threshold = catalog.largeWinThreshold(partnerId);
    const game = catalog.game(gameId);
    if (threshold === undefined || game === undefined)
      throw new Error(`Game ${gameId} of partner ${partnerId} is unknown`);
    if (payoutMicros <= threshold) continue;
    const dealId = win.round && (win.round.dealId ?? (await findDeal(gameId, win.outcomeIndex)));
    const spinId = spinIds.encodeOne(dealId ?? entryId, partnerId);
    events.push({
      event: 'spin.large_win',
      partnerId,
      createdAt: new Date(timeMs),
      data: {
        spinId,
        ...(win.round === undefined ? {} : { roundId: spinId }),
        gameId,
        playerId,
        payoutUsd: Number(microsToUsdText(payoutMicros)),
        prizeTier: win.round === undefined ? prizeTierOf(game, win.outcomeCode) : 0,
        ...(requestId === null ? {} : { requestId }),
        ...(win.isForced === true ? { sandbox: { forced: true } } : {}),
      },
    });
  }
  return events;
}
