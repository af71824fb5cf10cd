/**
 * Carries out an operator's changes of a communal progressive. Each change is recorded in Postgres first and
 * then put into force in Redis. A funding happens only once for each requestId, without a time limit
 * (intents.ts).
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { CommunalRules, PotState } from '../../domain/communal.js';
import { type IntendedRequest, type IntentOptions, Intents } from '../cells/intents.js';
import type { EngineStore } from '../engine.store.js';
import { SPIN_STATUS } from '../redis/statuses.js';
import type { Funding, FundingIntent } from './communal.store.js';
import { COMMUNAL_FUND } from './communalFundOperation.js';
import { COMMUNAL_SET, type CommunalSetRequest } from './communalSetOperation.js';

interface Done {
  readonly fundingId: number;
  readonly budgetMicros: number;
}
type Refusal = 'short' | 'overflow';
/**
 * Result of a funding. `unconfirmed` means that it may or may not have happened; the result of a repeated
 * request is certain.
 */
export type Funded = Done | Refusal | 'reused' | 'unconfirmed';

export interface PotKeeperOptions extends IntentOptions {
  readonly store: Pick<EngineStore, 'communal'>;
}

const REFUSALS: IntendedRequest<FundingIntent, Done, Refusal>['refusals'] = {
  [SPIN_STATUS.shortBudget]: ['shortBudget', 'short'],
  [SPIN_STATUS.overflow]: ['overflow', 'overflow'],
  [SPIN_STATUS.outboxFull]: ['outboxFull', 'refused'],
  // The pot is recorded in Postgres, but Redis does not have it, because the cell is being rebuilt or the
  // pot's rules were never confirmed.
  [SPIN_STATUS.noBlock]: [undefined, 'refused'],
};

const RETRY_MS = 50;

export class PotKeeper {
  readonly #intents: Intents;

  constructor(private readonly options: PotKeeperOptions) {
    this.#intents = new Intents(options);
  }

  /**
   * Puts rules into force. Rules that Redis refused are withdrawn. If the result is unknown, the rules stay
   * recorded. Then either a call that is still under way puts them into force, or a rebuild or move of the
   * cell decides (communalRecovery.store.ts).
   *
   * If a later version overtook the rules, or a rebuild or move withdrew them, they are recorded again as the
   * newest version. So rules that are confirmed, and their reset of the counter, were in force.
   * @returns the state of the pot; undefined if Redis could not confirm it
   * @throws errors of Postgres, if nothing was done yet
   */
  async set(
    actor: string,
    game: { readonly gameId: number; readonly partnerId: number },
    rules: CommunalRules,
    how: { readonly resetsProgress: boolean; readonly reason?: string | undefined },
  ): Promise<PotState | undefined> {
    const { store, deadlineMs, onError } = this.options;
    const deadline = performance.now() + deadlineMs;
    let recorded = await store.communal.recordRules(actor, game.gameId, rules, how);
    try {
      for (;;) {
        const { version } = recorded;
        const request = { ...game, ...recorded, rules, resetsProgress: how.resetsProgress };
        const outcome = await this.#putInForce(request, deadline);
        if (typeof outcome === 'object' && (await store.communal.confirmRules(game.gameId, version)))
          return outcome;
        if (outcome === 'unknown') return undefined;
        if (outcome === 'refused' || outcome === 'epochMoved')
          await store.communal.withdrawRules(actor, game.gameId, version);
        if (outcome === 'refused' || performance.now() > deadline) return undefined;
        if (outcome === 'epochMoved') await pause(RETRY_MS);
        recorded = await store.communal.recordRules(actor, game.gameId, rules, how);
      }
    } catch (error) {
      onError(error, recorded.cell);
      return undefined;
    }
  }

  /**
   * Puts recorded rules into force in Redis.
   * @returns `refused` if the rules never come into force; `epochMoved` if they do not come into force under
   * the epoch that they were recorded for; `superseded` if a later version is in force; `unknown` if they may
   * have come or may yet come into force
   */
  async #putInForce(
    request: Omit<CommunalSetRequest, 'intentId' | 'waitsForLedger' | 'deadline'>,
    deadline: number,
  ): Promise<PotState | 'refused' | 'epochMoved' | 'superseded' | 'unknown'> {
    const { store, cells, waitsForLedger } = this.options;
    for (;;) {
      const intentId = await store.communal.nextNumber();
      const outcome = await cells.execute(COMMUNAL_SET, { ...request, intentId, waitsForLedger, deadline });
      if (outcome.kind !== 'reply') {
        if (outcome.mayHaveRun) return 'unknown';
        return outcome.kind === 'epochMoved' ? 'epochMoved' : 'refused';
      }
      const { status, state } = outcome.reply;
      if (status === SPIN_STATUS.dealt) return state;
      if (status === SPIN_STATUS.superseded) return 'superseded';
      if (status === SPIN_STATUS.outboxFull) return 'refused';
      // Another change of a progressive was refused after this change got its number, so this change needs a
      // new number.
      if (performance.now() > deadline) return 'refused';
    }
  }

  /** @throws errors of Postgres, if nothing was done yet */
  async fund(actor: string, partnerId: number, wanted: Funding): Promise<Funded> {
    const { store, cells, waitsForLedger } = this.options;
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
      renumber: (intent) => store.communal.renumberFunding(intent),
      refusals: REFUSALS,
    });
    return funded === 'refused' || funded === 'unknown' ? 'unconfirmed' : funded;
  }
}
