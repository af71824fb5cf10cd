/**
 * Batches look-ups by id. Ids that are requested while a statement is running share the next statement.
 * Planning a statement over the daily partitions of the ledger costs as much for one id as for hundreds, and
 * more than finding the rows.
 */

/** Maximum number of ids in one statement. A CSV export, for example, reads 500 spins at a time. */
const IDS_MAX = 512;
/**
 * Maximum number of statements under way. More than one statement is allowed, so that the server executes one
 * while the next is being built.
 */
const STATEMENTS_MAX = 2;

interface Asked<Found> {
  readonly id: bigint;
  readonly resolve: (found: Found | undefined) => void;
  readonly reject: (error: unknown) => void;
}

export class SharedLookUps<Found> {
  /**
   * Look-ups that wait for the next statement. Their number is limited, because the number of requests under
   * way is.
   */
  readonly #asked: Asked<Found>[] = [];
  #underWay = 0;

  /** @param findAll runs the statement; its result has no entry for ids that were not found */
  constructor(private readonly findAll: (ids: readonly bigint[]) => Promise<ReadonlyMap<bigint, Found>>) {}

  /** Finds a value that was committed before this call. */
  find(id: bigint): Promise<Found | undefined> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ id, resolve, reject });
      // The start of the statement is deferred, so that further calls in this turn of the event loop share
      // it.
      if (this.#asked.length === 1) setImmediate(() => this.#start());
    });
  }

  #start(): void {
    while (this.#underWay < STATEMENTS_MAX && this.#asked.length > 0) {
      void this.#run(this.#asked.splice(0, IDS_MAX));
    }
  }

  async #run(asked: readonly Asked<Found>[]): Promise<void> {
    this.#underWay++;
    try {
      const found = await this.findAll([...new Set(asked.map(({ id }) => id))]);
      for (const { id, resolve } of asked) resolve(found.get(id));
    } catch (error) {
      for (const { reject } of asked) reject(error);
    } finally {
      this.#underWay--;
      this.#start();
    }
  }
}
