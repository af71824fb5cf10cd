/** What a history adds to a spin as it was answered, judged by the answer. */
import { isDeepStrictEqual } from 'node:util';
import { amount, at, type Json } from './decimal.js';

type Members = { readonly [name: string]: Json };

/** A spin of a history as it was answered. */
export function withoutHistory(members: Members): Members {
  const { wagerUsd, balanceBeforeUsd, balanceAfterUsd, outcomeIndex, ...spin } = members;
  return spin;
}

/** What is wrong with an item of a history; undefined: it is the spin as it was answered, and what is added fits it. */
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
  // Booleans are no numbers: they stay as they are.
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
