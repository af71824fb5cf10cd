/**
 * Carries out what an operator wants of a communal progressive: first on record (Postgres), then in force (Redis). Funding
 * happens once for each requestId, for ever (intents.ts).
 */
import type { CommunalRules, PotState } from '../domain/communal.js';
import type { Funding, FundingIntent } from '../postgres/communal.js';
import type { Store } from '../postgres/store.js';
import { SPIN_STATUS } from '../redis/statuses.js';
import { COMMUNAL_FUND } from './communalFund.js';
import { COMMUNAL_SET } from './communalSet.js';
import { type IntendedRequest, type IntentOptions, Intents } from './intents.js';

interface Done {
  readonly fundingId: number;
  readonly budgetMicros: number;
}
type Refusal = 'short' | 'overflow';
/** `unconfirmed`: it may be done, or not; the same again finds out. */
export type Funded = Done | Refusal | 'reused' | 'unconfirmed';

export interface PotKeeperOptions extends IntentOptions {
  readonly store: Pick<Store, 'communal'>;
}

const REFUSALS: IntendedRequest<FundingIntent, Done, Refusal>['refusals'] = {
  [SPIN_STATUS.shortBudget]: ['shortBudget', 'short'],
  [SPIN_STATUS.overflow]: ['overflow', 'overflow'],
  [SPIN_STATUS.outboxFull]: ['outboxFull', 'refused'],
  // The pot is on record, and Redis does not have it: it is being rebuilt, or its rules were never confirmed.
  [SPIN_STATUS.noBlock]: [undefined, 'refused'],
};

export class PotKeeper {
  readonly #options: PotKeeperOptions;
  readonly #intents: Intents;

  constructor(options: PotKeeperOptions) {
    this.#options = options;
    this.#intents = new Intents(options);
  }

  /**
   * Puts rules in force.
   * @returns where the pot stands; undefined where the store could not confirm it.
   * @throws what Postgres throws, where nothing was done yet.
   */
  async set(
    actor: string,
    game: { readonly gameId: number; readonly partnerId: number },
    rules: CommunalRules,
    how: { readonly resetsProgress: boolean; readonly reason?: string | undefined },
  ): Promise<PotState | undefined> {
    const { store, cells, waitsForLedger, deadlineMs, onError } = this.#options;
    const deadline = performance.now() + deadlineMs;
    const { version, cell, newestMove, epoch } = await store.communal.recordRules(
      actor,
      game.gameId,
      rules,
      how,
    );
    const { resetsProgress } = how;
    const outcome = await cells.execute(COMMUNAL_SET, {
      ...game,
      ...{ cell, newestMove, epoch, version, rules, resetsProgress, waitsForLedger, deadline },
    });
    if (outcome.kind === 'reply' && outcome.reply.status === SPIN_STATUS.dealt) return outcome.reply.state;
    if (outcome.kind === 'reply' || outcome.kind === 'refused') {
      await store.communal
        .withdrawRules(actor, game.gameId, version)
        .catch((error: unknown) => onError(error, cell));
    }
    return undefined;
  }

  /** @throws what Postgres throws, where nothing was done yet. */
  async fund(actor: string, partnerId: number, wanted: Funding): Promise<Funded> {
    const { store, cells, waitsForLedger } = this.#options;
    const funded = await this.#intents.carryOut<FundingIntent, Done, Refusal>({
      record: async () => {
        const intent = await store.communal.recordFunding(actor, wanted);
        if (typeof intent === 'string') return intent;
        const { fundingId, budgetMicros } = intent;
        return budgetMicros === undefined ? { intent } : { done: { fundingId, budgetMicros } };
      },
      execute: (intent, deadline) =>
        cells.execute(COMMUNAL_FUND, { ...intent, partnerId, waitsForLedger, deadline }),
      doneBy: ({ fundingId }, { afterMicros }) => ({ fundingId, budgetMicros: afterMicros }),
      withdraw: (intent, refusal) => store.communal.withdrawFunding(actor, intent, refusal),
      refusals: REFUSALS,
    });
    return funded === 'refused' || funded === 'unknown' ? 'unconfirmed' : funded;
  }
}
