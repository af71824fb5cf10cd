/**
 * The cell operation `deal`. One call executes a batch of spins, and of requests that only count against a
 * rate limit window (lua/deal.lua).
 */
import type { Partner } from '../../domain/game.js';
import { readId, readSafeInt64 } from '../../domain/layout.js';
import { CORE } from '../../domain/layouts.js';
import type { SpinIds } from '../../domain/spinId.js';
import { readTail, type SpinTail } from '../../domain/spinTail.js';
import { SPIN_STATUS } from '../redis/statuses.js';
import {
  BatchEncoder,
  type CountItem,
  isSpinItem,
  KIND,
  type RequestIdFilters,
  type SpinItem,
} from './batch.js';
import { BatchReply } from './batchReply.js';
import type { ExhaustedWindows } from './exhaustedWindows.js';
import type { CellCodec, CellCommand, CellOperation, CellReplies, CellRequest } from './operation.js';
import { type Refusal, refusalOf } from './scriptRefusals.js';

/**
 * The rate limit window in which a request was counted: the number of further requests that it allows, and
 * the time of the count.
 */
interface Counted {
  readonly remaining: number;
  /** Time by the clock of Redis, in ms since the Unix epoch. */
  readonly timeMs: number;
}

/** A dealt outcome. Every replay of the spin returns the same outcome. */
export interface DealtSpin extends Counted {
  readonly kind: 'dealt' | 'replayed';
  readonly spinId: string;
  readonly outcomeCode: number;
  /**
   * Balance after the spin, in micro-USD. It does not include a share of a communal progressive that the
   * spin's response notifies the player of.
   */
  readonly balanceMicros: number;
  readonly tail: SpinTail;
}

interface RefusedSpin extends Counted {
  readonly kind: 'refused';
  readonly refusal: Refusal;
}

/**
 * - `counted`: the request was only to be counted, and was.
 * - `limited`: the rate limit window is exhausted.
 * - `partnerAway`: the partner is moving to another cell.
 * - `mayBeBound`: Redis does not bind the requestId, but the ledger may have it.
 * - `raffleClosed`: all tickets of the raffle have been dealt.
 */
interface UndealtSpin extends Counted {
  readonly kind: 'counted' | 'limited' | 'partnerAway' | 'mayBeBound' | 'raffleClosed';
}

export type SpinResult = DealtSpin | RefusedSpin | UndealtSpin;

export interface SpinRequest extends SpinItem, CellRequest {}
/** A request that is only counted. It has no game, player or request id. */
export interface CountRequest extends CountItem, CellRequest {}
export type DealRequest = SpinRequest | CountRequest;

export interface SpinCommand extends SpinRequest, CellCommand<SpinResult> {}
export interface CountCommand extends CountRequest, CellCommand<SpinResult> {}
export type DealCommand = SpinCommand | CountCommand;

export type DealOperation = CellOperation<DealRequest, SpinResult>;

/** Remembers spins that have been answered (answeredSpins.ts). */
export interface AnswersKept {
  remember(
    cell: number,
    epoch: string,
    requests: readonly DealRequest[],
    replies: CellReplies<SpinResult>,
  ): void;
}

export const DEAL = 'deal';

/**
 * Number of batches of a cell that may be under way at once, and the number of waiting spins that start
 * another batch while one is under way. docs/adr/0003 has the measurements.
 */
const SLOTS = 8;
const OVERLAP_MIN = 64;

/**
 * @param exhausted receives each rate limit window that a request found exhausted
 * @param requestIds filters of the released request ids; undefined if Redis holds all request ids
 * @param answered receives the replies of a call before the spins are answered; undefined if answered spins
 * are not remembered
 */
export const dealOperation = (
  spinIds: SpinIds,
  batchMax: number,
  exhausted: ExhaustedWindows,
  requestIds?: RequestIdFilters,
  answered?: AnswersKept,
): DealOperation => ({
  name: DEAL,
  batchMax,
  slots: SLOTS,
  overlapMin: Math.min(OVERLAP_MIN, batchMax),
  isStored: true,
  waitsForStore: false,
  partnerOf: ({ partner }) => partner.partnerId,
  codec: () => new DealCodec(spinIds, exhausted, requestIds),
  onReplies: (cell, epoch, requests, replies) => answered?.remember(cell, epoch, requests, replies),
});

const hasCore = (status: number): boolean => status === SPIN_STATUS.dealt || status === SPIN_STATUS.replay;

const UNDEALT: Readonly<Record<number, UndealtSpin['kind']>> = {
  [SPIN_STATUS.counted]: 'counted',
  [SPIN_STATUS.limited]: 'limited',
  [SPIN_STATUS.mayBeBound]: 'mayBeBound',
  [SPIN_STATUS.raffleClosed]: 'raffleClosed',
};

