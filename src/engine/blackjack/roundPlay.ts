/**
 * Deals rounds of blackjack, makes their moves and ends them.
 *
 *   rounds in Postgres + seed ──replay──> state ──move──> next state, money ──> script (Redis): still next?
 *     ^                                                                          │ yes         │ no: moved
 *     └── read again, once the ledger has the preceding step <───────────────────┼─────────────┘
 *                                                                                └──> committed ──> answered
 *
 * A round is read from Postgres only, because every answered step is committed there. Redis has only the
 * number of steps of an open round. That number decides between two concurrent callers, and between a
 * worker's timeout and a player's action.
 */

import type { Game, Partner } from '../../domain/game.js';
import { type Action, IllegalActionError, type Move, type Round } from '../../domain/games/blackjack.js';
import {
  actionsOf,
  moneyOfMove,
  openSteps,
  playRound,
  type RoundRecord,
  stepCode,
  sumOf,
} from '../../domain/games/round.js';
import type { BlackjackTable } from '../../domain/games/tableTerms.js';
import type { CellClient, CommandResult } from '../cells/cellClient.js';
import { type Refusal, refusalOf } from '../cells/scriptRefusals.js';
import type { EngineStore } from '../engine.store.js';
import { SPIN_STATUS } from '../redis/statuses.js';
import type { RequestIds } from '../requestIds/requestIds.js';
import { secondPass } from '../requestIds/secondPass.js';
import { ROUND_ACT, type RoundActReply, type RoundDealReply, roundDealOperation } from './roundOperations.js';
import type { Shoes } from './shoes.js';

export interface RoundPlayOptions {
  readonly store: Pick<EngineStore, 'rounds'>;
  readonly cells: Pick<CellClient, 'execute'>;
  readonly shoes: Shoes;
  /**
   * Whether a call waits for the ledger to commit the step. A caller that sends no response does not wait.
   */
  readonly waitsForLedger: boolean;
  /**
   * Look-up of the request ids that Redis has already released to Postgres. Absent if this process deals no
   * rounds.
   */
  readonly requestIds?: Pick<RequestIds, 'find' | 'versionOf' | 'mayHave'>;
}

export interface RoundCaller {
  readonly partner: Partner;
  /** Returns the partner's limits as they are now, each time that a call is encoded. */
  readonly limits: () => Partner;
  /** Time by which the request must be answered, on the scale of performance.now(). */
  readonly deadline: number;
  /** Returns true once the key of the request is no longer accepted, so that nothing may be sent. */
  readonly isGone: () => boolean;
}

export interface DealOrder extends RoundCaller {
  /** Table to deal from. Undefined if there is no table with this id that could be dealt. */
  readonly game: Game | undefined;
  /** Game id as the client sent it. */
  readonly gameId: number;
  readonly playerId: string;
  readonly requestId: string | undefined;
  /**
   * Returns whether nothing may be dealt now. In that case, only a request whose requestId is already bound
   * gets its response.
   */
  readonly isDenied: () => boolean;
  /**
   * Whether game and wager of the request are those of the table. Otherwise the request can't be a repetition
   * of an earlier one.
   */
  readonly mayEqual: boolean;
}

type PlaceOfPartner = Pick<Partner, 'cell' | 'newestMove'>;

/**
 * Failure of a call. `refused` means that nothing was done; `unknown` means that the step may have been made.
 */
export type RoundFailure = 'refused' | 'unknown';

export interface KnownRound {
  readonly record: RoundRecord;
  readonly seed: Buffer;
}

export type Dealt =
  | (KnownRound & { readonly isReplay: boolean })
  | { readonly open: RoundRecord }
  | { readonly refusal: Refusal }
  | RoundFailure;

/**
 * Result of an action:
 * - `misplaced`: the action does not fit the state of the round
 * - `insufficient`: the balance is too low
 * - otherwise the action was executed: the round as it was after its first `entries` ledger entries
 */
export type Acted =
  | (KnownRound & { readonly entries: number; readonly isReplay: boolean })
  | MisplacedAction
  | 'insufficient'
  | 'overflow'
  | RoundFailure;

/**
 * An action that was not executed, and the round that it does not fit.
 * - `stale`: `seq` is not the number of the round's next action
 * - `illegal`: the action is not allowed in this state
 */
export interface MisplacedAction extends KnownRound {
  readonly misplaced: 'stale' | 'illegal';
}

/** Maximum number of attempts if other steps of the round are written before the caller's step. */
const TRIES = 8;

interface Step {
  readonly move: Move | 'void';
  readonly stakeMicros: number;
  readonly payoutMicros: number;
  readonly isEnd: boolean;
}

export class RoundPlay {
  readonly #roundDeal: ReturnType<typeof roundDealOperation>;

  constructor(private readonly options: RoundPlayOptions) {
    this.#roundDeal = roundDealOperation(options.requestIds);
  }

