/**
 * Resolves when the ledger has what was booked in a cell: for commands that are answered only then, and for whoever reads
 * the ledger and must not miss what Redis has.
 *
 * The flusher announces each commit over Redis. While somebody waits, Postgres is asked, too: an announcement may be lost. One
 * question is under way at a time, for all cells and everybody who waits.
 * What is announced of one epoch says nothing of another: a rebuilt cell goes on with higher ids, and what its Redis lost
 * is not in the ledger for that.
 */
import { entryCell } from '../../domain/entryId.js';
import type { BookedIdentity, Origin } from './operation.js';

export interface ConfirmationsOptions {
  /** What the epochs of this database begin with: announcements of others on the same server are heard, too. */
  readonly datasetId: string;
  /** The newest entry of each cell that the ledger has, as Postgres says. */
  readonly read: () => Promise<readonly { cell: number; epoch: string; cursor: bigint }[]>;
  /** The row of an entry; undefined: the ledger has none of that id. */
  readonly findEntry: (entryId: bigint) => Promise<BookedIdentity | undefined>;
  /** Which run of a cell's server is reached now. */
  readonly serverOf: (cell: number) => string | undefined;
  /** How long a command waits at the most. */
  readonly deadlineMs: number;
  readonly onError: (error: unknown) => void;
  /** Seconds that a command waited. */
  readonly onConfirmed: (seconds: number) => void;
}

/** Something that was booked in the store, and is not known to be in the ledger. */
interface Owed extends Origin {
  readonly id: bigint;
}

interface Waiting extends Owed {
  readonly since: number;
  readonly resolve: (isConfirmed: boolean) => void;
}

/** Somebody who is about to read the ledger. */
interface Reader {
  readonly id: bigint;
  readonly since: number;
  readonly deadline: number;
  readonly resolve: (isBooked: boolean) => void;
}

interface Cell {
  epoch: string;
  cursor: bigint;
  readers: Reader[];
  /** In the order in which they came: that of their ids, but for replays. */
  waiting: Waiting[];
  /** The newest that was given up and is not known to be in the ledger. */
  owed: Owed | undefined;
}

/** Who waits longer than this has Postgres asked. */
const ASK_AFTER_MS = 250;
const TURN_MS = 100;
/** While somebody waits longer than this, nothing more is dealt that would have to wait, too. */
const STALLED_AFTER_MS = 1000;
/** Readers that may wait for one cell. */
const READERS_MAX = 1000;

/** Of a partner that lived in another cell when it was made: all that it has there was booked before it came. */
const isOfAnother = (cell: number, id: bigint): boolean => id !== 0n && entryCell(id) !== cell;

