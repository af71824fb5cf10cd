/** Checks whether a value stays flat, by a least-squares line through means of its samples. */
export interface Finding {
  readonly what: string;
  readonly isMet: boolean;
  /** Text that reports the means of the samples, their slope and the permitted growth. */
  readonly text: string;
}

/** Samples in chronological order. */
export interface Samples {
  readonly name: string;
  readonly unit: string;
  readonly samples: (readonly [seconds: number, value: number])[];
}

export interface Bound {
  /** Maximum growth of the line after the warm-up, in the unit of the samples. */
  readonly rise: number;
  /** Maximum growth as a fraction of the mean. The larger of `rise` and `share` applies. */
  readonly share: number;
}

/** Minimum number of buckets. Variations within a bucket are no trend. */
const BUCKETS_MIN = 3;

/** @param fromSeconds end of the warm-up */
export function judge(
  { name, unit, samples }: Samples,
  bound: Bound,
  fromSeconds: number,
  bucketSeconds: number,
): Finding {
  const means = bucketMeans(samples, fromSeconds, bucketSeconds);
  const what = `${name}: flat`;
  if (samples.length === 0)
    return { what, isMet: false, text: 'not measured, because the service does not report it' };
  if (means.length < BUCKETS_MIN)
    return {
      what,
      isMet: false,
      text: 'too short for a trend; the run needs three minutes after the warm-up',
    };
  const mean = means.reduce((sum, value) => sum + value, 0) / means.length;
  const rise = slope(means) * (means.length - 1);
  const allowed = Math.max(bound.rise, bound.share * mean);
  const minutes = ((means.length * bucketSeconds) / 60).toFixed(0);
  const text = `mean ${mean.toFixed(1)} ${unit}, ${rise < 0 ? 'falls' : 'rises'} by ${Math.abs(rise).toFixed(1)} in ${minutes} min (limit ${allowed.toFixed(1)})`;
  return { what, isMet: rise <= allowed, text };
}

function bucketMeans(samples: Samples['samples'], fromSeconds: number, bucketSeconds: number): number[] {
  const lastSeconds = samples.at(-1)?.[0] ?? 0;
  const count = Math.floor((lastSeconds - fromSeconds) / bucketSeconds);
  return Array.from({ length: Math.max(0, count) }, (_, bucket) => {
    // The last bucket ends with the last sample. An incomplete bucket at the beginning counts as warm-up.
    const from = lastSeconds - (count - bucket) * bucketSeconds;
    const own = samples.filter(([seconds]) => seconds > from && seconds <= from + bucketSeconds);
    return own.reduce((sum, [, value]) => sum + value, 0) / own.length;
  });
}

/** Returns the slope of the least-squares line, per step. */
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
