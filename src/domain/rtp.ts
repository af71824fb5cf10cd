/** Whether what a game has paid is what its sheet lets expect. */
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
