/**
 * Turns on the threads that make blocks, fair between partners: whose blocks took least thread time is next, and of a partner the
 * game that runs dry first. A partner that comes anew begins with those that wait, not with the time it did not use.
 */
export class FairTurns {
  readonly #slots: number;
  readonly #waiting = new Map<number, Turn[]>();
  /** By partner: thread time used, milliseconds; of partners that wait or have work under way. */
  readonly #used = new Map<number, { ms: number; underWay: number }>();
  #underWay = 0;

  /** @param slots works that may be under way at once */
  constructor(slots: number) {
    this.#slots = slots;
  }

  /**
   * Runs a work once it is its turn.
   * @param secondsLeft asked at each turn: how long the game's outcomes last
   */
  async run<T extends { readonly elapsedMs: number }>(
    partnerId: number,
    secondsLeft: () => number,
    work: () => Promise<T>,
  ): Promise<T> {
    await new Promise<void>((begin) => {
      const turns = this.#waiting.get(partnerId);
      if (turns === undefined) this.#waiting.set(partnerId, [{ secondsLeft, begin }]);
      else turns.push({ secondsLeft, begin });
      if (!this.#used.has(partnerId)) this.#used.set(partnerId, { ms: this.#leastUsed(), underWay: 0 });
      this.#next();
    });
    const used = this.#used.get(partnerId)!;
    try {
      const made = await work();
      used.ms += made.elapsedMs;
      return made;
    } finally {
      used.underWay--;
      this.#underWay--;
      if (used.underWay === 0 && !this.#waiting.has(partnerId)) this.#used.delete(partnerId);
      this.#next();
    }
  }

  #leastUsed(): number {
    let least = Number.POSITIVE_INFINITY;
    for (const { ms } of this.#used.values()) least = Math.min(least, ms);
    return least === Number.POSITIVE_INFINITY ? 0 : least;
  }

  #next(): void {
    while (this.#underWay < this.#slots && this.#waiting.size > 0) {
      const [partnerId, turns] = leastOf([...this.#waiting], ([id]) => {
        const { ms, underWay } = this.#used.get(id)!;
        // What is under way is not measured yet: others come before a second work of the same partner.
        return ms + underWay * UNMEASURED_MS;
      });
      const turn = leastOf(turns, ({ secondsLeft }) => secondsLeft());
      turns.splice(turns.indexOf(turn), 1);
      if (turns.length === 0) this.#waiting.delete(partnerId);
      this.#used.get(partnerId)!.underWay++;
      this.#underWay++;
      turn.begin();
    }
  }
}

interface Turn {
  readonly secondsLeft: () => number;
  readonly begin: () => void;
}

/** Longer than any block takes. */
const UNMEASURED_MS = 10_000;

/** The first of those with the least value. */
function leastOf<T>(items: readonly T[], rank: (item: T) => number): T {
  let found = items[0] as T;
  let value = rank(found);
  for (const item of items) {
    const each = rank(item);
    if (each < value) [found, value] = [item, each];
  }
  return found;
}
