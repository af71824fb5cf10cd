/**
 * Looks up ledger entries that Redis refers to, wherever they are: committed, in the outbox, or in transit
 * between the two.
 */
import { streamIdBefore } from '../../domain/entryId.js';
import type { RedisAuditReads } from '../../engine/redis/auditReads.js';
import type { AuditedEntry, AuditReads } from './auditReads.store.js';

/** Number of ledger entries requested at a time. */
const ENTRIES_AT_A_TIME = 1000;

interface EntryStores {
  readonly postgres: AuditReads;
  readonly redis: RedisAuditReads;
}

/**
 * Question about an entry to which a Redis record refers and which the snapshot lacks, with a callback for
 * the result.
 */
interface Question {
  readonly cell: number;
  readonly id: bigint;
  readonly answer: (entry: AuditedEntry | undefined) => void;
}

export class LedgerEntryLookUp {
  #waiting: Question[] = [];

  constructor(private readonly stores: EntryStores) {}

  ask(question: Question): void {
    this.#waiting.push(question);
  }

  /** True if enough questions are waiting to make a query worth its round trip. */
  get isDue(): boolean {
    return this.#waiting.length >= ENTRIES_AT_A_TIME;
  }

  async answerAll(): Promise<void> {
    let waiting = this.#waiting;
    this.#waiting = [];
    waiting = await this.#fromLedger(waiting);
    waiting = await this.#fromOutboxes(waiting);
    // Entries that were trimmed from the outbox since the first look-up are now in the ledger.
    waiting = await this.#fromLedger(waiting);
    for (const question of waiting) question.answer(undefined);
  }

  async #fromLedger(questions: Question[]): Promise<Question[]> {
    if (questions.length === 0) return questions;
    const ids = [...new Set(questions.map((question) => question.id))].filter((id) => id < 1n << 63n);
    const entries = new Map((await this.stores.postgres.entries(ids)).map((entry) => [entry.id, entry]));
    return answered(questions, entries);
  }

  async #fromOutboxes(questions: Question[]): Promise<Question[]> {
    const byCell = new Map<number, Question[]>();
    for (const question of questions) {
      const asked = byCell.get(question.cell);
      if (asked === undefined) byCell.set(question.cell, [question]);
      else asked.push(question);
    }
    const left: Question[] = [];
    for (const [cell, asked] of byCell) left.push(...(await this.#fromOutbox(cell, asked)));
    return left;
  }

  async #fromOutbox(cell: number, questions: Question[]): Promise<Question[]> {
    const { redis } = this.stores;
    const end = await redis.outboxEnd(cell);
    if (end === undefined) return questions;
    const ids = questions.map((question) => question.id);
    const oldest = ids.reduce((least, id) => (id < least ? id : least));
    const wanted = new Set(ids);
    const entries = new Map<bigint, AuditedEntry>();
    for (let after = streamIdBefore(oldest); entries.size < wanted.size; ) {
      const page = await redis.outbox(cell, after, end);
      if (page.length === 0) break;
      after = page.at(-1)!.streamId;
      for (const { records } of page) {
        for (const record of records ?? []) {
          if (wanted.has(record.id))
            entries.set(record.id, {
              ...record,
              isAdjustment: record.kind === 'adjustment',
              isForced: record.kind === 'forcedSpin',
            });
        }
      }
    }
    return answered(questions, entries);
  }
}

/** Calls back with each entry that was found. Returns the questions whose entry was not found. */
function answered(questions: readonly Question[], entries: ReadonlyMap<bigint, AuditedEntry>): Question[] {
  return questions.filter((question) => {
    const entry = entries.get(question.id);
    if (entry === undefined) return true;
    question.answer(entry);
    return false;
  });
}
