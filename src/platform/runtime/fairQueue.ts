/**
 * Limits how many jobs run at once, in total and for each owner, and how many wait. An owner with many jobs
 * therefore only delays its own.
 */

export interface FairLimits {
  /** Maximum number of running jobs, in total and for one owner. */
  readonly atOnce: number;
  readonly atOnceOfOwner: number;
  /** Maximum number of jobs that run or wait, in total and for one owner. */
  readonly held: number;
  readonly heldOfOwner: number;
}

/** The job was not run, because too many jobs wait. */
export class QueueFullError extends Error {}

/** The job was not run, because its turn did not come by its deadline. */
export class TurnLateError extends Error {}

interface Waiting {
  readonly owner: number;
  readonly start: () => void;
}

interface OfOwner {
  running: number;
  held: number;
}

export class FairQueue {
  #running = 0;
  #held = 0;
  #waiting: Waiting[] = [];
  readonly #owners = new Map<number, OfOwner>();

  constructor(private readonly limits: FairLimits) {}

  /**
   * Runs a job as soon as the limits allow.
   * @param deadline how long the job may wait, on the scale of performance.now(); undefined: without end
   * @throws QueueFullError or TurnLateError if the job was not run; otherwise the error of the job
   */
  async run<T>(owner: number, job: () => Promise<T>, deadline?: number): Promise<T> {
    const { atOnce, atOnceOfOwner, held, heldOfOwner } = this.limits;
    const own = this.#owners.get(owner) ?? { running: 0, held: 0 };
    if (this.#held >= held || own.held >= heldOfOwner) throw new QueueFullError('Too many requests wait');
    this.#owners.set(owner, own);
    own.held++;
    this.#held++;
    try {
      if (this.#running < atOnce && own.running < atOnceOfOwner) this.#begin(own);
      else await this.#turn(owner, own, deadline);
      try {
        return await job();
      } finally {
        this.#running--;
        own.running--;
        this.#startNext();
      }
    } finally {
      own.held--;
      this.#held--;
      if (own.held === 0) this.#owners.delete(owner);
    }
  }

  #turn(owner: number, own: OfOwner, deadline: number | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const waiting: Waiting = {
        owner,
        start: () => {
          clearTimeout(timer);
          this.#begin(own);
          resolve();
        },
      };
      this.#waiting.push(waiting);
      if (deadline === undefined) return;
      const giveUp = (): void => {
        this.#waiting = this.#waiting.filter((each) => each !== waiting);
        reject(new TurnLateError('The turn of the request did not come in time'));
      };
      timer = setTimeout(giveUp, Math.max(0, deadline - performance.now()));
    });
  }

  #begin(own: OfOwner): void {
    own.running++;
    this.#running++;
  }

  /** Starts the job that has waited longest among the owners that are below their limit. */
  #startNext(): void {
    const place = this.#waiting.findIndex(
      ({ owner }) => this.#owners.get(owner)!.running < this.limits.atOnceOfOwner,
    );
    if (place >= 0) this.#waiting.splice(place, 1)[0]!.start();
  }
}
