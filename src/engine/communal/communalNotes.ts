/**
 * Collects from the outbox the notes of communal progressives that a flush writes (communalFlush.store.ts).
 */
import { readId, readSafeInt64 } from '../../domain/layout.js';
import { SHARE_TEXT } from '../../domain/layouts.js';
import { OUTBOX } from '../redis/cellRecords.js';
import { readNote } from '../redis/communalRecords.js';
import type { CommunalFlush } from './communalFlush.store.js';

type Mutable<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer Item)[] ? Item[] : T[K] };

const nothing = () => ({
  changes: [] as Mutable<CommunalFlush>['changes'],
  events: [] as Mutable<CommunalFlush>['events'],
  shares: [] as Mutable<CommunalFlush>['shares'],
  notified: [] as Mutable<CommunalFlush>['notified'],
  days: [] as Mutable<CommunalFlush>['days'],
});

export class CommunalNotes {
  #booking = nothing();
  #isEmpty = true;

  begin(): void {
    if (!this.#isEmpty) this.#booking = nothing();
    this.#isEmpty = true;
  }

  /** Notes of communal progressives collected for this flush. Undefined if there are none. */
  get booking(): CommunalFlush | undefined {
    return this.#isEmpty ? undefined : this.#booking;
  }

  /** @throws RangeError if the note's type is unknown */
  note(batch: Buffer, at: number, payloadAt: number, end: number): void {
    this.#isEmpty = false;
    const note = readNote(batch.subarray(payloadAt, end));
    const gameId = batch.readUInt32LE(at + OUTBOX.gameId);
    const { changes, events, notified } = this.#booking;
    if (note.type === 'state') changes.push({ ...note, noteId: readId(batch, at + OUTBOX.id), gameId });
    else if (note.type === 'event') events.push({ ...note, gameId });
    else notified.push(note);
  }

  /**
   * @param eventAt offset of the event's id, which is followed by the flag for the player who fired the event
   */
  share(batch: Buffer, at: number, eventAt: number, partnerId: number, playerId: string, day: string): void {
    this.#isEmpty = false;
    const { shares, days } = this.#booking;
    const gameId = batch.readUInt32LE(at + OUTBOX.gameId);
    const amountMicros = readSafeInt64(batch, at + OUTBOX.creditMicros);
    const { eventId, isTrigger: trigger } = SHARE_TEXT.read(batch, eventAt);
    const isTrigger = trigger === 1;
    shares.push({
      entryId: readId(batch, at + OUTBOX.id),
      eventId,
      gameId,
      partnerId,
      playerId,
      amountMicros,
      isTrigger,
      notifiedBy: isTrigger ? eventId : null,
    });
    const sum = days.find((each) => each.gameId === gameId && each.day === day);
    if (sum === undefined) days.push({ gameId, partnerId, day, shares: 1, paidMicros: BigInt(amountMicros) });
    else {
      sum.shares++;
      sum.paidMicros += BigInt(amountMicros);
    }
  }
}
