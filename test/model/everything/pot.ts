/** A communal progressive by docs/contract.md §17: what a spin counts, fires, pays and tells. */
import {
  type BonusEvent,
  type BonusRules,
  book,
  type Game,
  type PlayerState,
  type Share,
  type State,
} from './state.js';

/** What a spin tells: the part of its player in an event. */
export interface Told {
  readonly event: BonusEvent;
  readonly amount: bigint;
  readonly isTrigger: boolean;
}

/**
 * A drawn spin or a ticket of a player, booked already: counts it where the game has a bonus, and pays what it fires.
 * @returns what it tells, if anything
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

/** The event that a spin fires, paid; undefined where it fires none that pays anything. */
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

/** The trigger part is floored; the rest is divided evenly, and what is left over goes to the most recent. */
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
