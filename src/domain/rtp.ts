/** Evaluates whether the payouts of a game agree with its PAR sheet (docs/reports.md). */
import { decimalOf, toCommonExponent } from './decimal.js';
import type { ParSheet } from './par.js';

export interface Paid {
  readonly spins: number;
  /** Return to player: sum of payouts divided by sum of wagers. */
  readonly rtp: number;
}

/**
 * Returns how surprising the observed return is, as s in nats. By Bernstein's inequality, a deviation of this
 * size, up or down, has a probability of at most 2·exp(−s), whatever the sheet and however few the spins. A
 * band of a few σ/√n would raise too many alarms for a game with a jackpot, whose mean is far from normal for
 * millions of spins. For many spins, s is half the square of the deviation in units of σ/√n.
 * @param maxMultiplier largest payout in wagers
 */
export function rtpSurprise(
  { spins, rtp }: Paid,
  certified: { readonly rtp: number; readonly variancePerSpin: number },
  maxMultiplier: number,
): number {
  const deviation = Math.abs(rtp - certified.rtp);
  if (spins === 0 || deviation === 0) return 0;
  // Maximum deviation of one spin from the mean: upwards by the largest payout, downwards by the mean.
  const reach = rtp > certified.rtp ? maxMultiplier - certified.rtp : certified.rtp;
  return (spins * deviation * deviation) / (2 * (certified.variancePerSpin + (reach * deviation) / 3));
}

// Bands --------------------------------------------------------------------------------------------------

/** Quantiles of the standard normal distribution: 95 % and 99 % lie between −q and q. */
const Q95 = 1.959963984540054;
const Q99 = 2.5758293035489004;
/**
 * Surprise in nats beyond which a judgement pages an operator. By chance this happens less than once in 10^13
 * judgements.
 */
const ALERT_NATS = 32;

export const RTP_WINDOWS = ['ROLLING_30', 'LIFE'] as const;
export type RtpWindow = (typeof RTP_WINDOWS)[number];
export const RTP_STATES = ['NOT_JUDGED', 'ALERT', 'TOO_FEW', 'REVIEW', 'WATCH', 'WITHIN'] as const;
export type RtpState = (typeof RTP_STATES)[number];

const RTP_SCALE = 1_000_000n;

/** Returns paid over wagered, rounded half up to 6 decimals. Null if nothing was wagered. */
export function rtpOf(wageredMicros: bigint, paidMicros: bigint): number | null {
  if (wageredMicros <= 0n) return null;
  const scaled = (2n * paidMicros * RTP_SCALE + wageredMicros) / (2n * wageredMicros);
  // The quotient of two exact numbers is rounded to the nearest double, which is the same double that the
  // decimal text of the quotient denotes.
  return Number(scaled) / Number(RTP_SCALE);
}

/** Moments of one spin's payout, in wagers. */
export interface SheetMoments {
  /** Mean, which is the return to player. */
  readonly mean: number;
  /** Standard deviation. */
  readonly sigma: number;
  /** Skewness; 0 if sigma is 0. */
  readonly skewness: number;
  /** Largest payout that can be drawn. */
  readonly maxMultiplier: number;
}

export interface Judged {
  readonly spins: bigint;
  readonly wageredMicros: bigint;
  readonly paidMicros: bigint;
}

export interface RtpJudgement {
  /**
   * Deviation of the observed return from the mean, in standard deviations of the mean. Null if sigma is 0 or
   * the game is not judged.
   */
  readonly z: number | null;
  readonly nats: number | null;
  readonly state: RtpState;
}

const FRACTION_BITS = 64n;

/**
 * Returns a ÷ b as the nearest double or its neighbour, however long both numbers are. b must be positive.
 */
function ratio(a: bigint, b: bigint): number {
  if (a < 0n) return -ratio(-a, b);
  if (a === 0n) return 0;
  const missing = BigInt(Math.max(0, b.toString(2).length - a.toString(2).length)) + FRACTION_BITS;
  const excess = missing > 1000n ? missing - 1000n : 0n;
  return Number((a << missing) / b) / 2 ** Number(missing - excess) / 2 ** Number(excess);
}

/**
 * Computes mean, deviation and skewness of a sheet with normalised probabilities. The sums are exact; only
 * the results are rounded.
 */
