/** The operation `deal`: spins of a cell, and requests that count against a window, a batch in one call (lua/deal.lua). */
import type { Partner } from '../domain/game.js';
import type { SpinIds } from '../domain/spinId.js';
import { readId, readSafeInt64 } from '../redis/records.js';
import { SPIN_STATUS } from '../redis/statuses.js';
import { BatchEncoder, type BatchItem, BatchReply, type HandedOverFilters, KIND } from './batch.js';
import type { ExhaustedWindows } from './exhaustedWindows.js';
import type { CellCodec, CellCommand, CellOperation, CellReplies, CellRequest } from './operation.js';

/** What became of one request of a batch. Money in micro-USD. */
export interface SpinResult {
  readonly status: number;
  readonly outcomeCode: number;
  readonly balanceMicros: number;
  /** Empty where nothing was dealt. */
  readonly spinId: string;
  /** Left of the window that the request counts against. */
  readonly remaining: number;
  /** The store's clock, milliseconds since the epoch. */
  readonly timeMs: number;
  /** What the outcome has beside these, the same in each replay; undefined: nothing. */
  readonly tail: Buffer | undefined;
}

export interface SpinRequest extends BatchItem, CellRequest {}
export interface SpinCommand extends SpinRequest, CellCommand<SpinResult> {}
export type DealOperation = CellOperation<SpinRequest, SpinResult>;

/** Batches of a cell that are under way at once, and how many spins the next one waits for meanwhile: docs/adr/0029 has the measurements. */
const SLOTS = 8;
const OVERLAP_MIN = 64;

/**
 * @param batchMax requests in one call at the most
 * @param exhausted told of each window that a request found exhausted
 * @param handedOver absent: Redis holds all request ids that there are
 * @param onReplies told of a call's replies before they are answered
 */
export const dealOperation = (
  spinIds: SpinIds,
  batchMax: number,
  exhausted: ExhaustedWindows,
  handedOver?: HandedOverFilters,
  onReplies?: DealOperation['onReplies'],
): DealOperation => ({
  name: 'deal',
  batchMax,
  slots: SLOTS,
  overlapMin: Math.min(OVERLAP_MIN, batchMax),
  isStored: true,
  waitsForStore: false,
  partnerOf: ({ partner }) => partner.partnerId,
  codec: () => new DealCodec(spinIds, exhausted, handedOver),
  ...(onReplies === undefined ? {} : { onReplies }),
});

const hasCore = (status: number): boolean => status === SPIN_STATUS.dealt || status === SPIN_STATUS.replay;

class DealCodec implements CellCodec<SpinRequest, SpinResult> {
  readonly #spinIds: SpinIds;
  readonly #encoder: BatchEncoder;
  #partners: Partner[] = [];
  #idBlocks = Buffer.alloc(4096);
  readonly #exhausted: ExhaustedWindows;
  #encodedAt = 0;

  constructor(spinIds: SpinIds, exhausted: ExhaustedWindows, handedOver: HandedOverFilters | undefined) {
    this.#spinIds = spinIds;
    this.#encoder = new BatchEncoder(handedOver);
    this.#exhausted = exhausted;
  }

  encode(requests: readonly SpinRequest[]): Buffer[] {
    this.#partners = [];
    this.#encodedAt = performance.now();
    return [this.#encoder.encode(requests, this.#partners)];
  }

  decode(answer: Buffer, requests: readonly SpinRequest[]): CellReplies<SpinResult> {
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
        replies.push({ ...limitedResult(timeMs), status });
        continue;
      }
      const isApi = kind === KIND.countApi;
      const used = isApi ? apiUsed : spinsUsed;
      if (status === SPIN_STATUS.limited) this.#exhausted.learn(partner, kind, timeMs, this.#encodedAt);
      else if (kind !== KIND.dealCounted) used[partnerPlace]!++;
      const limit = isApi ? partner.apiRateLimit : partner.spinRateLimit;
      const isOutcome = hasCore(status);
      if (status === SPIN_STATUS.dealt) newestPlace = i;
      const at = reply.coreAt(i);
      replies.push({
        status,
        outcomeCode: isOutcome ? answer.readUInt16LE(at + 8) : 0,
        balanceMicros: isOutcome ? readSafeInt64(answer, at + 10) : 0,
        spinId: isOutcome ? ids.slice(i * 32, i * 32 + 32) : '',
        remaining: Math.max(0, limit - used[partnerPlace]!),
        timeMs,
        tail: reply.tail(i),
      });
    }
    const entryId = (i: number): bigint => (hasCore(reply.status(i)) ? readId(answer, reply.coreAt(i)) : 0n);
    return {
      replies,
      entryId,
      newestPlace,
      isEntry: (i, { partnerId, playerId, gameId, outcomeCode }) =>
        partnerId === requests[i]!.partner.partnerId &&
        playerId === requests[i]!.playerId &&
        gameId === requests[i]!.gameId &&
        outcomeCode === replies[i]!.outcomeCode,
    };
  }

  /** The spin ids of the whole batch, enciphered in one call: 32 characters each. */
  #enciphered(requests: readonly SpinRequest[], reply: BatchReply): string {
    const bytes = requests.length * 16;
    if (this.#idBlocks.length < bytes) this.#idBlocks = Buffer.alloc(bytes);
    const blocks = this.#idBlocks;
    for (let i = 0; i < requests.length; i++) {
      const at = reply.coreAt(i);
      // Byte by byte: a copy of a part of a buffer makes a view of it first.
      for (let byte = 0; byte < 8; byte++) blocks[i * 16 + byte] = reply.buffer[at + byte]!;
      blocks.writeUInt32LE(requests[i]!.partner.partnerId, i * 16 + 8);
    }
    return this.#spinIds.encode(blocks.subarray(0, bytes));
  }
}

/** The reply to a request whose window is known to be exhausted. @param timeMs the store's clock */
export const limitedResult = (timeMs: number): SpinResult => ({
  status: SPIN_STATUS.limited,
  outcomeCode: 0,
  balanceMicros: 0,
  spinId: '',
  remaining: 0,
  timeMs,
  tail: undefined,
});
