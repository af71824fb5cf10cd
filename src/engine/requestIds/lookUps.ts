/**
 * Look-ups in the ledger for partners: so many at a time, of which a partner has a few, and so many that wait. Whoever repeats old
 * ids without end waits behind himself.
 */

const UNDER_WAY_MAX = 12;
const UNDER_WAY_PARTNER_MAX = 4;
const HELD_MAX = 1024;
const HELD_PARTNER_MAX = 128;

/** Too many wait already: nothing was asked. */
export class LookUpsFullError extends Error {}

interface Waiting {
  readonly partnerId: number;
  readonly start: () => void;
}

export class LookUps {
  #underWay = 0;
  readonly #waiting: Waiting[] = [];
  /** By partner: how many are under way, and how many there are in all. */
  readonly #ofPartners = new Map<number, { underWay: number; held: number }>();
  #held = 0;

  /** @throws LookUpsFullError; and what the look-up throws */
  async run<T>(partnerId: number, lookUp: () => Promise<T>): Promise<T> {
    const own = this.#ofPartners.get(partnerId) ?? { underWay: 0, held: 0 };
    if (this.#held >= HELD_MAX || own.held >= HELD_PARTNER_MAX)
      throw new LookUpsFullError('Too many look-ups of request ids wait');
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

  /** The one that waits longest of those whose partner may have one more under way. */
  #startNext(): void {
    const place = this.#waiting.findIndex(
      ({ partnerId }) => this.#ofPartners.get(partnerId)!.underWay < UNDER_WAY_PARTNER_MAX,
    );
    if (place >= 0) this.#waiting.splice(place, 1)[0]!.start();
  }
}
