/** Checks the fields that a history adds to a spin against the response to the spin. */
import { isDeepStrictEqual } from 'node:util';
import { amount, at, type Json } from './decimal.js';

type Members = { readonly [name: string]: Json };

/** Returns a spin of a history in the form of the response to the spin. */
export function withoutHistory(members: Members): Members {
  const { wagerUsd, balanceBeforeUsd, balanceAfterUsd, outcomeIndex, ...spin } = members;
  return spin;
}

/**
 * Describes the fault of an item of a history. Undefined if the item is the spin of the response and its
 * additional fields are correct.
 */
export function historyFault(
  item: Json | undefined,
  wager: bigint,
  record: { readonly json: Json; readonly gameId: number },
): string | undefined {
  const { json, gameId } = record;
  const after = amount(at(json, 'balance', 'balanceUsd'))!;
  const payout = amount(at(json, 'outcome', 'payoutUsd'))!;
  const { createdAt: _, gameId: shownGameId, playerId: __, ...members } = (item ?? {}) as Members;
  if (!isDeepStrictEqual(withoutHistory(members), json)) return `was answered as ${JSON.stringify(json)}`;
  if (shownGameId !== String(gameId)) return `is of game ${gameId}`;
  // Booleans remain booleans when numbers are converted to text.
  const hasFired = at(json, 'communityBonus', 'isTriggerPlayer') === true;
  const share = hasFired ? amount(at(json, 'communityBonus', 'yourShareUsd'))! : 0n;
  const expected = {
    wagerUsd: wager,
    balanceBeforeUsd: after - share - payout + wager,
    balanceAfterUsd: after,
  };
  const wrong = Object.entries(expected).find(([name, value]) => amount(members[name]) !== value);
  if (wrong !== undefined) return `its ${wrong[0]} should be ${wrong[1]} micro-USD`;
  const isForced = at(json, 'sandbox', 'forced') !== undefined;
  const { outcomeIndex } = members;
  const isPlaced = typeof outcomeIndex === 'string' && /^\d+$/.test(outcomeIndex);
  return (isForced ? outcomeIndex === null : isPlaced) ? undefined : `its outcomeIndex is ${outcomeIndex}`;
}
