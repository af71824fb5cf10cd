/**
 * Limits how many jobs run at once, in total and for each owner, and how many wait. An owner with many jobs
 * therefore only delays its own.
 */

export interface FairLimits {
  /** Maximum number of running jobs, in total and for one owner. */
  readonly atOnce: number;
  readonly atOnceOfOwner?: number;
  /** Maximum number of jobs that run or wait, in total and for one owner. */
  readonly held?: number;
  readonly heldOfOwner?: number;
  /**
   * A free turn goes to the owner that has used least: the cost of its finished jobs, and this much for each
   * running job. If none has used anything, because no job has a cost, the owner that waits longest is next.
   */
  readonly runningCost?: number;
}

export interface JobOptions<T> {
  /** How long the job may wait, on the scale of performance.now(). */
  readonly deadline?: number;
  /** Read at each free turn: of an owner's jobs, the one with the lowest rank is next. */
  readonly rank?: () => number;
  /** What the job has used, known once it is done; 0 by default. */
  readonly cost?: (result: T) => number;
}

/** The job was not run, because too many jobs wait. */
export class QueueFullError extends Error {}

/** The job was not run, because its turn did not come by its deadline. */
export class TurnLateError extends Error {}

interface Waiting {
  readonly number: number;
  readonly rank: () => number;
  readonly start: () => void;
}

interface Owner {
  running: number;
  held: number;
  used: number;
  /** In the order in which they began to wait. */
  readonly waiting: Waiting[];
}

export class FairQueue {
  readonly #limits: Required<FairLimits>;
  #running = 0;
  #held = 0;
  #number = 0;
  readonly #owners = new Map<number, Owner>();

  constructor(limits: FairLimits) {
    const none = Number.POSITIVE_INFINITY;
    this.#limits = { atOnceOfOwner: none, held: none, heldOfOwner: none, runningCost: 0, ...limits };
  }

  /**
   * Runs a job as soon as the limits allow.
   * @throws QueueFullError or TurnLateError if the job was not run; otherwise the error of the job
   */
  async run<T>(ownerId: number, job: () => Promise<T>, options: JobOptions<T> = {}): Promise<T> {
    const { atOnce, held, heldOfOwner } = this.#limits;
    const owner = this.#owners.get(ownerId) ?? this.#newOwner();
    if (this.#held >= held || owner.held >= heldOfOwner) throw new QueueFullError('Too many requests wait');
    this.#owners.set(ownerId, owner);
    owner.held++;
    this.#held++;
    try {
      if (this.#running < atOnce && this.#mayRun(owner)) this.#begin(owner);
      else await this.#turn(owner, options);
      try {
        const result = await job();
        owner.used += options.cost?.(result) ?? 0;
        return result;
      } finally {
        this.#running--;
        owner.running--;
        this.#startNext();
      }
    } finally {
      owner.held--;
      this.#held--;
      if (owner.held === 0) this.#owners.delete(ownerId);
    }
  }

  /** An owner gets no credit for the time before it came, so it begins like the other that has used least. */
  #newOwner(): Owner {
    let used = this.#owners.size === 0 ? 0 : Number.POSITIVE_INFINITY;
    for (const other of this.#owners.values()) used = Math.min(used, other.used);
    return { running: 0, held: 0, used, waiting: [] };
  }

  #turn(owner: Owner, { deadline, rank = () => 0 }: JobOptions<never>): Promise<void> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const start = (): void => {
        clearTimeout(timer);
        this.#begin(owner);
        resolve();
      };
      const waiting: Waiting = { number: this.#number++, rank, start };
      owner.waiting.push(waiting);
      if (deadline === undefined) return;
      const giveUp = (): void => {
        owner.waiting.splice(owner.waiting.indexOf(waiting), 1);
        reject(new TurnLateError('The turn of the request did not come in time'));
      };
      timer = setTimeout(giveUp, Math.max(0, deadline - performance.now()));
    });
  }

  #begin(owner: Owner): void {
    owner.running++;
    this.#running++;
  }

  #mayRun({ running }: Owner): boolean {
    return running < this.#limits.atOnceOfOwner;
  }

  #startNext(): void {
    const { runningCost } = this.#limits;
    const owners = [...this.#owners.values()].filter((each) => each.waiting.length > 0 && this.#mayRun(each));
    owners.sort((a, b) => a.waiting[0]!.number - b.waiting[0]!.number);
    const owner = leastOf(owners, ({ running, used }) => used + running * runningCost);
    if (owner === undefined) return;
    const next = leastOf(owner.waiting, ({ rank }) => rank())!;
    owner.waiting.splice(owner.waiting.indexOf(next), 1);
    next.start();
  }
}

/** If several items are equal, returns the first of them. */
function leastOf<T>(items: readonly T[], amount: (item: T) => number): T | undefined {
  let found = items[0];
  let least = found && amount(found);
  for (const item of items) {
    const each = amount(item);
    if (each < least!) [found, least] = [item, each];
  }
  return found;
}
