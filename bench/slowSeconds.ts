/** The seconds of an open loop whose answers came late, and what the stores, the processes and the machine did in them. */

/** The answers that came within one second. */
export interface Second {
  /** Seconds since the epoch at which it began. */
  readonly at: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** Something that makes answers late. */
export interface Happening {
  /** Seconds since the epoch: the first and the last one in which it was seen. */
  readonly from: number;
  readonly to: number;
  /** What happenings of one kind are counted by. */
  readonly cause: string;
  /** Of several of a cause, the one with the most is told. */
  readonly amount: number;
  readonly text: string;
}

export interface SlowSecond extends Second {
  readonly causes: readonly string[];
  readonly texts: readonly string[];
}

/** A second is slow where more than one answer in a hundred came later than this. */
export const SLOW_P99_MS = 100;
/** Where nothing was seen. */
export const UNEXPLAINED = 'nothing was seen';

/** The slow ones of the seconds, each with what happened from the time its oldest request was due. */
export function slowSeconds(seconds: readonly Second[], happenings: readonly Happening[]): SlowSecond[] {
  return seconds
    .filter(({ p99Ms }) => p99Ms > SLOW_P99_MS)
    .map((second) => {
      const from = second.at - Math.ceil(second.maxMs / 1000);
      const within = happenings.filter((each) => each.to >= from && each.from <= second.at);
      const worst = new Map<string, Happening>();
      for (const each of within)
        if (each.amount >= (worst.get(each.cause)?.amount ?? 0)) worst.set(each.cause, each);
      return {
        ...second,
        causes: worst.size === 0 ? [UNEXPLAINED] : [...worst.keys()],
        texts: [...worst.values()].map(({ text }) => text),
      };
    });
}

/** A line for each slow second, and how many there were of each cause. */
export function renderSlowSeconds(slow: readonly SlowSecond[], seconds: number): string[] {
  const counts = new Map<string, number>();
  for (const { causes } of slow) for (const cause of causes) counts.set(cause, (counts.get(cause) ?? 0) + 1);
  const byCause = [...counts].sort(([, a], [, b]) => b - a).map(([cause, count]) => `${cause} in ${count}`);
  return [
    `${slow.length} of ${seconds} seconds had a p99 above ${SLOW_P99_MS} ms${slow.length === 0 ? '' : `: ${byCause.join(', ')}`}`,
    ...slow.map(({ at, p99Ms, texts }) => {
      const time = new Date(at * 1000).toISOString().slice(11, 19);
      return `  ${time}  p99 ${p99Ms.toFixed(0).padStart(5)} ms  ${texts.length === 0 ? UNEXPLAINED : texts.join('; ')}`;
    }),
  ];
}
