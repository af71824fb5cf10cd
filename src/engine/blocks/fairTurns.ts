/**
 * Shares the threads that make blocks fairly between partners. The partner that has used the least thread
 * time is next. Among this partner's games, the one whose queue runs dry first is next. A partner that begins
 * to wait starts with the least thread time of any waiting partner, so that it gets no credit for the time
 * before that.
 */
export class FairTurns {
  readonly #waiting = new Map<number, Turn[]>();
  /**
   * Thread time used by each partner, in milliseconds. The map has only the partners that wait or have a job
   * running.
   */
  readonly #used = new Map<number, { ms: number; underWay: number }>();
  #underWay = 0;

  constructor(private readonly slots: number) {}

  /**
   * @param secondsLeft returns how long the game's outcomes will last, in seconds; it is called each time
   * that the next job is chosen
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
    while (this.#underWay < this.slots && this.#waiting.size > 0) {
      const [partnerId, turns] = leastOf([...this.#waiting], ([id]) => {
        const { ms, underWay } = this.#used.get(id)!;
        // The duration of a running job is not measured yet, so the job counts as very long. Other partners
        // thus come before a second job of the same partner.
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

/** Assumed duration of a job that is still running, in ms: far more than a block usually takes. */
const UNMEASURED_MS = 10_000;

/** If several items are equal, returns the first of them. */
function leastOf<T>(items: readonly T[], rank: (item: T) => number): T {
  let found = items[0] as T;
  let value = rank(found);
  for (const item of items) {
    const each = rank(item);
    if (each < value) [found, value] = [item, each];
  }
  return found;
}