export class Confirmations {
  readonly #options: ConfirmationsOptions;
  readonly #cells = new Map<number, Cell>();
  #timer: NodeJS.Timeout | undefined;
  #isAsking = false;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ConfirmationsOptions) {
    this.#options = options;
  }

  /**
   * True once the ledger has an entry of the cell; false where that is not known within the deadline.
   * @param isEntry a row of that id is the entry: a server that took over may have dealt another one under it
   */
  async confirmed(
    cell: number,
    origin: Origin,
    id: bigint,
    isEntry: (row: BookedIdentity) => boolean = () => true,
  ): Promise<boolean> {
    if (isOfAnother(cell, id)) return true;
    if (!(await this.#reached(cell, origin, id))) return false;
    // A Redis that came back may lack what was dealt before: then the ledger has later entries, and not this one.
    if (this.#options.serverOf(cell) === origin.serverId) return true;
    const row = await this.#options.findEntry(id);
    return row !== undefined && isEntry(row);
  }

  /** True once the ledger has come to the entry. */
  #reached(cell: number, { epoch, serverId }: Origin, id: bigint): Promise<boolean> {
    const known = this.#cell(cell);
    if (known.epoch === epoch && known.cursor >= id) return Promise.resolve(true);
    return new Promise((resolve) => {
      known.waiting.push({ epoch, serverId, id, since: performance.now(), resolve });
      this.#timer ??= setTimeout(this.#turn, TURN_MS);
    });
  }

  /**
   * True once the ledger has come to an entry of the cell, under whichever epoch; an entry that Redis lost is then not in it.
   * False where it has not within the milliseconds, or too many wait for the cell already.
   */
  cameTo(cell: number, id: bigint, timeoutMs: number): Promise<boolean> {
    if (isOfAnother(cell, id)) return Promise.resolve(true);
    const known = this.#cell(cell);
    if (known.cursor >= id) return Promise.resolve(true);
    if (known.readers.length >= READERS_MAX) return Promise.resolve(false);
    const since = performance.now();
    // What was announced before this process listened is learnt now.
    if (since - this.#askedAt > ASK_AFTER_MS && !this.#isAsking) void this.#ask();
    return new Promise((resolve) => {
      known.readers.push({ id, since, deadline: since + timeoutMs, resolve });
      this.#timer ??= setTimeout(this.#turn, TURN_MS);
    });
  }

  /** The ledger of a cell has not moved for so long that what is dealt now would hardly be answered in time. */
  isStalled(cell: number): boolean {
    const known = this.#cells.get(cell);
    if (known === undefined) return false;
    this.#forgive(cell, known);
    const [oldest] = known.waiting;
    return (
      known.owed !== undefined ||
      (oldest !== undefined && performance.now() - oldest.since > STALLED_AFTER_MS)
    );
  }

  /** The ledger has every entry of the cell up to the cursor. */
  advance(cell: number, epoch: string, cursor: bigint): void {
    if (!epoch.startsWith(`${this.#options.datasetId}:`)) return;
    const known = this.#cell(cell);
    if (known.owed !== undefined && (known.owed.epoch !== epoch || known.owed.id <= cursor))
      known.owed = undefined;
    if (known.epoch === epoch && known.cursor >= cursor) return;
    known.epoch = epoch;
    known.cursor = cursor;
    if (known.readers.length > 0) {
      for (const { id, resolve } of known.readers) if (id <= cursor) resolve(true);
      known.readers = known.readers.filter(({ id }) => id > cursor);
    }
    if (known.waiting.length === 0) return;
    const now = performance.now();
    const left: Waiting[] = [];
    for (const each of known.waiting) {
      if (each.epoch === epoch && each.id <= cursor) {
        this.#options.onConfirmed((now - each.since) / 1000);
        each.resolve(true);
      } else {
        left.push(each);
      }
    }
    known.waiting = left;
  }

  /**
   * What a run of the server dealt that has ended may be lost with it, under the same epoch: then the ledger comes to it only
   * once something more is dealt, which must not wait for it.
   */
  #forgive(cell: number, known: Cell): void {
    const serverId = this.#options.serverOf(cell);
    if (serverId !== undefined && known.owed?.serverId !== serverId) known.owed = undefined;
  }

  #cell(cell: number): Cell {
    let known = this.#cells.get(cell);
    if (known === undefined) {
      known = { epoch: '', cursor: 0n, readers: [], waiting: [], owed: undefined };
      this.#cells.set(cell, known);
    }
    return known;
  }

  readonly #turn = (): void => {
    const now = performance.now();
    let oldest = now;
    for (const [number, cell] of this.#cells) {
      const isLate = ({ since }: Waiting): boolean => now - since > this.#options.deadlineMs;
      for (const each of cell.waiting) {
        if (!isLate(each)) continue;
        each.resolve(false);
        if (cell.owed === undefined || each.id > cell.owed.id) cell.owed = each;
      }
      cell.waiting = cell.waiting.filter((each) => !isLate(each));
      this.#forgive(number, cell);
      for (const { deadline, resolve } of cell.readers) if (deadline <= now) resolve(false);
      cell.readers = cell.readers.filter(({ deadline }) => deadline > now);
      for (const { since } of cell.waiting) oldest = Math.min(oldest, since);
      for (const { since } of cell.readers) oldest = Math.min(oldest, since);
    }
    const isOwed = [...this.#cells.values()].some(({ owed }) => owed !== undefined);
    // Not waited for: a Postgres that hangs must not hold up the deadlines.
    if ((isOwed || now - oldest > ASK_AFTER_MS) && !this.#isAsking) void this.#ask();
    const isAwaited =
      isOwed || [...this.#cells.values()].some(({ waiting, readers }) => waiting.length + readers.length > 0);
    this.#timer = isAwaited ? setTimeout(this.#turn, TURN_MS) : undefined;
  };

  async #ask(): Promise<void> {
    this.#isAsking = true;
    this.#askedAt = performance.now();
    try {
      for (const { cell, epoch, cursor } of await this.#options.read()) {
        const known = this.#cells.get(cell);
        if (known === undefined) continue;
        if (known.waiting.length + known.readers.length > 0 || known.owed !== undefined)
          this.advance(cell, epoch, cursor);
      }
    } catch (error) {
      this.#options.onError(error);
    } finally {
      this.#isAsking = false;
    }
  }
}
