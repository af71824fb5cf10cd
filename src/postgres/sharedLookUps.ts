/**
 * Look-ups by id that share statements: whoever asks while others are being asked for has their ids in the next one. Planning a
 * statement over the days of the ledger costs as much for one id as for hundreds, and more than finding them.
 */

/** A piece of CSV has 500 spins. */
const IDS_MAX = 512;
/** Statements under way: one is being read by the server while the next is built. */
const STATEMENTS_MAX = 2;

interface Asked<Found> {
  readonly id: bigint;
  readonly resolve: (found: Found | undefined) => void;
  readonly reject: (error: unknown) => void;
}

export class SharedLookUps<Found> {
  readonly #findAll: (ids: readonly bigint[]) => Promise<ReadonlyMap<bigint, Found>>;
  /** As many as the requests that are under way need. */
  readonly #asked: Asked<Found>[] = [];
  #underWay = 0;

  /** @param findAll runs the statement; ids of which it finds nothing are left out of its map */
  constructor(findAll: (ids: readonly bigint[]) => Promise<ReadonlyMap<bigint, Found>>) {
    this.#findAll = findAll;
  }

  /** What was committed before this call is found. @throws what the statement throws */
  find(id: bigint): Promise<Found | undefined> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ id, resolve, reject });
      // Behind the calls that this turn of the event loop still makes.
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
      const found = await this.#findAll([...new Set(asked.map(({ id }) => id))]);
      for (const { id, resolve } of asked) resolve(found.get(id));
    } catch (error) {
      for (const { reject } of asked) reject(error);
    } finally {
      this.#underWay--;
      this.#start();
    }
  }
}