export function sheetMoments({ combinations }: Pick<ParSheet, 'combinations'>): SheetMoments {
  const drawn = combinations.filter(({ comboProbability }) => comboProbability > 0);
  const weights = toCommonExponent(drawn.map(({ comboProbability }) => decimalOf(comboProbability))).digits;
  const pays = toCommonExponent(drawn.map(({ payMultiplier }) => decimalOf(payMultiplier)));
  const sums = [0n, 0n, 0n, 0n];
  weights.forEach((weight, i) => {
    let term = weight;
    for (let power = 0; power < sums.length; power++) {
      sums[power]! += term;
      term *= pays.digits[i]!;
    }
  });
  const [total, first, second, third] = sums as [bigint, bigint, bigint, bigint];
  // Central moments multiplied by total² and total³, in units of the pay's last digit.
  const variance = second * total - first * first;
  const cubes = third * total * total - 3n * first * second * total + 2n * first ** 3n;
  const unit = 10n ** BigInt(-pays.exponent);
  const sigmaSquared = ratio(variance, total * total * unit * unit);
  const sigma = Math.sqrt(sigmaSquared);
  return {
    mean: ratio(first, total * unit),
    sigma,
    skewness: variance === 0n ? 0 : ratio(cubes, (total * unit) ** 3n) / (sigmaSquared * sigma),
    maxMultiplier: drawn.reduce((max, { payMultiplier }) => Math.max(max, payMultiplier), 0),
  };
}

/**
 * Returns the number of spins from which the mean is close enough to normal for a band, by Cochran's extended
 * rule of thumb. A sheet that always pays the same needs none. Rounding hides what doubles get wrong.
 */
export const normalFromSpins = ({ sigma, skewness }: Pick<SheetMoments, 'sigma' | 'skewness'>): number =>
  sigma === 0 ? 0 : Math.ceil(halfUp(28 + 25 * skewness * skewness, 3));

const VERDICTS = {
  NOT_JUDGED: 'This return is not judged',
  ALERT: 'Chance does not explain this return',
  REVIEW: 'This return is outside the 99 % band',
  WATCH: 'This return is outside the 95 % band',
  WITHIN: 'This return fits the PAR sheet',
} as const satisfies Record<Exclude<RtpState, 'TOO_FEW'>, string>;

/** Says in words what a return means: the same on each page of the console and in the commands. */
export const rtpVerdict = (state: RtpState, fromSpins: number): string =>
  state === 'TOO_FEW'
    ? `This return can't be judged before ${fromSpins.toLocaleString('en-US')} spins`
    : VERDICTS[state];

/**
 * Judges the payouts of a game by its PAR sheet (docs/reports.md).
 * @param moments undefined if the game's outcomes are not independent draws of a sheet; such a game is not
 * judged
 */
export function judgeRtp(paid: Judged, moments: SheetMoments | undefined): RtpJudgement {
  if (moments === undefined || paid.spins === 0n || paid.wageredMicros <= 0n)
    return { z: null, nats: null, state: 'NOT_JUDGED' };
  const { mean, sigma } = moments;
  if (sigma === 0) {
    const isExact = rtpOf(paid.wageredMicros, paid.paidMicros) === halfUp(mean, 6);
    return { z: null, nats: null, state: isExact ? 'WITHIN' : 'ALERT' };
  }
  const spins = Number(paid.spins);
  const rtp = Number(paid.paidMicros) / Number(paid.wageredMicros);
  const z = ((rtp - mean) * Math.sqrt(spins)) / sigma;
  const certified = { rtp: mean, variancePerSpin: sigma * sigma };
  const nats = rtpSurprise({ spins, rtp }, certified, moments.maxMultiplier);
  return { z, nats, state: stateOf(z, nats, spins < normalFromSpins(moments)) };
}

function stateOf(z: number, nats: number, isTooFew: boolean): RtpState {
  if (nats > ALERT_NATS) return 'ALERT';
  if (isTooFew) return 'TOO_FEW';
  if (Math.abs(z) > Q99) return 'REVIEW';
  return Math.abs(z) > Q95 ? 'WATCH' : 'WITHIN';
}

/**
 * Returns the bands in which the return lies by chance for 95 % and 99 % of all windows with this number of
 * spins, with 6 decimals. Undefined for 0 spins.
 */
export function rtpBands(
  { mean, sigma }: Pick<SheetMoments, 'mean' | 'sigma'>,
  spins: bigint,
): { readonly band95: [number, number]; readonly band99: [number, number] } | undefined {
  if (spins === 0n) return undefined;
  const of = (q: number): [number, number] => {
    const half = (q * sigma) / Math.sqrt(Number(spins));
    return [halfUp(mean - half, 6), halfUp(mean + half, 6)];
  };
  return { band95: of(Q95), band99: of(Q99) };
}

export function halfUp(value: number, decimals: number): number {
  const rounded = Math.round(value * 10 ** decimals) / 10 ** decimals;
  // Replaces −0 by 0.
  return rounded === 0 ? 0 : rounded;
}
