/** Shrinks a failed scenario as long as it still fails. */
import type { Operation, Scenario } from './operations.js';

export interface Failure {
  readonly error: unknown;
  /** The scenario up to the operation that failed. */
  readonly scenario: Scenario;
  readonly trace: readonly string[];
}

/** Number of attempts for each smaller scenario, because outcomes differ and a failure may not repeat. */
const TRIES = 2;

/**
 * Removes operations (many at first, then single ones), then partners, then requests that are sent together.
 * @param forMs time in ms after which the smallest scenario so far is returned
 */
export async function shrink(
  first: Failure,
  play: (scenario: Scenario) => Promise<Failure | undefined>,
  forMs: number,
): Promise<{ failure: Failure; tried: number }> {
  const deadline = performance.now() + forMs;
  let failure = first;
  let tried = 0;
  const fails = async (change: Partial<Scenario>): Promise<boolean> => {
    for (let i = 0; i < TRIES && performance.now() < deadline; i++) {
      tried++;
      const smaller = await play({ ...failure.scenario, ...change });
      if (smaller === undefined) continue;
      failure = smaller;
      return true;
    }
    return false;
  };
  const operations = (): readonly Operation[] => failure.scenario.operations;
  let length = Math.ceil(operations().length / 2);
  while (length > 0) {
    // Operations are removed from the end first, because the set-up at the beginning is needed longest.
    for (let from = operations().length - length; from > -length; from -= length) {
      const start = Math.max(0, from);
      await fails({ operations: operations().toSpliced(start, from + length - start) });
    }
    length = length === 1 ? 0 : Math.ceil(length / 2);
  }
  for (const place of [1, 0]) {
    const { partners } = failure.scenario;
    if (partners.length > 1) await fails({ partners: partners.toSpliced(place, 1) });
  }
  for (let place = operations().length - 1; place >= 0; place--) {
    let ask = 0;
    for (let each = operations()[place]; ; each = operations()[place]) {
      if (each === undefined || !('asks' in each) || ask >= each.asks.length) break;
      const fewer = { ...each, asks: each.asks.toSpliced(ask, 1) };
      if (!(await fails({ operations: operations().with(place, fewer) }))) ask++;
    }
  }
  return { failure, tried };
}
