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
import { memberText } from '../server/body.js';
import type { Exchange } from '../server/exchange.js';
import { ownWindow, PendingCount, windowOf } from '../server/pendingCount.js';
import { REPLAYED, type Replies, type Window } from '../server/reply.js';
import type { Services } from '../server/services.js';
import type { SpinBody } from './contract.js';
import { REFUSALS } from './refusals.js';
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
    this.#access.partner(exchange, (partner) => exchange.takeBody(() => this.#read(exchange, partner)));
  };

  #read(exchange: Exchange, partner: Partner): void {
    const read = readBody(exchange);
    if (read instanceof ApiError) {
      this.#services.spinPath.submit(
        new PendingCount(exchange, partner, this.#replies, KIND.countSpin, read),
      );
      return;
    }
    const { gameId } = read.body;
    const game = this.#services.catalog.game(gameId);
    if (game !== undefined) {
      this.#spin(exchange, partner, read, game);
      return;
    }
    this.#services.catalog.refresh().then(
      () => this.#spin(exchange, partner, read, this.#services.catalog.game(gameId)),
      // It is unknown whether the game exists, because the catalog could not be refreshed. The rate limit
      // window and a bound requestId are still checked first.
      () => this.#spin(exchange, partner, read, undefined, ERRORS.unavailable),
    );
  }

  /** @param ifUnknown error if the game is unknown and the requestId is not bound */
  #spin(
    exchange: Exchange,
    partner: Partner,
    { body, text }: ReadBody,
    found: Game | undefined,
    ifUnknown: ErrorEntry = ERRORS.gameNotRegistered,
  ): void {
    const game = found !== undefined && found.partnerId === partner.partnerId ? found : undefined;
    const isRounds = game?.table !== undefined;
    // The requestId may be bound to a spin of exactly this game, but the game cannot be looked up now.
    const isUnsure = ifUnknown === ERRORS.unavailable;
    // A requestId that is bound to a round is never valid for a spin.
    const isWager =
      game === undefined ? isUnsure : !isRounds && isExactly(game.wagerMicros, body.wagerUsd, text);
    let denial: ErrorEntry | undefined;
    if (game === undefined) denial = ifUnknown;
    else if (isRounds) denial = ERRORS.blackjackOnly;
    else if (game.status === 'CLOSED') denial = ERRORS.raffleClosed;
    else if (game.status === 'SUSPENDED') denial = ERRORS.gameNotActive;
    else if (!isWager) denial = ERRORS.wagerMismatch;
    const services = this.#services;
    const spin = { exchange, partner, game, body, denial, isWager };
    services.spinPath.submit(new PendingSpin(this.#replies, services, spin, KIND.deal));
  }
}

/** The state of a spin request after the checks that are possible before it is counted. */
interface JudgedSpin {
  readonly exchange: Exchange;
  readonly partner: Partner;
  readonly game: Game | undefined;
  readonly body: SpinBody;
  /** Error because of which the spin must be denied; undefined if the spin may be dealt. */
  readonly denial: ErrorEntry | undefined;
  readonly isWager: boolean;
  /**
   * Time (performance.now()) at which the old cell of a moving partner first refused the spin. Absent: no
   * cell has refused it.
   */
  readonly awaySince?: number;
}

const SPIN_KINDS = ['spin', 'forcedSpin'] as const;

/** Returns the details of a refusal, in addition to its message. */
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
  readonly waitsForLedger: boolean;
  readonly mayBeBound: boolean;
  readonly hasOtherWager: boolean;
  readonly partner: Partner;
  readonly game: Game | undefined;
  readonly gameId: number;
  readonly playerId: string;
  readonly requestId: string | undefined;
  readonly mayEqual: boolean;
  readonly clearedAt: number | undefined;
  readonly #exchange: Exchange;
  readonly #replies: Replies;
  readonly #services: Services;
  readonly #spin: JudgedSpin;
  /** Error because of which the spin was marked as denied in its batch. */
  #denial: ErrorEntry | undefined;

  /** @param clearedAt version of the filters as of which the ledger does not have the requestId */
  constructor(
    replies: Replies,
    services: Services,
    spin: JudgedSpin,
    kind: SpinCommand['kind'],
    clearedAt?: number,
  ) {
    const { exchange, partner, game, body, isWager } = spin;
    this.#exchange = exchange;
    this.#replies = replies;
    this.#services = services;
    this.#spin = spin;
    this.mayBeBound =
      clearedAt === undefined &&
      game !== undefined &&
      body.requestId !== undefined &&
      services.spinRules.mayForget(game);
    this.hasOtherWager = game !== undefined && game.poolSize > 0 && spin.denial === ERRORS.wagerMismatch;
    this.clearedAt = clearedAt;
    this.kind = kind;
    this.partner = partner;
    this.cell = partner.cell;
    this.newestMove = partner.newestMove;
    this.game = game;
    this.mayEqual = isWager;
    this.waitsForLedger = services.spinRules.waitsForLedger(game);
    this.gameId = body.gameId;
    this.playerId = body.playerId;
    this.requestId = body.requestId;
  }

  get isGone(): boolean {
    return this.#exchange.aborted;
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
   * Returns whether a denial is final. A wrong wager is not final if the script also checks it, because until
   * the catalog is refreshed, only the script knows that a raffle has just sold out.
   */
  #isFinal(denial: ErrorEntry | undefined): boolean {
    return denial !== undefined && !(denial === ERRORS.wagerMismatch && this.hasOtherWager);
  }

  /**
   * Returns the current denial. A dealing switch comes after KS-4006 and before all other errors of a game
   * (docs/contract.md §8.2).
   */
  #denialNow(): ErrorEntry | undefined {
    const { denial } = this.#spin;
    return this.game === undefined ? denial : (this.#services.spinRules.stopOf(this.partner) ?? denial);
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
        this.#services.spinRules.isSoldOut(this.game!).then((isSoldOut) => {
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
    const entry = mayHaveRun && this.requestId !== undefined ? ERRORS.spinInProgress : ERRORS.unavailable;
    this.#replies.error(this.#exchange, entry, ownWindow(this.partner, true));
  }

  #refuse(entry: ErrorEntry, window: Window): void {
    this.#replies.error(this.#exchange, entry, window, { details: faultsOf(entry, this.game) });
  }

  /**
   * Submits the spin to the partner's new cell. The partner is being moved, so the old cell refused the spin
   * without any effect.
   */
  #follow(): void {
    const services = this.#services;
    const { awaySince = performance.now() } = this.#spin;
    services.spinRules.whereIs(this.partner, awaySince).then((partner) => {
      if (partner === undefined) this.fail({ kind: 'refused', mayHaveRun: false });
      else {
        const spin = { ...this.#spin, partner, awaySince };
        services.spinPath.submit(new PendingSpin(this.#replies, services, spin, this.kind));
      }
    });
  }

  /**
   * Asks the ledger for the requestId. The request was already counted, and Redis has no binding of the id,
   * but the ledger may have one.
   */
  #askLedger(counted: SpinResult, window: Window): void {
    const services = this.#services;
    const { isWager } = this.#spin;
    const asked = { kinds: SPIN_KINDS, gameId: this.gameId, playerId: this.playerId, mayEqual: isWager };
    services.spinRules.findBound(this.partner, this.requestId!, this.game).then(
      (found) => {
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

  /** Answers the spin. Returns the payout in micro-USD, or undefined if a tester chose the outcome. */
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
