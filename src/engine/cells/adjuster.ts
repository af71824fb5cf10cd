/** Adjusts a player's balance exactly once for each request id, without a time limit (intents.ts). */

import type { EngineStore } from '../engine.store.js';
import { SPIN_STATUS } from '../redis/statuses.js';
import type { Adjustment, Intent } from './adjustments.store.js';
import { ADJUST } from './adjustOperation.js';
import { type IntendedRequest, type IntentAnswer, type IntentOptions, Intents } from './intents.js';

export interface AdjustedPartner {
  readonly openingBalanceMicros: number;
  readonly enforcesBalance: boolean;
}

interface Done {
  readonly entryId: bigint;
  readonly balanceMicros: number;
}

/**
 * `insufficient`: the new balance would be below zero. `overflow`: it would exceed the largest allowed
 * balance.
 */
type Refusal = 'insufficient' | 'overflow';
export type Adjusted = IntentAnswer<Done, Refusal>;

export interface AdjusterOptions extends IntentOptions {
  readonly store: Pick<EngineStore, 'adjustments' | 'ledgerEntries'>;
}

const REFUSALS: IntendedRequest<Intent, Done, Refusal>['refusals'] = {
  [SPIN_STATUS.insufficientBalance]: ['insufficientBalance', 'insufficient'],
  [SPIN_STATUS.overflow]: ['overflow', 'overflow'],
  [SPIN_STATUS.outboxFull]: ['outboxFull', 'refused'],
};

export class Adjuster {
  readonly #intents: Intents;

  constructor(private readonly options: AdjusterOptions) {
    this.#intents = new Intents(options);
  }

  /**
   * @throws the error of Postgres if the adjustment's intent could not be recorded; the balance is unchanged
   * in that case
   */
  adjust(actor: string, wanted: Adjustment, partner: AdjustedPartner): Promise<Adjusted> {
    const { store, cells, waitsForLedger } = this.options;
    return this.#intents.carryOut<Intent, Done, Refusal>({
      record: async () => {
        const intent = await store.adjustments.record(actor, wanted);
        if (intent === 'reused' || intent.isNew) return intent === 'reused' ? intent : { intent };
        const booked = await store.ledgerEntries.findAdjustment(wanted.partnerId, wanted.requestId);
        if (booked === undefined) return { intent };
        return { done: { entryId: booked.id, balanceMicros: booked.balanceMicros } };
      },
      execute: (intent, deadline) =>
        cells.execute(ADJUST, { ...intent, ...partner, waitsForLedger, deadline }),
      doneBy: (_, { entryId, afterMicros }) => ({ entryId, balanceMicros: afterMicros }),
      withdraw: (intent, refusal) => store.adjustments.withdraw(actor, intent, refusal),
      renumber: (intent) => store.adjustments.renumber(intent),
      refusals: REFUSALS,
    });
  }
}
