/**
 * Limits the look-ups of request ids in the ledger: the number under way, in total and per partner, and the
 * number that wait. A partner that keeps repeating old ids therefore only delays its own requests.
 */

const UNDER_WAY_MAX = 12;
const UNDER_WAY_PARTNER_MAX = 4;
const HELD_MAX = 1024;
const HELD_PARTNER_MAX = 128;

/** Too many look-ups of request ids are waiting, so this one was not made. */
export class LookUpsFullError extends Error {}

interface Waiting {
  readonly partnerId: number;
  readonly start: () => void;
}

export class LookUps {
  #underWay = 0;
  readonly #waiting: Waiting[] = [];
  /**
   * By partner: the number of look-ups in progress, and the total number of look-ups in progress or waiting.
   */
  readonly #ofPartners = new Map<number, { underWay: number; held: number }>();
  #held = 0;

  /**
   * Runs a look-up as soon as the limits allow.
   * @throws LookUpsFullError if too many wait; the error of the look-up
   */
  async run<T>(partnerId: number, lookUp: () => Promise<T>): Promise<T> {
    const own = this.#ofPartners.get(partnerId) ?? { underWay: 0, held: 0 };
    if (this.#held >= HELD_MAX || own.held >= HELD_PARTNER_MAX)
      throw new LookUpsFullError('Too many look-ups of request ids are waiting');
    this.#ofPartners.set(partnerId, own);
    own.held++;
    this.#held++;
    try {
      if (this.#underWay < UNDER_WAY_MAX && own.underWay < UNDER_WAY_PARTNER_MAX) this.#begin(own);
      else
        await new Promise<void>((resolve) => {
          const start = (): void => {
            this.#begin(own);
            resolve();
          };
          this.#waiting.push({ partnerId, start });
        });
      try {
        return await lookUp();
      } finally {
        this.#underWay--;
        own.underWay--;
        this.#startNext();
      }
    } finally {
      own.held--;
      this.#held--;
      if (own.held === 0) this.#ofPartners.delete(partnerId);
    }
  }

  #begin(own: { underWay: number }): void {
    this.#underWay++;
    own.underWay++;
  }

  /** Starts the look-up that has waited longest among the partners that are below their limit. */
  #startNext(): void {
    const place = this.#waiting.findIndex(
      ({ partnerId }) => this.#ofPartners.get(partnerId)!.underWay < UNDER_WAY_PARTNER_MAX,
    );
    if (place >= 0) this.#waiting.splice(place, 1)[0]!.start();
  }
}
