/**
 * POST /spin: validates a request, has it dealt and answers.
 *
 *  key ─> window ─> body ─> request id ─> game ─> wager ─> balance, funding ─> queue  (docs/contract.md §8.2)
 *  here   script    here    script        here    here     script              script
 *
 * Faults that are found here are not answered at once. They travel with the batch as a reason to deny the
 * spin, because the rate limit window is checked before them, and because a bound request id is answered by a
 * replay even if the game has changed since.
 */

import { ApiError, ERRORS, type ErrorEntry, type Fault } from '../../domain/errors.js';
import type { Game, Partner } from '../../domain/game.js';
import { decimalTextToMicros, microsToUsdText } from '../../domain/money.js';
import { KIND } from '../../engine/cells/batch.js';
import type { DealtSpin, SpinCommand, SpinResult } from '../../engine/cells/deal.js';
import type { CellFailure } from '../../engine/cells/operation.js';
import { secondPass } from '../../engine/requestIds/secondPass.js';
import { communityBonus } from '../communal/views.js';
import type { Access } from '../server/access.js';
import type { Admission } from '../server/admission.js';
import { memberText } from '../server/body.js';
import type { Exchange } from '../server/exchange.js';
import { PendingCount, placedAs, windowOf } from '../server/pendingCount.js';
import { REPLAYED, type Replies, type Window } from '../server/reply.js';
import type { Services } from '../server/services.js';
import { denialOf, gameDenial, REFUSALS } from './refusals.js';
import { type ReadBody, readBody } from './spinBody.js';
import { spinResponse } from './spinResponse.js';

export class SpinEndpoint {
  readonly #access: Access;
  readonly #replies: Replies;
  readonly #services: Services;

  constructor(access: Access, replies: Replies, services: Services) {
    this.#access = access;
    this.#replies = replies;
    this.#services = services;
  }

  readonly handle = (exchange: Exchange): void => {
    this.#access.partner(exchange, (admission) => exchange.takeBody(() => this.#read(exchange, admission)));
  };

  #read(exchange: Exchange, admission: Admission): void {
    const read = readBody(exchange);
    if (read instanceof ApiError) {
      const { spinPath } = this.#services;
      new PendingCount(exchange, admission, spinPath, this.#replies, KIND.countSpin, read).submit();
      return;
    }
    const deadline = performance.now() + this.#services.spinPath.deadlineMs;
    const request = { exchange, admission, deadline, ...read, ifUnknown: ERRORS.gameNotRegistered };
    const { catalog } = this.#services;
    if (catalog.game(read.body.gameId) !== undefined) {
      this.#spin(request);
      return;
    }
    catalog.refresh().then(
      () => this.#spin(request),
      // It is unknown whether the game exists, because the catalog could not be refreshed. The rate limit
      // window and a bound requestId are still checked first.
      () => this.#spin({ ...request, ifUnknown: ERRORS.unavailable }),
    );
  }

  #spin(request: SpinRequestOf): void {
    const services = this.#services;
    services.spinPath.submit(new PendingSpin(this.#replies, services, request, KIND.deal));
  }
}

interface SpinRequestOf extends ReadBody {
  readonly exchange: Exchange;
  readonly admission: Admission;
  /** Time by which the spin must be answered, on the scale of performance.now(). */
  readonly deadline: number;
  /** Error if the game is unknown and the requestId is not bound. */
  readonly ifUnknown: ErrorEntry;
}

const SPIN_KINDS = ['spin', 'forcedSpin'] as const;

const faultsOf = (entry: ErrorEntry, game: Game | undefined): readonly Fault[] | undefined =>
  entry !== ERRORS.wagerMismatch || game === undefined
    ? undefined
    : [
        {
          path: '/wagerUsd',
          message: `must be ${microsToUsdText(game.wagerMicros)}, the wager of this game`,
        },
      ];

/**
 * Returns whether a wager has exactly the decimal value of an amount. A double distinguishes decimals of up
 * to 15 digits, so the text of the body is compared only if it has a longer number.
 */
export function isExactly(micros: number, wagerUsd: number, text: string | undefined): boolean {
  // The nearest double of the decimal. JSON.parse returns this double for every notation of the decimal.
  if (wagerUsd !== micros / 1_000_000) return false;
  if (text === undefined || !/[\d.]{16}/.test(text)) return true;
  const written = memberText(text, 'wagerUsd');
  return written !== undefined && decimalTextToMicros(written) === micros;
}

/**
 * A spin that waits for its result. If the ledger may have its requestId, the ledger is asked after the rate
 * limit window and the ids bound in Redis. Requests that these two refuse or answer do not reach the ledger.
 */
class PendingSpin implements SpinCommand {
  readonly cell: number;
  readonly newestMove: number | undefined;
  readonly kind: SpinCommand['kind'];
  readonly deadline: number;
  readonly gameId: number;
  readonly playerId: string;
  readonly requestId: string | undefined;
  readonly clearedAt: number | undefined;
  // What the catalog says of the spin, as of version #judgedAt.
  partner: Partner;
  game: Game | undefined = undefined;
  waitsForLedger = false;
  mayBeBound = false;
  hasOtherWager = false;
  mayEqual = false;
  /** Error because of which the spin must be denied, whatever the dealing switches say. */
  #judgement: ErrorEntry | undefined = undefined;
  #judgedAt: number;
  readonly #exchange: Exchange;
  readonly #admission: Admission;
  readonly #replies: Replies;
  readonly #services: Services;
  readonly #spin: SpinRequestOf;
  /** Error because of which the spin was marked as denied in its batch. */
  #denial: ErrorEntry | undefined;

