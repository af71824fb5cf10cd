/** What is missing before this process can serve: the answer of GET /readyz. */
import type { Directory } from './directory/directory.js';
import type { Store } from './postgres/store.js';
import type { Lookups } from './redis/lookups.js';

/** @returns a line for each thing; none where all is there. */
export async function missing(
  lookups: Lookups,
  store: Store,
  directory: Directory,
  cells: number,
): Promise<string[]> {
  const answers = await Promise.all([
    soon(store.cellCursor(0)).then(
      () => undefined,
      () => 'Postgres does not answer',
    ),
    soon(
      Promise.all(
        Array.from(
          { length: cells },
          async (_, cell) => (await lookups.epoch(cell)) === directory.epochOf(cell),
        ),
      ),
    ).then(
      (same) => {
        const lost = same.flatMap((isSame, cell) => (isSame ? [] : [cell]));
        return lost.length === 0
          ? undefined
          : `Redis is not what the ledger knows in cells ${lost.join(', ')}`;
      },
      () => 'Redis does not answer',
    ),
  ]);
  return answers.filter((answer) => answer !== undefined);
}

const READY_WITHIN_MS = 2000;

function soon<T>(promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('No answer in time')), READY_WITHIN_MS);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
