/**
 * Carries out what an operator wants of a communal progressive: first on record (Postgres), then in force (Redis). Funding
 * happens once for each requestId, for ever, as adjustments do (adjuster.ts).
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { CommunalRules, PotState } from '../domain/communal.js';
import type { Funding, FundingIntent } from '../postgres/communal.js';
import type { Store } from '../postgres/store.js';
import { SPIN_STATUS } from '../redis/statuses.js';
import type { CellClient } from './cellClient.js';
import { COMMUNAL_FUND } from './communalFund.js';
import { COMMUNAL_SET } from './communalSet.js';
import type { Confirmations } from './confirmations.js';

/** `unconfirmed`: it may be done, or not; the same again finds out. */
export type Funded =
  | { readonly fundingId: number; readonly budgetMicros: number }
  | 'reused'
  | 'short'
  | 'overflow'
  | 'unconfirmed';

export interface PotKeeperOptions {
  readonly store: Pick<Store, 'recordRules' | 'withdrawRules' | 'recordFunding' | 'withdrawFunding'>;
  readonly cells: Pick<CellClient, 'execute'>;
  /** Id of the newest entry in a cell's outbox; 0: there is none. */
  readonly newestInOutbox: (cell: number) => Promise<bigint>;
  readonly confirmations: Pick<Confirmations, 'cameTo'>;
  /** A change is answered only once the ledger has it. */
  readonly waitsForLedger: boolean;
  /** How long the stores are tried, all tries included. */
  readonly deadlineMs: number;
  readonly onError: (error: unknown, cell: number) => void;
}

const REFUSALS: Readonly<Record<number, readonly [name: string, answer: Funded]>> = {
  [SPIN_STATUS.shortBudget]: ['shortBudget', 'short'],
  [SPIN_STATUS.overflow]: ['overflow', 'overflow'],
  [SPIN_STATUS.outboxFull]: ['outboxFull', 'unconfirmed'],
};
const RETRY_MS = 50;

export class PotKeeper {
  readonly #options: PotKeeperOptions;

  constructor(options: PotKeeperOptions) {
    this.#options = options;
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
    resetsProgress: boolean,
  ): Promise<PotState | undefined> {
    const { store, cells, waitsForLedger, deadlineMs, onError } = this.#options;
    const deadline = performance.now() + deadlineMs;
    const { version, cell, newestMove, epoch } = await store.recordRules(
      actor,
      game.gameId,
      rules,
      resetsProgress,
    );
    const outcome = await cells.execute(COMMUNAL_SET, {
      ...game,
      ...{ cell, newestMove, epoch, version, rules, resetsProgress, waitsForLedger, deadline },
    });
    if (outcome.kind === 'reply' && outcome.reply.status === SPIN_STATUS.dealt) return outcome.reply.state;
    if (outcome.kind === 'reply' || outcome.kind === 'refused') {
      await store.withdrawRules(actor, game.gameId, version).catch((error: unknown) => onError(error, cell));
    }
    return undefined;
  }

  /** @throws what Postgres throws, where nothing was done yet. */
  async fund(actor: string, partnerId: number, wanted: Funding): Promise<Funded> {
    const deadline = performance.now() + this.#options.deadlineMs;
    let isSecond = false;
    while (performance.now() < deadline) {
      const intent = await this.#intent(actor, wanted, deadline);
      if (intent === 'withdrawn') continue;
      if (typeof intent === 'string') return intent;
      if (intent.budgetMicros !== undefined) return { ...intent, budgetMicros: intent.budgetMicros };
      const answer = await this.#send(actor, partnerId, intent, deadline, isSecond);
      if (answer === 'epochMoved') await pause(RETRY_MS);
      else if (answer === 'refusedEarlier') isSecond = true;
      else return answer;
    }
    return 'unconfirmed';
  }

  async #intent(
    actor: string,
    wanted: Funding,
    deadline: number,
  ): Promise<FundingIntent | 'reused' | 'withdrawn' | 'unconfirmed'> {
    const { store } = this.#options;
    const intent = await store.recordFunding(actor, wanted);
    if (typeof intent === 'string' || !intent.isOld || intent.budgetMicros !== undefined) return intent;
    if (!(await this.#isCaughtUp(intent.cell, deadline))) return 'unconfirmed';
    return store.recordFunding(actor, wanted);
  }

  async #send(
    actor: string,
    partnerId: number,
    intent: FundingIntent,
    deadline: number,
    isSecond: boolean,
  ): Promise<Funded | 'epochMoved' | 'refusedEarlier'> {
    const { cells, store, waitsForLedger, onError } = this.#options;
    const outcome = await cells.execute(COMMUNAL_FUND, { ...intent, partnerId, waitsForLedger, deadline });
    if (outcome.kind === 'epochMoved') return 'epochMoved';
    if (outcome.kind !== 'reply') return 'unconfirmed';
    const { status, isEarlier, budgetMicros } = outcome.reply;
    if (status === SPIN_STATUS.conflict) return 'reused';
    if (status === SPIN_STATUS.dealt) return { fundingId: intent.fundingId, budgetMicros };
    // The pot is on record, and Redis does not have it: it is being rebuilt, or its rules were never confirmed.
    if (status === SPIN_STATUS.noBlock) return 'unconfirmed';
    const refusal = REFUSALS[status];
    if (refusal === undefined) throw new Error(`The funding came to status ${status}`);
    // Where this fails the intent stays: it is refused for good, and withdrawn by the request's repetition.
    await store
      .withdrawFunding(actor, intent, refusal[0])
      .catch((error: unknown) => onError(error, intent.cell));
    return isEarlier && !isSecond ? 'refusedEarlier' : refusal[1];
  }

  /** Waits until the ledger has all that a cell of Redis has now. False where that takes too long. */
  async #isCaughtUp(cell: number, deadline: number): Promise<boolean> {
    const { confirmations, newestInOutbox, onError } = this.#options;
    try {
      const newest = await newestInOutbox(cell);
      return await confirmations.cameTo(cell, newest, deadline - performance.now());
    } catch (error) {
      onError(error, cell);
      return false;
    }
  }
}
