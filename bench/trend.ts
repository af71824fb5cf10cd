/** Whether a series of samples is flat: a least-squares line through the means of its buckets. */

export interface Finding {
  readonly what: string;
  readonly isMet: boolean;
  /** The means, the slope and the bound, for people. */
  readonly text: string;
}

/** Samples in the order in which they were taken. */
export interface Samples {
  readonly name: string;
  readonly unit: string;
  readonly samples: (readonly [seconds: number, value: number])[];
}

export interface Bound {
  /** The line may rise by so much over the part that is judged, in the samples' unit, … */
  readonly rise: number;
  /** … or by this share of the mean, where that is more. */
  readonly share: number;
}

/** What repeats itself within a bucket, such as requestIds that are let go once a minute, is no trend. */
const BUCKETS_MIN = 3;

/** @param fromSeconds what came before is the warm-up @param bucketSeconds the buckets' length */
export function judge(
  { name, unit, samples }: Samples,
  bound: Bound,
  fromSeconds: number,
  bucketSeconds: number,
): Finding {
  const means = bucketMeans(samples, fromSeconds, bucketSeconds);
  const what = `${name}: flat`;
  if (samples.length === 0) return { what, isMet: false, text: 'not measured: the service does not tell it' };
  if (means.length < BUCKETS_MIN)
    return { what, isMet: false, text: 'too short to tell: three minutes after the warm-up are needed' };
  const mean = means.reduce((sum, value) => sum + value, 0) / means.length;
  const rise = slope(means) * (means.length - 1);
  const allowed = Math.max(bound.rise, bound.share * mean);
  const minutes = ((means.length * bucketSeconds) / 60).toFixed(0);
  const text = `mean ${mean.toFixed(1)} ${unit}, ${rise < 0 ? 'falls' : 'rises'} by ${Math.abs(rise).toFixed(1)} in ${minutes} min (bound ${allowed.toFixed(1)})`;
  return { what, isMet: rise <= allowed, text };
}

/** Of whole buckets only. */
function bucketMeans(samples: Samples['samples'], fromSeconds: number, bucketSeconds: number): number[] {
  const lastSeconds = samples.at(-1)?.[0] ?? 0;
  const count = Math.floor((lastSeconds - fromSeconds) / bucketSeconds);
  return Array.from({ length: Math.max(0, count) }, (_, bucket) => {
    // Those at the end are kept: the part at the beginning that makes no bucket belongs to the warm-up.
    const from = lastSeconds - (count - bucket) * bucketSeconds;
    const own = samples.filter(([seconds]) => seconds > from && seconds <= from + bucketSeconds);
    return own.reduce((sum, [, value]) => sum + value, 0) / own.length;
  });
}

/** Least squares, per step. */
function slope(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  let over = 0;
  let under = 0;
  for (const [place, value] of values.entries()) {
    over += (place - middle) * (value - mean);
    under += (place - middle) ** 2;
  }
  return over / under;
}
