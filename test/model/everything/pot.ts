/**
 * Models a communal progressive by docs/contract.md §17: the counter, events, shares and notices of a spin.
 */
import {
  type BonusEvent,
  type BonusRules,
  book,
  type Game,
  type PlayerState,
  type Share,
  type State,
} from './state.js';

/** The notice in a spin's response: the player's share of an event. */
export interface Told {
  readonly event: BonusEvent;
  readonly amount: bigint;
  readonly isTrigger: boolean;
}

/**
 * Counts a drawn spin or a ticket if the game has a communal progressive, and pays the event that it fires.
 * The spin or ticket must already be among the player's entries.
 * @returns the notice of the spin, or undefined
 */
export function count(state: State, game: Game, player: PlayerState, spinId: string): Told | undefined {
  const event = fired(state, game, player);
  if (event !== undefined) {
    const own = event.shares.find(({ isTrigger }) => isTrigger);
    if (own !== undefined) own.toldBy = spinId;
    return { event, amount: own?.amount ?? 0n, isTrigger: true };
  }
  const oldest = player.untold.shift();
  if (oldest === undefined) return undefined;
  oldest.toldBy = spinId;
  return { event: oldest.event, amount: oldest.amount, isTrigger: false };
}

/** Pays the event that a spin fires. Returns undefined if no event fires or the event pays nothing. */
function fired(state: State, game: Game, player: PlayerState): BonusEvent | undefined {
  const { pot } = game;
  if (pot === undefined) return undefined;
  const { rules, recent } = pot;
  const community = recent.filter((playerId) => playerId !== player.playerId);
  pot.recent = [player.playerId, ...community];
  if (!rules.isEnabled) return undefined;
  pot.progress++;
  const level = rules.tiers.findLastIndex(({ at }) => pot.progress % at === 0);
  if (pot.progress % rules.interval !== 0 || level < 0) return undefined;

  const { name, amount } = rules.tiers[level]!;
  const whole = pot.budget >= amount ? amount : rules.paysRemaining ? pot.budget : 0n;
  const parts = partsOf(rules, whole, player.playerId, community.slice(0, rules.communitySize));
  const total = parts.reduce((sum, [, part]) => sum + part, 0n);
  const shares: Share[] = [];
  const event: BonusEvent = {
    eventId: undefined,
    gameId: game.gameId,
    level: level + 1,
    name,
    total,
    shares,
    isSkipped: whole === 0n,
  };
  pot.events.push(event);
  pot.budget -= total;
  pot.paid += total;
  for (const [playerId, part] of parts) {
    if (part === 0n) continue;
    const winner = state.players.get(playerId)!;
    const isTrigger = winner === player;
    const share: Share = { event, playerId, amount: part, isTrigger, toldBy: null };
    shares.push(share);
    winner.shares.push(share);
    if (!isTrigger) winner.untold.push(share);
    book(winner, { kind: 'communalShare', gameId: game.gameId, credit: part });
  }
  return total === 0n ? undefined : event;
}

/**
 * Divides the payout of an event. The part of the triggering player is rounded down. The remainder is divided
 * evenly, and what can't be divided goes to the most recent players.
 */
function partsOf(
  rules: BonusRules,
  whole: bigint,
  triggerId: string,
  community: readonly string[],
): [playerId: string, part: bigint][] {
  const floored = (whole * rules.triggerPart) / 10_000n;
  const rest = whole - floored;
  const number = BigInt(community.length);
  if (number === 0n) return [[triggerId, rules.returnsToBudget ? floored : whole]];
  const parts = community.map((playerId, place): [string, bigint] => [
    playerId,
    rest / number + (BigInt(place) < rest % number ? 1n : 0n),
  ]);
  return [[triggerId, floored], ...parts];
}
