/**
 * Models a communal progressive by docs/contract.md §17: the counter, events, shares and notices of a dealt
 * spin. No function changes a state in place.
 */
import { at, type Json, usd } from './decimal.js';

export interface BonusRules {
  readonly interval: number;
  /** Part of an event's payout that the triggering player gets, in hundredths of a percent. */
  readonly triggerPart: bigint;
  readonly communitySize: number;
  readonly returnsToBudget: boolean;
  readonly paysRemaining: boolean;
  /** Tiers in the order of their levels. */
  readonly tiers: readonly { readonly name: string; readonly at: number; readonly amount: bigint }[];
}

export interface Pot {
  readonly rules: BonusRules;
  readonly progress: number;
  readonly budget: bigint;
  /** Players who spun, most recent first. */
  readonly recent: readonly string[];
}

/** Name of a spin: its id, or its index in the list of lost spins (whose result is unknown). */
export type SpinName = string | number;

/** A share of an event, with the fields of the notice that informs the player. */
export interface Share {
  readonly event: SpinName;
  readonly gameId: number;
  readonly level: number;
  readonly name: string;
  /** Total of the event in micro-USD. */
  readonly total: bigint;
  readonly amount: bigint;
  readonly isTrigger: boolean;
  /** Balance of the player after the share. */
  readonly balance: bigint;
}

export type Entry = SpinName | Share;

export interface Player {
  readonly opening: bigint;
  readonly balance: bigint;
  /** Ledger entries in their order. */
  readonly entries: readonly Entry[];
  /** Shares of which the player has not been notified, oldest first. */
  readonly untold: readonly Share[];
}

/** Effects of a spin other than the change of its player's balance. */
interface Counted {
  readonly players: ReadonlyMap<string, Player>;
  readonly pot: Pot | undefined;
  /** The share of which the spin notifies its player, or undefined. */
  readonly told: Share | undefined;
}

/**
 * Applies the effects of a spin: its count, the event that it fires, and the notice to its player.
 * @param players players after the spin itself has changed the balance of its player
 */
export function counted(
  players: ReadonlyMap<string, Player>,
  pot: Pot | undefined,
  spin: { readonly name: SpinName; readonly gameId: number; readonly playerId: string },
): Counted {
  if (pot === undefined) return told(players, undefined, spin.playerId);
  const { rules } = pot;
  const progress = pot.progress + 1;
  const recent = [spin.playerId, ...pot.recent.filter((playerId) => playerId !== spin.playerId)];
  const next = { ...pot, progress, recent };
  const level = rules.tiers.findLastIndex((tier) => progress % tier.at === 0);
  if (progress % rules.interval !== 0 || level < 0) return told(players, next, spin.playerId);
  const { name, amount: whole } = rules.tiers[level]!;
  const isShort = pot.budget < whole;
  const amount = !isShort ? whole : rules.paysRemaining ? pot.budget : 0n;
  if (amount === 0n) return told(players, next, spin.playerId);

  const community = recent.slice(1, 1 + rules.communitySize);
  let part = (amount * rules.triggerPart) / 10_000n;
  const rest = amount - part;
  if (community.length === 0 && !rules.returnsToBudget) part = amount;
  const count = BigInt(community.length);
  const parts: [string, bigint][] = [[spin.playerId, part]];
  for (const [place, playerId] of community.entries())
    parts.push([playerId, rest / count + (BigInt(place) < rest % count ? 1n : 0n)]);
  const total = parts.reduce((sum, [, share]) => sum + share, 0n);
  const after = new Map(players);
  const shareOf = (playerId: string, share: bigint): Share => ({
    event: spin.name,
    gameId: spin.gameId,
    level: level + 1,
    name,
    total,
    amount: share,
    isTrigger: playerId === spin.playerId,
    balance: after.get(playerId)!.balance + share,
  });
  for (const [playerId, amount] of parts) {
    if (amount === 0n) continue;
    const player = after.get(playerId)!;
    const share = shareOf(playerId, amount);
    after.set(playerId, {
      ...player,
      balance: share.balance,
      entries: [...player.entries, share],
      untold: share.isTrigger ? player.untold : [...player.untold, share],
    });
  }
  const emptied = { ...next, budget: pot.budget - total };
  if (total === 0n) return told(after, emptied, spin.playerId);
  return { players: after, pot: emptied, told: shareOf(spin.playerId, part) };
}

/** A spin that fires no event notifies its player of the oldest pending share. */
function told(players: ReadonlyMap<string, Player>, pot: Pot | undefined, playerId: string): Counted {
  const player = players.get(playerId)!;
  const [oldest, ...untold] = player.untold;
  if (oldest === undefined) return { players, pot, told: undefined };
  return { players: new Map(players).set(playerId, { ...player, untold }), pot, told: oldest };
}

/** Formats an amount with at least two decimals and no superfluous zeros. */
export const bonusText = (micros: bigint): string => usd(micros).replace(/0{1,4}$/, '');

/**
 * Compares the notice in a response with the expected notice.
 * @param eventIds known event ids by the spin that fired the event
 * @returns the known event ids including the new one, or a text that describes the fault
 */
export function judgeNotice(
  found: Json | undefined,
  share: Share | undefined,
  eventIds: ReadonlyMap<SpinName, string>,
): ReadonlyMap<SpinName, string> | string {
  if (share === undefined) return found === null ? eventIds : 'no communityBonus';
  const wanted: Record<string, Json> = {
    triggered: true,
    tierName: share.name,
    tierLevel: String(share.level),
    totalAmountUsd: bonusText(share.total),
    yourShareUsd: bonusText(share.amount),
    isTriggerPlayer: share.isTrigger,
  };
  const text = `the communityBonus ${JSON.stringify(wanted)}`;
  if (found === null || found === undefined) return text;
  for (const [name, value] of Object.entries(wanted)) if (at(found, name) !== value) return text;
  const eventId = at(found, 'eventId');
  if (typeof eventId !== 'string') return 'an eventId';
  const known = eventIds.get(share.event);
  if (known !== undefined) return known === eventId ? eventIds : `the event ${known}`;
  if ([...eventIds.values()].includes(eventId)) return 'an event of its own';
  return new Map(eventIds).set(share.event, eventId);
}