  /** @param clearedAt version of the filters as of which the ledger does not have the requestId */
  constructor(
    replies: Replies,
    services: Services,
    spin: SpinRequestOf,
    kind: SpinCommand['kind'],
    clearedAt?: number,
  ) {
    const { exchange, admission, body } = spin;
    const { partner } = admission;
    this.#exchange = exchange;
    this.#admission = admission;
    this.#replies = replies;
    this.#services = services;
    this.#spin = spin;
    this.clearedAt = clearedAt;
    this.kind = kind;
    this.deadline = spin.deadline;
    this.partner = partner;
    this.cell = partner.cell;
    this.newestMove = partner.newestMove;
    this.gameId = body.gameId;
    this.playerId = body.playerId;
    this.requestId = body.requestId;
    this.#judgedAt = services.catalog.version;
    this.#judge();
  }

  isGone(): boolean {
    return this.#exchange.aborted || this.#admission.refusal !== undefined;
  }

  judgeAgain(): void {
    const { version } = this.#services.catalog;
    if (version === this.#judgedAt) return;
    this.#judgedAt = version;
    if (this.#admission.refusal === undefined) this.partner = placedAs(this, this.#admission.partner);
    this.#judge();
  }

  #judge(): void {
    const { spinRules, catalog } = this.#services;
    const { ifUnknown, body, text } = this.#spin;
    const found = catalog.game(this.gameId);
    const game = found?.partnerId === this.partner.partnerId ? found : undefined;
    const isRounds = game?.table !== undefined;
    // The requestId may be bound to a spin of exactly this game, but the game cannot be looked up now.
    const isUnsure = ifUnknown === ERRORS.unavailable;
    // A requestId that is bound to a round is never valid for a spin.
    const isWager =
      game === undefined ? isUnsure : !isRounds && isExactly(game.wagerMicros, body.wagerUsd, text);
    const denial = gameDenial(game, isWager, ifUnknown, isRounds ? ERRORS.blackjackOnly : undefined);
    this.game = game;
    this.#judgement = denial;
    this.mayEqual = isWager;
    this.waitsForLedger = spinRules.waitsForLedger(game);
    this.hasOtherWager = game !== undefined && game.poolSize > 0 && denial === ERRORS.wagerMismatch;
    this.mayBeBound =
      this.clearedAt === undefined &&
      game !== undefined &&
      this.requestId !== undefined &&
      spinRules.mayForget(game);
  }

  /**
   * Evaluated when the batch is written, because after the first checks the spin may have waited, or the
   * process may have been paused.
   */
  get isDenied(): boolean {
    this.#denial = this.#denialNow();
    return this.#isFinal(this.#denial);
  }

  /**
   * A wrong wager is not final if the script also checks it, because until the catalog is refreshed, only the
   * script knows that a raffle has just sold out.
   */
  #isFinal(denial: ErrorEntry | undefined): boolean {
    return denial !== undefined && !(denial === ERRORS.wagerMismatch && this.hasOtherWager);
  }

  #denialNow(): ErrorEntry | undefined {
    const { refusal } = this.#admission;
    return denialOf(this.#services.spinRules, this.partner, this.game, refusal, this.#judgement);
  }

