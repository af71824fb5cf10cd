/**
 * The communal progressive: a bonus pot of a slot game that fires every so many spins (docs/communal.md has the rules).
 * Pure: what a configuration may be, which tier fires, how its amount is divided, what it returns. lua/ does the same at
 * each spin.
 */

/** What fires when a multiple of `triggerAtSpins` is reached. */
export interface CommunalTier {
  /** 1 … n, in order. */
  readonly tierLevel: number;
  readonly tierName: string;
  /** A multiple of the interval; it rises with the level. */
  readonly triggerAtSpins: number;
  readonly amountMicros: number;
}

export type EmptyCommunity = 'TO_TRIGGER' | 'RETURN_TO_BUDGET';
export type OnShortBudget = 'SKIP' | 'PAY_REMAINING';
export type CommunalStatus = 'ACTIVE' | 'DISABLED' | 'EXHAUSTED';
export type EventStatus = 'PAID' | 'SKIPPED_BUDGET';

/** What an operator sets for a game. */
export interface CommunalRules {
  readonly enabled: boolean;
  readonly triggerInterval: number;
  /** The trigger player's part in hundredths of a percent, 0 … 10,000; the community has the rest. */
  readonly triggerSplit: number;
  readonly tiers: readonly CommunalTier[];
  readonly windowMinutes: number;
  readonly communitySize: number;
  readonly emptyCommunity: EmptyCommunity;
  readonly onShortBudget: OnShortBudget;
}

/** Where the pot of a game stands. */
export interface CommunalState {
  /** Of the rules that are in force: 1, 2, … */
  readonly version: number;
  /** Spins counted. */
  readonly progress: number;
  readonly budgetMicros: number;
}

/** Where a pot stands, and whether its players are remembered: from its first enabling on. */
export interface PotState extends CommunalState {
  readonly remembersPlayers: boolean;
}

export interface PotRecord extends PotState {
  readonly partnerId: number;
  readonly rules: CommunalRules;
}

/** What a spin notifies its player of. */
export interface BonusNotice {
  readonly eventId: bigint;
  readonly tierLevel: number;
  readonly tierName: string;
  /** Paid in all, micro-USD. */
  readonly paidMicros: number;
  readonly shareMicros: number;
  /** The spin fired the event, and its balance has the share in it. */
  readonly isTrigger: boolean;
}

/** The whole of a split. */
export const SPLIT_WHOLE = 10_000;
/** The largest amount of a tier, 1,000,000 USD. */
export const TIER_AMOUNT_MAX_MICROS = 1_000_000_000_000;
export const TIERS_MAX = 10;
export const COMMUNITY_SIZE_MAX = 200;
/** Distinct players that are remembered of a game: the largest community, and the player who fires. */
export const RECENCY_MAX = COMMUNITY_SIZE_MAX + 1;

/** `EXHAUSTED`: the budget is below the smallest tier. */
export function communalStatus(
  { enabled, tiers }: Pick<CommunalRules, 'enabled' | 'tiers'>,
  budgetMicros: number,
): CommunalStatus {
  if (!enabled) return 'DISABLED';
  return budgetMicros < Math.min(...tiers.map(({ amountMicros }) => amountMicros)) ? 'EXHAUSTED' : 'ACTIVE';
}

/** Of a tier that fires more often, even tens of a percent are few spins. */
const SHOWN_FROM_SPINS = 1000;

/** How far the way to a tier is, in percent, rounded down to tens; null where a spin could be timed by it. */
export const progressPct = (progress: number, triggerAtSpins: number): number | null =>
  triggerAtSpins < SHOWN_FROM_SPINS
    ? null
    : Math.floor(((progress % triggerAtSpins) * 10) / triggerAtSpins) * 10;

/**
 * What the bonus returns per spin over the wager while its budget lasts, as a fraction. Of all counts, the share on which a
 * tier fires is that of its multiples that are no multiples of a higher tier (inclusion and exclusion).
 */
export function bonusRtp({ tiers }: Pick<CommunalRules, 'tiers'>, wagerMicros: number): number {
  let perSpin = 0;
  tiers.forEach((tier, place) => {
    perSpin += tier.amountMicros * firingShare(tiers, place);
  });
  return perSpin / wagerMicros;
}

function firingShare(tiers: readonly CommunalTier[], place: number): number {
  const higher = tiers.slice(place + 1);
  let share = 0;
  for (let subset = 0; subset < 2 ** higher.length; subset++) {
    let multiple = BigInt(tiers[place]!.triggerAtSpins);
    let sign = 1;
    higher.forEach(({ triggerAtSpins }, i) => {
      if ((subset & (1 << i)) === 0) return;
      multiple = lcm(multiple, BigInt(triggerAtSpins));
      sign = -sign;
    });
    share += sign / Number(multiple);
  }
  return share;
}

function lcm(a: bigint, b: bigint): bigint {
  let [x, y] = [a, b];
  while (y !== 0n) [x, y] = [y, x % y];
  return (a / x) * b;
}
