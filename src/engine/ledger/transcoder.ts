/**
 * Converts outbox records to ledger rows and sums, byte by byte. Values that are only copied are never
 * converted to strings, numbers or objects. The layouts are defined in redis/cellRecords.ts and
 * ledgerRow.store.ts.
 */

import { DAY_MS } from '../../domain/days.js';
import { readId, readSafeInt64 } from '../../domain/layout.js';
import { ENTRY, ROTATION } from '../../domain/layouts.js';
import { type EntryDefinition, entryOfCode, type NoteKind } from '../../domain/ledgerEntry.js';
import { keyWord, REQUEST_KEY_BYTES, requestKeyOfBytes } from '../../domain/requestKey.js';
import { RequestPairs } from '../../domain/requestPairs.js';
import type { RoundEntry } from '../blackjack/rounds.store.js';
import { CommunalNotes } from '../communal/communalNotes.js';
import { OUTBOX, outboxTimeMs } from '../redis/cellRecords.js';
import { type FlushedGameDay, type FlushTotals, ProgressError } from './ledger.store.js';
import { CopyWriter, FIXED_MEMBERS, ROW } from './ledgerRow.store.js';

const COLON = 0x3a;
const ZERO = 0x30;
/**
 * Size of a sum at which it is moved into a BigInt, because one more amount could exceed the range of safe
 * integers.
 */
const SUM_MAX = 4_000_000_000_000_000;

/**
 * Offsets of the numbers that a row takes from its outbox record byte by byte. They are little endian in the
 * record and big endian in the row.
 */
const BYTES_FROM: number[] = [];
const BYTES_TO: number[] = [];
for (const member of FIXED_MEMBERS) {
  if (member === 'partnerId') continue;
  for (let i = 0; i < ENTRY.members[member].bytes; i++) {
    BYTES_FROM.push(ENTRY.at[member] + i);
    BYTES_TO.push(ROW[member].at + ROW[member].bytes - 1 - i);
  }
}

const NO_KEYS = Buffer.alloc(0);

/** A spin whose payout is above its partner's threshold for large wins. */
export interface LargeWin {
  readonly entryId: bigint;
  readonly partnerId: number;
  readonly gameId: number;
  readonly playerId: string;
  readonly requestId: string | null;
  readonly outcomeCode: number;
  readonly outcomeIndex: number;
  /** Whether a tester forced the outcome of the winning spin. */
  readonly isForced?: true;
  /**
   * Present if the win ends a blackjack round. `dealId` is missing if the round's deal was committed in an
   * earlier flush.
   */
  readonly round?: { readonly dealId?: bigint };
  readonly payoutMicros: number;
  readonly timeMs: number;
}

interface Sum {
  readonly largeWinMicros: number;
  readonly id: number;
  readonly partnerId: number;
  readonly day: string;
  count: number;
  wagered: number;
  credited: number;
  wageredBefore: bigint;
  creditedBefore: bigint;
}

export class Transcoder {
  readonly #copy = new CopyWriter();
  #games = new Map<number, Sum>();
  #sandbox = new Map<number, Sum>();
  #openings = new Map<number, Sum>();
  #adjustments: FlushTotals['adjustments'] = [];
  #done: { games: Sum[]; sandbox: Sum[]; openings: Sum[] } = { games: [], sandbox: [], openings: [] };
  #progress = new Map<number, FlushTotals['progress'][number]>();
  #rotations: FlushTotals['rotations'][number][] = [];
  #dayNumber = -1;
  #day = '';
  /** Keys of the requestIds in the current stream entry; `#keyAt` is the offset of the next key. */
  #keys: Buffer = NO_KEYS;
  #keyAt = 0;
  readonly communal = new CommunalNotes();
  readonly days = new Set<string>();
  /** Number of outbox records that were converted since the last {@link begin}. */
  entries = 0;
  /** Id of the oldest of these records; 0 if there is none. */
  oldestId = 0n;
  /** Id of the newest of these records; 0 if there is none. */
  newestId = 0n;
  /** Time of the oldest of these records, in milliseconds since the Unix epoch; 0 if there is none. */
  oldestMs = 0;
  /**
   * Large wins among these records. The list also has every win of a partner whose threshold is not known
   * yet.
   */
  largeWins: LargeWin[] = [];
  rounds: RoundEntry[] = [];
  /** Request ids of spins and deals among these records, for the request-id runs. */
  readonly requestIds = new RequestPairs();