  resolve(result: SpinResult): void {
    const window = windowOf(this.partner, true, result);
    switch (result.kind) {
      case 'dealt':
        this.#services.metrics.dealt(this.game!.wagerMicros, this.#answer(result, window, ''));
        return;
      case 'replayed':
        // The presentation of the outcome is unknown while the game cannot be looked up.
        if (this.game === undefined) this.#replies.error(this.#exchange, ERRORS.unavailable, window);
        else this.#answer(result, window, REPLAYED);
        return;
      case 'partnerAway':
        this.#follow();
        return;
      case 'mayBeBound':
        this.#askLedger(result, window);
        return;
      case 'raffleClosed':
        // KS-4218 is a final error, so it is sent only after all tickets are committed. A rebuild would sell
        // an uncommitted ticket again.
        this.#services.spinRules.isSoldOut(this.game!, this.deadline).then((isSoldOut) => {
          const entry = isSoldOut ? ERRORS.raffleClosed : ERRORS.unavailable;
          this.#replies.error(this.#exchange, entry, window);
        });
        return;
      case 'limited':
        this.#refuse(ERRORS.spinRateExceeded, window);
        return;
      case 'refused': {
        const denial = result.refusal === 'denied' ? this.#denial : undefined;
        this.#refuse(denial ?? REFUSALS[result.refusal], window);
        return;
      }
      case 'counted':
        this.#refuse(ERRORS.spinFailed, window);
    }
  }

  fail({ mayHaveRun }: CellFailure): void {
    if (!mayHaveRun && this.#admission.refuses(this.#exchange)) return;
    const entry = mayHaveRun && this.requestId !== undefined ? ERRORS.spinInProgress : ERRORS.unavailable;
    this.#replies.error(this.#exchange, entry);
  }

  #refuse(entry: ErrorEntry, window: Window): void {
    if (this.#admission.refuses(this.#exchange)) return;
    this.#replies.error(this.#exchange, entry, window, { details: faultsOf(entry, this.game) });
  }

  /**
   * Submits the spin to the partner's new cell. The partner is being moved, so the old cell refused the spin
   * without any effect.
   */
  #follow(): void {
    const services = this.#services;
    const arrivedAt = this.deadline - services.spinPath.deadlineMs;
    services.spinRules.whereIs(this.partner, arrivedAt).then((partner) => {
      if (partner === undefined) this.fail({ kind: 'refused', mayHaveRun: false });
      else services.spinPath.submit(new PendingSpin(this.#replies, services, this.#spin, this.kind));
    });
  }

  /**
   * Asks the ledger for the requestId. The request was already counted, and Redis has no binding of the id,
   * but the ledger may have one.
   */
  #askLedger(counted: SpinResult, window: Window): void {
    const services = this.#services;
    const asked = {
      kinds: SPIN_KINDS,
      gameId: this.gameId,
      playerId: this.playerId,
      mayEqual: this.mayEqual,
    };
    services.spinRules.findBound(this.partner, this.requestId!, this.game, this.deadline).then(
      (found) => {
        if (this.#admission.refuses(this.#exchange)) return;
        const denial = this.#denialNow();
        const pass = secondPass(found, { ...asked, isDenied: this.#isFinal(denial) });
        switch (pass.outcome) {
          case 'replay': {
            const { spinId, outcomeCode, balanceMicros, tail } = pass.entry;
            const { remaining, timeMs } = counted;
            this.resolve({ kind: 'replayed', spinId, outcomeCode, balanceMicros, tail, remaining, timeMs });
            return;
          }
          case 'again':
            services.spinPath.submit(
              new PendingSpin(this.#replies, services, this.#spin, KIND.dealCounted, pass.clearedAt),
            );
            return;
          default:
            this.#refuse(pass.outcome === 'conflict' ? ERRORS.requestIdReused : denial!, window);
        }
      },
      () => this.#replies.error(this.#exchange, ERRORS.unavailable, window),
    );
  }

  /** Returns the payout in micro-USD, or undefined if a tester chose the outcome. */
  #answer(result: DealtSpin, window: Window, headers: string): number | undefined {
    const game = this.game!;
    const { spinId, outcomeCode, tail } = result;
    const { notice } = tail;
    let { balanceMicros } = result;
    let bonus: string | undefined;
    if (notice !== undefined) {
      if (notice.isTrigger) balanceMicros += notice.shareMicros;
      bonus = JSON.stringify(communityBonus(this.#services.spinIds, this.partner.partnerId, notice));
    }
    const fragment = game.fragments[outcomeCode]!;
    const response = spinResponse(spinId, fragment, balanceMicros, this.requestId, tail, bonus);
    this.#replies.json(this.#exchange, 200, response, window, headers);
    return tail.isForced ? undefined : game.payoutMicros[outcomeCode]!;
  }
}