  /**
   * @param clearedAt version of the request-id filters for which a look-up in the ledger did not find the
   * requestId
   */
  async deal(order: DealOrder, clearedAt?: number): Promise<Dealt> {
    const { store, shoes } = this.options;
    const { partner, game, playerId, requestId } = order;
    const outcome = await this.#sendDeal(order, clearedAt);
    if (outcome.kind !== 'reply') return outcome.mayHaveRun ? 'unknown' : 'refused';
    const { reply } = outcome;
    if (reply.status === SPIN_STATUS.mayBeBound) return this.#askLedger(order);
    const { status, dealId, shoeIndex, balanceMicros, outcomeCode } = reply;
    if (status === SPIN_STATUS.dealt) {
      // The round is dealt even if its seed can't be read now. Once the seed can be read, a repeated request
      // gets the round.
      const seed = await shoes.seedOf(order.gameId, shoeIndex).catch(() => undefined);
      if (seed === undefined) return 'unknown';
      const record: RoundRecord = {
        gameId: order.gameId,
        partnerId: partner.partnerId,
        playerId,
        shoeIndex,
        requestId: requestId ?? null,
        status: outcomeCode === 0 ? 'OPEN' : 'SETTLED',
        moves: [],
        entryIds: [dealId],
        wagersMicros: [game!.wagerMicros],
        balancesMicros: [balanceMicros],
        payoutMicros: outcomeCode === 0 ? undefined : game!.payoutMicros[outcomeCode]!,
        isToVoid: false,
      };
      return { record, seed, isReplay: false };
    }
    if (status === SPIN_STATUS.replay) return this.#replay(dealId);
    if (status !== SPIN_STATUS.roundOpen) return { refusal: refusalOf(status) };
    const open = await store.rounds.find(dealId).catch(() => undefined);
    return open === undefined ? 'unknown' : { open };
  }

