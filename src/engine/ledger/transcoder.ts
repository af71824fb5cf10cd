/**
 * Turns outbox records into ledger rows and sums, byte by byte: no text, no number and no object is made of what is only
 * carried from the one to the other. Both sides' layouts are theirs (redis/cellRecords.ts, ledgerRow.store.ts).
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
/** A sum is moved into a BigInt before one more amount could take it out of the safe range. */
const SUM_MAX = 4_000_000_000_000_000;

/** Places of the bytes that a row has of its outbox record: little endian there, big endian in the row. */
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

/** A spin whose payout is above its partner's threshold. */
export interface LargeWin {
  readonly entryId: bigint;
  readonly partnerId: number;
  readonly gameId: number;
  readonly playerId: string;
  readonly requestId: string | null;
  readonly outcomeCode: number;
  readonly outcomeIndex: number;
  /** A tester chose its outcome. */
  readonly isForced?: true;
  /** It ends a round, or is one; of its deal what is known here: the deal may be booked in an earlier flush. */
  readonly round?: { readonly dealId?: bigint };
  readonly payoutMicros: number;
  readonly timeMs: number;
}

interface Sum {
  /** Payouts above this are noted. */
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
  readonly #largeWinThreshold: (partnerId: number) => number | undefined;
  readonly #copy = new CopyWriter();
  #games = new Map<number, Sum>();
  /** Forced spins, by game. */
  #sandbox = new Map<number, Sum>();
  #openings = new Map<number, Sum>();
  #adjustments: FlushTotals['adjustments'] = [];
  #done: { games: Sum[]; sandbox: Sum[]; openings: Sum[] } = { games: [], sandbox: [], openings: [] };
  #progress = new Map<number, FlushTotals['progress'][number]>();
  #rotations: FlushTotals['rotations'][number][] = [];
  #dayNumber = -1;
  #day = '';
  /** Of the stream entry that is taken, and where the next one is. */
  #keys: Buffer = NO_KEYS;
  #keyAt = 0;
  /** What the records say of communal progressives. */
  readonly communal = new CommunalNotes();
  /** The UTC days of the records. */
  readonly days = new Set<string>();
  /** Records since the last reset. */
  entries = 0;
  /** Id of the oldest of them; 0 where there is none. */
  oldestId = 0n;
  /** Id of the newest of them; 0 where there is none. */
  newestId = 0n;
  /** When the oldest of them was made, milliseconds since the epoch. */
  oldestMs = 0;
  /** Large wins among them; also every win of a partner whose threshold is not known yet. */
  largeWins: LargeWin[] = [];
  /** The entries of rounds among them. */
  rounds: RoundEntry[] = [];
  /** The request ids of spins and deals among them, for the runs. */
  readonly requestIds = new RequestPairs();

  /** @param largeWinThreshold micro-USD; asked once a game and flush, so that a spin costs a comparison. */
  constructor(largeWinThreshold: (partnerId: number) => number | undefined) {
    this.#largeWinThreshold = largeWinThreshold;
  }

  /** Begins a flush. */
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
   * Takes the records of one stream entry.
   * @param requestKeys those of their requestIds of spins, in order; empty: they are made here
   * @throws ProgressError where a game's indices do not follow each other; RangeError where a record is of an unknown kind, or there are
   *   fewer keys or more than requestIds.
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
    // They are a view of all that was read with them.
    this.#keys = NO_KEYS;
    if (this.#keyAt !== requestKeys.length) throw new RangeError('The outbox has more keys than requestIds');
  }

  /** The rows, for {@link bookEntries}; a view that holds until the next `reset`. */
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

  /** Writes the row and adds to the sums; gives the place of the next record. */
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

    const row = this.#copy.begin(end - idAt);
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

  /** Takes note of an entry of a round. There are few: a round's answer waits for the flush. */
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
        largeWinMicros: this.#largeWinThreshold(partnerId) ?? 0,
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

  /** Takes note of a record's request id. @param idAt after the partner's number @param requestAt where the id begins @param end after it */
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

  /** Adds to the sum of a partner's adjustments of the day: there are few, and a single one may be all of the safe range. */
  #adjusted(partnerId: number, amount: number): void {
    const sum = this.#adjustments.find((each) => each.partnerId === partnerId && each.day === this.#day);
    if (sum === undefined) {
      this.#adjustments.push({ partnerId, day: this.#day, adjustments: 1, amountMicros: BigInt(amount) });
      return;
    }
    sum.adjustments++;
    sum.amountMicros += BigInt(amount);
  }

  /** The outcomes of a game from its index on are dealt, or voided, up to another one (exclusive). */
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