  /** Number of large wins and adjustments among these records. */
  get events(): number {
    return this.#adjustments.reduce((sum, { adjustments }) => sum + adjustments, this.largeWins.length);
  }

  /**
   * @param largeWinThreshold returns the threshold in micro-USD. It is called once per game and flush, so
   * that the check of a spin takes only a comparison
   */
  constructor(private readonly largeWinThreshold: (partnerId: number) => number | undefined) {}

  begin(): void {
    this.communal.begin();
    this.#copy.reset();
    this.#games.clear();
    this.#sandbox.clear();
    this.#openings.clear();
    this.#adjustments = [];
    this.#done = { games: [], sandbox: [], openings: [] };
    this.#progress = new Map();
    this.#rotations = [];
    this.#dayNumber = -1;
    this.days.clear();
    this.entries = 0;
    this.oldestId = 0n;
    this.newestId = 0n;
    this.oldestMs = 0;
    this.largeWins = [];
    this.rounds = [];
    this.requestIds.count = 0;
  }

  /**
   * Converts the records of one stream entry to rows and sums.
   * @param requestKeys keys of the spins' requestIds in order; if empty, the transcoder derives the keys
   * @throws ProgressError where a game's indices are not consecutive; RangeError where a record is of an
   * unknown kind, or the number of keys differs from the number of requestIds.
   */
  add(batch: Buffer, requestKeys: Buffer): void {
    let at = 0;
    this.#keys = requestKeys;
    this.#keyAt = 0;
    let last = 0;
    while (at < batch.length) {
      const timeMs = outboxTimeMs(batch, at);
      if (this.entries === 0) {
        this.oldestMs = timeMs;
        this.oldestId = readId(batch, at + OUTBOX.id);
      }
      this.#enterDay(timeMs);
      last = at;
      at = this.#record(batch, at);
      this.entries++;
    }
    this.newestId = readId(batch, last + OUTBOX.id);
    // Drop the keys, because they are a view on the reply of Redis and would keep the whole reply in memory.
    this.#keys = NO_KEYS;
    if (this.#keyAt !== requestKeys.length)
      throw new RangeError('The outbox has more request keys than request ids');
  }

  /** The rows for {@link bookEntries}, as a view that is valid until the next `reset`. */
  rows(): Buffer {
    return this.#copy.rows;
  }

  totals(): FlushTotals {
    this.#closeDay();
    return {
      games: this.#done.games.map(gameDayOf),
      sandbox: this.#done.sandbox.map(gameDayOf),
      openings: this.#done.openings.map((sum) => ({
        partnerId: sum.id,
        day: sum.day,
        players: sum.count,
        openedMicros: sum.creditedBefore + BigInt(sum.credited),
      })),
      adjustments: this.#adjustments,
      progress: [...this.#progress.values()],
      rotations: this.#rotations,
      rounds: this.rounds,
    };
  }

  /**
   * Writes the row of a record and adds the record's amounts to the sums. Returns the offset of the next
   * record.
   */
  #record(batch: Buffer, at: number): number {
    const entry = entryOfCode(batch[at + OUTBOX.kind]!);
    const playerAt = at + OUTBOX.player;
    const requestAt = playerAt + batch.readUInt16LE(at + OUTBOX.playerLength);
    const end = requestAt + batch.readUInt16LE(at + OUTBOX.requestLength);
    let partnerId = 0;
    let idAt = playerAt;
    for (; batch[idAt] !== COLON; idAt++) partnerId = partnerId * 10 + batch[idAt]! - ZERO;
    if (entry.counterpart === 'none') {
      const kind = entry.kind as NoteKind;
      if (kind === 'rotation') this.#rotate(batch, at, requestAt);
      else if (kind === 'communalNote') this.communal.note(batch, at, requestAt, end);
      else kind satisfies never;
      return end;
    }

    const row = this.#copy.begin();
    const out = this.#copy.buffer;
    for (let i = 0; i < BYTES_FROM.length; i++) out[row + BYTES_TO[i]!] = batch[at + BYTES_FROM[i]!]!;
    out.writeInt32BE(partnerId, row + ROW.partnerId.at);
    const gameId = batch.readUInt32LE(at + OUTBOX.gameId);
    const index = batch.readUIntLE(at + OUTBOX.outcomeIndex, 6);
    this.#copy.text(batch, idAt + 1, requestAt, false);
    this.#copy.text(batch, requestAt, end, requestAt === end || entry.requestIds === undefined);
    if (requestAt < end && entry.requestIds === 'spins') this.#requestId(batch, at, idAt, requestAt, end);

    const credit = readSafeInt64(batch, at + OUTBOX.creditMicros);
    if (entry.advancesGameIndex) this.#advance(gameId, index, index + 1);
    if (entry.counterpart === 'opening') {
      this.#add(this.#openings, partnerId, partnerId, 0, credit, 1);
    } else if (entry.counterpart === 'adjustment') {
      this.#adjusted(partnerId, credit);
    } else if (entry.counterpart === 'communal') {
      const playerId = batch.toString('utf8', idAt + 1, requestAt);
      this.communal.share(batch, at, requestAt, partnerId, playerId, this.#day);
    } else {
      const wager = readSafeInt64(batch, at + OUTBOX.wagerMicros);
      const isForced = (entry.counterpart satisfies 'game' | 'sandbox') === 'sandbox';
      const sum = isForced
        ? this.#add(this.#sandbox, gameId, partnerId, wager, credit, 1)
        : this.#add(this.#games, gameId, partnerId, wager, credit, entry.spins);
      if (entry.isOfRound) this.#round(entry, batch, at, idAt + 1, requestAt, end);
      if (credit > sum.largeWinMicros) {
        this.largeWins.push({
          entryId: readId(batch, at + OUTBOX.id),
          partnerId,
          gameId,
          playerId: batch.toString('utf8', idAt + 1, requestAt),
          requestId: requestAt === end ? null : batch.toString('utf8', requestAt, end),
          outcomeCode: batch.readUInt16LE(at + OUTBOX.outcomeCode),
          payoutMicros: credit,
          outcomeIndex: index,
          ...(isForced ? { isForced } : {}),
          ...(entry.isOfRound ? { round: this.#dealOf(gameId, index) } : {}),
          timeMs: outboxTimeMs(batch, at),
        });
      }
    }
    return end;
  }

  #dealOf(gameId: number, shoeIndex: number): { dealId?: bigint } {
    const deal = this.rounds.find(
      (each) => each.kind === 'roundDeal' && each.gameId === gameId && each.shoeIndex === shoeIndex,
    );
    return deal === undefined ? {} : { dealId: deal.id };
  }

  /**
   * Collects an entry of a blackjack round. Such entries are few, because a response of a round waits for the
   * flush.
   */
  #round(
    { kind }: EntryDefinition,
    batch: Buffer,
    at: number,
    playerAt: number,
    requestAt: number,
    end: number,
  ): void {
    this.rounds.push({
      kind: kind as RoundEntry['kind'],
      id: readId(batch, at + OUTBOX.id),
      gameId: batch.readUInt32LE(at + OUTBOX.gameId),
      shoeIndex: batch.readUIntLE(at + OUTBOX.outcomeIndex, 6),
      partnerId: Number(batch.toString('latin1', at + OUTBOX.player, playerAt - 1)),
      playerId: batch.toString('utf8', playerAt, requestAt),
      requestId: requestAt === end ? null : batch.toString('utf8', requestAt, end),
      code: batch.readUInt16LE(at + OUTBOX.outcomeCode),
      wagerMicros: readSafeInt64(batch, at + OUTBOX.wagerMicros),
      creditMicros: readSafeInt64(batch, at + OUTBOX.creditMicros),
      balanceMicros: readSafeInt64(batch, at + OUTBOX.balanceMicros),
    });
  }

  #add(
    sums: Map<number, Sum>,
    id: number,
    partnerId: number,
    wager: number,
    credit: number,
    count: number,
  ): Sum {
    let sum = sums.get(id);
    if (sum === undefined) {
      sum = {
        id,
        partnerId,
        day: this.#day,
        largeWinMicros: this.largeWinThreshold(partnerId) ?? 0,
        count: 0,
        wagered: 0,
        credited: 0,
        wageredBefore: 0n,
        creditedBefore: 0n,
      };
      sums.set(id, sum);
    }
    sum.count += count;
    sum.wagered += wager;
    sum.credited += credit;
    if (sum.wagered > SUM_MAX || sum.credited > SUM_MAX) {
      sum.wageredBefore += BigInt(sum.wagered);
      sum.creditedBefore += BigInt(sum.credited);
      sum.wagered = 0;
      sum.credited = 0;
    }
    return sum;
  }

  /**
   * @param idAt offset after the partner's number
   * @param requestAt start of the request id
   */
  #requestId(batch: Buffer, at: number, idAt: number, requestAt: number, end: number): void {
    const id = at + OUTBOX.id;
    const high = batch.readUInt32LE(id + 4);
    const low = batch.readUInt32LE(id);
    const keys = this.#keys;
    if (keys.length > 0) {
      this.requestIds.add(keys.readUInt32BE(this.#keyAt), keys.readUInt32BE(this.#keyAt + 4), high, low);
      this.#keyAt += REQUEST_KEY_BYTES;
      return;
    }
    const key = requestKeyOfBytes(batch, at + OUTBOX.player, idAt, requestAt, end);
    this.requestIds.add(keyWord(key, 0), keyWord(key, 4), high, low);
  }

  /**
   * Adds an amount to a partner's sum of adjustments of the day. The sum is a BigInt, because a single
   * adjustment may be as large as the safe range. Adjustments are few, so this costs little.
   */
  #adjusted(partnerId: number, amount: number): void {
    const sum = this.#adjustments.find((each) => each.partnerId === partnerId && each.day === this.#day);
    if (sum === undefined) {
      this.#adjustments.push({ partnerId, day: this.#day, adjustments: 1, amountMicros: BigInt(amount) });
      return;
    }
    sum.adjustments++;
    sum.amountMicros += BigInt(amount);
  }

  /**
   * Moves the progress of a game forward: its outcomes from `index` up to `toIndex` (exclusive) are dealt or
   * voided.
   */
  #advance(gameId: number, index: number, toIndex: number): void {
    const progress = this.#progress.get(gameId);
    if (progress === undefined) {
      this.#progress.set(gameId, { gameId, fromIndex: index, toIndex, voided: 0 });
      return;
    }
    if (index !== progress.toIndex) {
      throw new ProgressError(`game ${gameId}: index ${index} follows ${progress.toIndex - 1} in the outbox`);
    }
    progress.toIndex = toIndex;
  }

  #rotate(batch: Buffer, at: number, payloadAt: number): void {
    const gameId = batch.readUInt32LE(at + OUTBOX.gameId);
    const fromIndex = batch.readUIntLE(at + OUTBOX.outcomeIndex, 6);
    const { toIndex } = ROTATION.read(batch, payloadAt);
    this.#advance(gameId, fromIndex, toIndex);
    this.#progress.get(gameId)!.voided += toIndex - fromIndex;
    this.#rotations.push({ entryId: readId(batch, at + OUTBOX.id), gameId, fromIndex, toIndex });
  }

  #enterDay(timeMs: number): void {
    const dayNumber = Math.floor(timeMs / DAY_MS);
    if (dayNumber === this.#dayNumber) return;
    this.#closeDay();
    this.#dayNumber = dayNumber;
    this.#day = new Date(timeMs).toISOString().slice(0, 10);
    this.days.add(this.#day);
  }

  #closeDay(): void {
    this.#done.games.push(...this.#games.values());
    this.#done.sandbox.push(...this.#sandbox.values());
    this.#done.openings.push(...this.#openings.values());
    this.#games.clear();
    this.#sandbox.clear();
    this.#openings.clear();
  }
}

const gameDayOf = (sum: Sum): FlushedGameDay => ({
  gameId: sum.id,
  partnerId: sum.partnerId,
  day: sum.day,
  spins: sum.count,
  wageredMicros: sum.wageredBefore + BigInt(sum.wagered),
  paidMicros: sum.creditedBefore + BigInt(sum.credited),
});