  async #replay(dealId: bigint): Promise<Dealt> {
    const { store, shoes } = this.options;
    const record = await store.rounds.find(dealId).catch(() => undefined);
    // Either Postgres does not respond, or the cell was rebuilt meanwhile and the ledger lacks the entry.
    if (record === undefined) return 'unknown';
    const seed = await shoes.seedOf(record.gameId, record.shoeIndex).catch(() => undefined);
    return seed === undefined ? 'unknown' : { record, seed, isReplay: true };
  }

  /** Looks up the requestId in the ledger, because Redis does not bind it but the ledger may. */
  async #askLedger(order: DealOrder): Promise<Dealt> {
    const found = await this.options.requestIds!.find(order.partner, order.requestId!).catch(() => undefined);
    if (found === undefined) return 'refused';
    const pass = secondPass(found, { kinds: DEAL_KINDS, ...order, isDenied: order.isDenied() });
    switch (pass.outcome) {
      case 'replay':
        return this.#replay(pass.entry.id);
      case 'again':
        return this.deal(order, pass.clearedAt);
      case 'conflict':
        return { refusal: 'conflict' };
      case 'refused':
        return { refusal: 'denied' };
    }
  }

  #sendDeal(order: DealOrder, clearedAt: number | undefined): Promise<CommandResult<RoundDealReply>> {
    const { cells, waitsForLedger } = this.options;
    const { partner, game, playerId, requestId, limits, deadline, isGone } = order;
    return cells.execute(this.#roundDeal, {
      clearedAt,
      limits,
      deadline,
      isGone,
      cell: partner.cell,
      formerCells: partner.formerCells,
      newestMove: partner.newestMove,
      waitsForLedger,
      partnerId: partner.partnerId,
      gameId: order.gameId,
      playerId,
      requestId,
      isDenied: order.isDenied,
      mayEqual: order.mayEqual,
      wagerMicros: game?.wagerMicros ?? 0,
      maxPayoutMicros: game?.maxPayoutMicros ?? 0,
      payoutTable: game?.payoutTable ?? NO_PAYOUTS,
    });
  }

  /** @param record the round as the caller read it */
  async act(
    table: BlackjackTable,
    caller: RoundCaller,
    record: RoundRecord,
    action: Action,
    seq: number,
  ): Promise<Acted> {
    const seed = await this.options.shoes.seedOf(record.gameId, record.shoeIndex);
    return this.#retried(record, async (known) => {
      const actions = actionsOf(known);
      if (seq === actions.length && actions.at(-1) === action)
        return { record: known, seed, entries: entriesOfSeq(seq), isReplay: true };
      if (seq !== actions.length + 1) return { misplaced: 'stale', record: known, seed };
      if (known.status !== 'OPEN') return { misplaced: 'illegal', record: known, seed };
      // A restore of Postgres may have cut a round short. The worker of the cell soon voids such a round.
      // Redis also refuses callers that read the round before the restore.
      if (known.isToVoid) return 'refused';
      const step = stepOf(table, seed, known, action);
      if (step === undefined) return { misplaced: 'illegal', record: known, seed };
      const { limits, deadline, isGone } = caller;
      const enforcesBalance = (): boolean => limits().balanceMode === 'enforce';
      return this.#book(caller.partner, { enforcesBalance, deadline, isGone }, known, seed, step);
    });
  }

  /**
   * Ends a round: plays it out as at a timeout, or voids it and returns its stakes. A round that is marked to
   * be voided is always voided.
   * @returns a misplaced action, `illegal`, if the round has already ended
   */
  async end(
    table: BlackjackTable,
    place: PlaceOfPartner,
    record: RoundRecord,
    how: 'timeout' | 'void',
  ): Promise<Acted> {
    const seed = await this.options.shoes.seedOf(record.gameId, record.shoeIndex);
    return this.#retried(record, async (known) => {
      if (known.status !== 'OPEN') return { misplaced: 'illegal', record: known, seed };
      const step: Step =
        how === 'void' || known.isToVoid
          ? { move: 'void', stakeMicros: -sumOf(known.wagersMicros), payoutMicros: 0, isEnd: true }
          : stepOf(table, seed, known, 'timeout')!;
      return this.#book(place, { enforcesBalance: () => false }, known, seed, step);
    });
  }

  /**
   * Calls `once` with the given record of the round. If another step of the round is written first, reads the
   * round again and calls `once` with the new record.
   */
  async #retried(
    record: RoundRecord,
    once: (known: RoundRecord) => Promise<Acted | 'moved'>,
  ): Promise<Acted> {
    let known = record;
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const answer = await once(known);
      if (answer !== 'moved') return answer;
      const read = await this.options.store.rounds.find(known.entryIds[0]!).catch(() => undefined);
      if (read === undefined) return 'unknown';
      known = read;
    }
    return 'refused';
  }

  async #book(
    { cell, newestMove }: PlaceOfPartner,
    how: { enforcesBalance: () => boolean; deadline?: number; isGone?: () => boolean },
    known: RoundRecord,
    seed: Buffer,
    step: Step,
  ): Promise<Acted | 'moved'> {
    const { cells, waitsForLedger } = this.options;
    const { partnerId, gameId, playerId, shoeIndex, entryIds } = known;
    const { move, stakeMicros, payoutMicros, isEnd } = step;
    const outcome = await cells.execute(ROUND_ACT, {
      cell,
      newestMove,
      waitsForLedger,
      partnerId,
      gameId,
      playerId,
      ...how,
      shoeIndex,
      stakeMicros,
      payoutMicros,
      isEnd,
      steps: openSteps(known),
      kind: move === 'void' ? 'roundVoid' : 'roundAction',
      code: stepCode({ step: entryIds.length, move, isEnd }),
    });
    if (outcome.kind !== 'reply') return outcome.mayHaveRun ? 'unknown' : 'refused';
    switch (outcome.reply.status) {
      case SPIN_STATUS.dealt: {
        const record = withStep(known, step, outcome.reply);
        return { record, seed, entries: record.entryIds.length, isReplay: false };
      }
      case SPIN_STATUS.roundMoved:
        return 'moved';
      case SPIN_STATUS.insufficientBalance:
        return 'insufficient';
      case SPIN_STATUS.overflow:
        return 'overflow';
      default:
        return 'refused';
    }
  }
}

const NO_PAYOUTS = Buffer.alloc(0);
const DEAL_KINDS = ['roundDeal'] as const;

/**
 * Returns the number of ledger entries of a round after the given number of actions: one entry for the deal
 * and one for each action. A timeout or void adds its entry after these.
 */
const entriesOfSeq = (seq: number): number => seq + 1;

/** Returns the effect of a move. Undefined if the move is not legal. */
function stepOf(table: BlackjackTable, seed: Buffer, known: RoundRecord, move: Move): Step | undefined {
  const before = playRound(table, seed, known.moves);
  let after: Round;
  try {
    after = playRound(table, seed, [...known.moves, move]);
  } catch (error) {
    if (error instanceof IllegalActionError) return undefined;
    throw error;
  }
  return { move, ...moneyOfMove(table, before, after) };
}

function withStep(
  known: RoundRecord,
  { move, stakeMicros, payoutMicros, isEnd }: Step,
  { entryId, balanceMicros }: RoundActReply,
): RoundRecord {
  return {
    ...known,
    status: isEnd ? (move === 'void' ? 'VOIDED' : 'SETTLED') : 'OPEN',
    moves: move === 'void' ? known.moves : [...known.moves, move],
    entryIds: [...known.entryIds, entryId],
    wagersMicros: [...known.wagersMicros, stakeMicros],
    balancesMicros: [...known.balancesMicros, balanceMicros],
    payoutMicros: isEnd ? payoutMicros : undefined,
    isToVoid: known.isToVoid && !isEnd,
  };
}
