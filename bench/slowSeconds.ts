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
/** Where nothing was seen, and the service was catching up with what earlier seconds had left. */
export const CATCHING_UP = 'catching up';

/** The slow ones of the seconds, each with what happened from the time its oldest request was due. */
export function slowSeconds(seconds: readonly Second[], happenings: readonly Happening[]): SlowSecond[] {
  const slow: SlowSecond[] = [];
  for (const second of seconds) {
    if (second.p99Ms <= SLOW_P99_MS) continue;
    const from = second.at - Math.ceil(second.maxMs / 1000);
    const within = happenings.filter((each) => each.to >= from && each.from <= second.at);
    const worst = new Map<string, Happening>();
    for (const each of within)
      if (each.amount >= (worst.get(each.cause)?.amount ?? 0)) worst.set(each.cause, each);
    const texts = [...worst.values()].map(({ text }) => text);
    if (worst.size > 0) slow.push({ ...second, causes: [...worst.keys()], texts });
    else if (isCatchingUp(second, slow.at(-1)))
      slow.push({ ...second, causes: [CATCHING_UP], texts: [CATCHING_UP] });
    else slow.push({ ...second, causes: [UNEXPLAINED], texts });
  }
  return slow;
}

/** An open loop asks no slower when answers are late: what was left waiting makes the next seconds late, each less than the one before. */
const isCatchingUp = (second: Second, before: SlowSecond | undefined): boolean =>
  before !== undefined &&
  before.at === second.at - 1 &&
  second.p99Ms < before.p99Ms &&
  !before.causes.includes(UNEXPLAINED);

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