function undealt(status: number, remaining: number, timeMs: number): SpinResult {
  const kind = UNDEALT[status];
  return kind === undefined
    ? { kind: 'refused', refusal: refusalOf(status), remaining, timeMs }
    : { kind, remaining, timeMs };
}

class DealCodec implements CellCodec<DealRequest, SpinResult> {
  readonly #spinIds: SpinIds;
  readonly #encoder: BatchEncoder;
  #partners: Partner[] = [];
  #idBlocks = Buffer.alloc(4096);
  readonly #exhausted: ExhaustedWindows;
  #encodedAt = 0;

  constructor(spinIds: SpinIds, exhausted: ExhaustedWindows, requestIds: RequestIdFilters | undefined) {
    this.#spinIds = spinIds;
    this.#encoder = new BatchEncoder(requestIds);
    this.#exhausted = exhausted;
  }

  encode(requests: readonly DealRequest[]): Buffer[] {
    this.#partners = [];
    this.#encodedAt = performance.now();
    return [this.#encoder.encode(requests, this.#partners)];
  }

  decode(answer: Buffer, requests: readonly DealRequest[]): CellReplies<SpinResult> {
    const partners = this.#partners;
    const reply = new BatchReply(answer, partners.length, requests.length);
    const { timeMs } = reply;
    const spinsUsed = partners.map((_, place) => reply.spinsUsed(place));
    const apiUsed = partners.map((_, place) => reply.apiUsed(place));
    const ids = this.#enciphered(requests, reply);
    const replies: (SpinResult | undefined)[] = [];
    let newestPlace: number | undefined;
    for (let i = 0; i < requests.length; i++) {
      const { partner, kind } = requests[i]!;
      const partnerPlace = this.#encoder.partnerPlace(i);
      const status = reply.status(i);
      if (status === SPIN_STATUS.deferred) {
        replies.push(undefined);
        continue;
      }
      if (status === SPIN_STATUS.partnerAway) {
        replies.push({ kind: 'partnerAway', remaining: 0, timeMs });
        continue;
      }
      const isApi = kind === KIND.countApi;
      const used = isApi ? apiUsed : spinsUsed;
      if (status === SPIN_STATUS.limited) this.#exhausted.learn(partner, kind, timeMs, this.#encodedAt);
      else if (kind !== KIND.dealCounted) used[partnerPlace]!++;
      const limit = isApi ? partner.apiRateLimit : partner.spinRateLimit;
      const remaining = Math.max(0, limit - used[partnerPlace]!);
      if (!hasCore(status)) {
        replies.push(undealt(status, remaining, timeMs));
        continue;
      }
      if (status === SPIN_STATUS.dealt) newestPlace = i;
      const at = reply.coreAt(i);
      replies.push({
        kind: status === SPIN_STATUS.dealt ? 'dealt' : 'replayed',
        spinId: ids.slice(i * 32, i * 32 + 32),
        outcomeCode: answer.readUInt16LE(at + CORE.at.outcomeCode),
        balanceMicros: readSafeInt64(answer, at + CORE.at.balanceMicros),
        tail: readTail(reply.tail(i)),
        remaining,
        timeMs,
      });
    }
    const entryId = (i: number): bigint => (hasCore(reply.status(i)) ? readId(answer, reply.coreAt(i)) : 0n);
    return {
      replies,
      entryId,
      newestPlace,
      isEntry: (i, row) => {
        const request = requests[i]!;
        return (
          isSpinItem(request) &&
          row.partnerId === request.partner.partnerId &&
          row.playerId === request.playerId &&
          row.gameId === request.gameId &&
          row.outcomeCode === answer.readUInt16LE(reply.coreAt(i) + CORE.at.outcomeCode)
        );
      },
    };
  }

  /** Returns the spin ids of the whole batch, encrypted in one call. Each has 32 characters. */
  #enciphered(requests: readonly DealRequest[], reply: BatchReply): string {
    const bytes = requests.length * 16;
    if (this.#idBlocks.length < bytes) this.#idBlocks = Buffer.alloc(bytes);
    const blocks = this.#idBlocks;
    for (let i = 0; i < requests.length; i++) {
      const at = reply.coreAt(i);
      // The entry id is copied byte by byte, because Buffer.copy would first create a view of the range.
      for (let byte = 0; byte < 8; byte++) blocks[i * 16 + byte] = reply.buffer[at + byte]!;
      blocks.writeUInt32LE(requests[i]!.partner.partnerId, i * 16 + 8);
    }
    return this.#spinIds.encode(blocks.subarray(0, bytes));
  }
}

/**
 * Returns the reply to a request whose rate limit window is exhausted.
 * @param timeMs time by the clock of Redis, in ms since the Unix epoch
 */
export const limitedResult = (timeMs: number): SpinResult => ({ kind: 'limited', remaining: 0, timeMs });
