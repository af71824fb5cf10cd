/**
 * Rules of communal progressives: a bonus pot of a slot game that pays each time a certain number of spins is
 * reached (docs/communal.md). Pure functions: the valid configurations, the tier that fires, the division of
 * its amount, and the return. The scripts in lua/ apply the same rules at each spin.
 */

/** A tier fires when the number of spins reaches a multiple of `triggerAtSpins`. */
export interface CommunalTier {
  /** Level of a tier: 1 … n, in order. */
  readonly tierLevel: number;
  readonly tierName: string;
  /** Number of spins after which the tier fires: a multiple of `triggerInterval`, rising with the level. */
  readonly triggerAtSpins: number;
  readonly amountMicros: number;
}

export type EmptyCommunity = 'TO_TRIGGER' | 'RETURN_TO_BUDGET';
export type OnShortBudget = 'SKIP' | 'PAY_REMAINING';
export type CommunalStatus = 'ACTIVE' | 'DISABLED' | 'EXHAUSTED';
export type EventStatus = 'PAID' | 'SKIPPED_BUDGET';

export interface CommunalRules {
  readonly enabled: boolean;
  readonly triggerInterval: number;
  /**
   * Share of the player who triggers the event, in hundredths of a percent, 0 … 10,000. The community gets
   * the rest.
   */
  readonly triggerSplit: number;
  readonly tiers: readonly CommunalTier[];
  readonly windowMinutes: number;
  readonly communitySize: number;
  readonly emptyCommunity: EmptyCommunity;
  readonly onShortBudget: OnShortBudget;
}

export interface CommunalState {
  /** Version of the communal progressive's rules that are in force: 1, 2, … */
  readonly version: number;
  /** Number of spins that the communal progressive has counted. */
  readonly progress: number;
  readonly budgetMicros: number;
}

/**
 * State of a pot, and whether Redis remembers its recent players, which it does once the pot has been
 * enabled.
 */
export interface PotState extends CommunalState {
  readonly remembersPlayers: boolean;
}

export interface PotRecord extends PotState {
  readonly partnerId: number;
  readonly rules: CommunalRules;
}

/** Bonus that a spin notifies its player of. */
export interface BonusNotice {
  readonly eventId: bigint;
  readonly tierLevel: number;
  readonly tierName: string;
  /** Total payout of an event of a communal progressive, in micro-USD. */
  readonly paidMicros: number;
  readonly shareMicros: number;
  /** Whether this spin triggered the event. The share is part of the spin's balance in that case. */
  readonly isTrigger: boolean;
}

/** Value of `triggerSplit` that stands for 100 %. */
export const SPLIT_WHOLE = 10_000;
/** Maximum amount of a communal progressive's tier: 1,000,000 USD. */
export const TIER_AMOUNT_MAX_MICROS = 1_000_000_000_000;
export const TIERS_MAX = 10;
export const COMMUNITY_SIZE_MAX = 200;
/** Number of distinct players remembered for a game: the largest community plus the triggering player. */
export const RECENCY_MAX = COMMUNITY_SIZE_MAX + 1;

/** Returns the status of a pot. `EXHAUSTED` means that the budget is below the smallest tier. */
export function communalStatus(
  { enabled, tiers }: Pick<CommunalRules, 'enabled' | 'tiers'>,
  budgetMicros: number,
): CommunalStatus {
  if (!enabled) return 'DISABLED';
  return budgetMicros < Math.min(...tiers.map(({ amountMicros }) => amountMicros)) ? 'EXHAUSTED' : 'ACTIVE';
}

/**
 * Minimum `triggerAtSpins` of a tier whose progress is published. For a tier that fires more often, a
 * progress rounded to tens of a percent would still be exact to a few spins.
 */
const SHOWN_FROM_SPINS = 1000;

/**
 * Returns the progress towards a tier in percent, rounded down to tens. Null if the progress would help
 * players to time their spins.
 */
export const progressPct = (progress: number, triggerAtSpins: number): number | null =>
  triggerAtSpins < SHOWN_FROM_SPINS
    ? null
    : Math.floor(((progress % triggerAtSpins) * 10) / triggerAtSpins) * 10;

/**
 * Returns the bonus return per spin as a fraction of the wager, while the budget lasts. A tier fires at those
 * of its multiples that are not multiples of a higher tier (inclusion–exclusion).
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
