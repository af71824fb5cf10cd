/** Whether what a game has paid is what its sheet lets expect (docs/reports.md). */
import { decimalOf, toCommonExponent } from './decimal.js';
import type { ParSheet } from './par.js';
import type { OutcomeStatistics } from './presentation.js';

export interface Paid {
  readonly spins: number;
  /** Sum of payouts over sum of wagers. */
  readonly rtp: number;
}

/**
 * How surprising the return to player of so many spins is, in nats: s. By Bernstein's inequality a deviation as large, up or
 * down, has a probability of at most 2·exp(−s), whatever the sheet's shape and however few the spins: of a game with a
 * jackpot, whose mean is far from normal for millions of spins, a band of so many σ/√n would say that much too often.
 * For many spins it is half the square of the deviation in σ/√n.
 * @param maxMultiplier the largest payout in wagers
 */
export function rtpSurprise(
  { spins, rtp }: Paid,
  certified: Pick<OutcomeStatistics, 'rtp' | 'variancePerSpin'>,
  maxMultiplier: number,
): number {
  const deviation = Math.abs(rtp - certified.rtp);
  if (spins === 0 || deviation === 0) return 0;
  // How far one spin can be off: above by the largest payout, below by the mean.
  const reach = rtp > certified.rtp ? maxMultiplier - certified.rtp : certified.rtp;
  return (spins * deviation * deviation) / (2 * (certified.variancePerSpin + (reach * deviation) / 3));
}

// Bands ---------------------------------------------------------------------------------------------------------------

/** Quantiles of the standard normal distribution: 95 and 99 % lie between −q and q. */
const Q95 = 1.959963984540054;
const Q99 = 2.5758293035489004;
/** Beyond it a judgement pages: by chance less than once in 10^13 judgements. */
const ALERT_NATS = 32;

export const RTP_WINDOWS = ['ROLLING_30', 'LIFE'] as const;
export type RtpWindow = (typeof RTP_WINDOWS)[number];
export const RTP_STATES = ['NOT_JUDGED', 'ALERT', 'TOO_FEW', 'REVIEW', 'WATCH', 'WITHIN'] as const;
export type RtpState = (typeof RTP_STATES)[number];

const RTP_SCALE = 1_000_000n;

/** Paid over wagered, to 6 decimals, half up; null where nothing was wagered. */
export function rtpOf(wageredMicros: bigint, paidMicros: bigint): number | null {
  if (wageredMicros <= 0n) return null;
  const scaled = (2n * paidMicros * RTP_SCALE + wageredMicros) / (2n * wageredMicros);
  // Division of two exact numbers gives the double nearest to the quotient, which is the one that its decimals denote.
  return Number(scaled) / Number(RTP_SCALE);
}

/** The shape of one spin's payout, in wagers. */
export interface SheetMoments {
  /** Mean: the return to player. */
  readonly mean: number;
  /** Standard deviation. */
  readonly sigma: number;
  /** Skewness; 0 where sigma is 0. */
  readonly skewness: number;
  /** The largest payout that can be drawn. */
  readonly maxMultiplier: number;
}

export interface Judged {
  readonly spins: bigint;
  readonly wageredMicros: bigint;
  readonly paidMicros: bigint;
}

export interface RtpJudgement {
  /** Deviation of the return in standard deviations of the mean; null where sigma is 0 or nothing is judged. */
  readonly z: number | null;
  readonly nats: number | null;
  readonly state: RtpState;
}

const FRACTION_BITS = 64n;

/** a ÷ b to the nearest double or its neighbour, however long both are. b > 0 */
function ratio(a: bigint, b: bigint): number {
  if (a < 0n) return -ratio(-a, b);
  if (a === 0n) return 0;
  const missing = BigInt(Math.max(0, b.toString(2).length - a.toString(2).length)) + FRACTION_BITS;
  const excess = missing > 1000n ? missing - 1000n : 0n;
  return Number((a << missing) / b) / 2 ** Number(missing - excess) / 2 ** Number(excess);
}

/** Mean, deviation and skewness of a sheet, its probabilities normalised. The sums are exact; only the results are rounded. */
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
  // Central moments times total², and total³, in units of the pay's last digit.
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

/** Spins from which the mean is near enough to normal for a band: Cochran's rule of thumb, extended. */
export const normalFromSpins = ({ skewness }: Pick<SheetMoments, 'skewness'>): number =>
  Math.ceil(28 + 25 * skewness * skewness);

/**
 * Judges what was paid by the sheet (docs/reports.md).
 * @param moments undefined: the game's outcomes are not independent draws of a sheet, and it is not judged
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

/** Between which returns 95, and 99, of 100 windows of so many spins lie by chance. 6 decimals; null without spins. */
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

/** Rounded half up to so many decimals. */
export function halfUp(value: number, decimals: number): number {
  const rounded = Math.round(value * 10 ** decimals) / 10 ** decimals;
  // Not −0.
  return rounded === 0 ? 0 : rounded;
}
