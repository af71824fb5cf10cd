/**
 * Resolves promises when the ledger has an entry of a cell. Two kinds of callers wait: commands that are
 * answered only after their commit, and readers of the ledger that must not miss entries that are still in
 * Redis.
 *
 * The flusher announces each commit over Redis. An announcement may be lost, so Postgres is polled while a
 * caller waits. Only one poll is under way at a time, for all cells and callers.
 *
 * An announcement for one epoch does not apply to another epoch. A rebuilt cell continues with higher ids,
 * but the ledger does not contain the entries that Redis lost.
 */
import { entryCell } from '../../domain/entryId.js';
import type { BookedIdentity, Origin } from './operation.js';

/** An entry that Redis has written and that is not yet confirmed to be in the ledger. */
interface Owed extends Origin {
  readonly id: bigint;
}

interface Waiting extends Owed {
  readonly since: number;
  readonly deadline: number;
  readonly resolve: (isConfirmed: boolean) => void;
}

/** A caller that is about to read the ledger and waits for an entry. */
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
  /** Commands in order of arrival, which is the order of their entry ids except for replays. */
  waiting: Waiting[];
  /** Whether a commit has been asked for since the newest one. */
  isAskedFor: boolean;
  /** The newest entry whose command timed out and that is still not confirmed to be in the ledger. */
  owed: Owed | undefined;
}

/** Time after which a waiting caller triggers a poll of Postgres, in ms. */
const ASK_AFTER_MS = 250;
const TURN_MS = 100;
/**
 * Waiting time of the oldest command, in ms, above which further commands that would have to wait are
 * refused.
 */
const STALLED_AFTER_MS = 1000;
const READERS_MAX = 1000;

/**
 * True if the entry was made in the cell from which the partner moved to this cell. All the partner's entries
 * in that cell were committed before the move.
 */
const isOfAnother = (cell: number, id: bigint): boolean => id !== 0n && entryCell(id) !== cell;

export class Confirmations {
  readonly #cells = new Map<number, Cell>();
  #timer: NodeJS.Timeout | undefined;
  #isAsking = false;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly options: {
      /**
       * Dataset id with which the epochs of this database begin. Announcements of other installations on the
       * same server are received as well, and are ignored.
       */
      readonly datasetId: string;
      readonly read: () => Promise<readonly { cell: number; epoch: string; cursor: bigint }[]>;
      /** Finds the ledger row of an entry; undefined if the ledger has no entry with that id. */
      readonly findEntry: (entryId: bigint) => Promise<BookedIdentity | undefined>;
      /** Returns the id of the server run that a cell is currently connected to. */
      readonly serverOf: (cell: number) => string | undefined;
      readonly onError: (error: unknown) => void;
      /**
       * Called when somebody begins to wait for a commit of the cell, and after a commit for which others
       * still wait.
       */
      readonly onAwaited: (cell: number) => void;
      /** Called with the time that a command waited for its commit, in seconds. */
      readonly onConfirmed: (seconds: number) => void;
    },
  ) {}

  /**
   * Resolves to true once the ledger has an entry of the cell, or to false if that is not confirmed by the
   * deadline, on the scale of performance.now().
   * @param isEntry checks that the ledger row with that id is this entry, because a promoted replica may have
   * dealt another entry with the same id
   */
  async confirmed(
    cell: number,
    origin: Origin,
    id: bigint,
    deadline: number,
    isEntry: (row: BookedIdentity) => boolean = () => true,
  ): Promise<boolean> {
    if (isOfAnother(cell, id)) return true;
    if (!(await this.#reached(cell, origin, id, deadline))) return false;
    // A restarted or promoted Redis may lack entries that were dealt before. The ledger then has later
    // entries without this one, so the row itself is checked.
    if (this.options.serverOf(cell) === origin.serverId) return true;
    const row = await this.options.findEntry(id);
    return row !== undefined && isEntry(row);
  }

  /** Resolves to true once the cursor of the cell has reached the entry. */
  #reached(cell: number, { epoch, serverId }: Origin, id: bigint, deadline: number): Promise<boolean> {
    const known = this.#cell(cell);
    if (known.epoch === epoch && known.cursor >= id) return Promise.resolve(true);
    return new Promise((resolve) => {
      known.waiting.push({ epoch, serverId, id, since: performance.now(), deadline, resolve });
      this.#askFor(cell, known);
      this.#timer ??= setTimeout(this.#turn, TURN_MS);
    });
  }

  /**
   * Resolves to true once the cursor of the cell has reached an entry, under any epoch. An entry that Redis
   * lost is not in the ledger even then. Resolves to false on timeout, or if too many readers already wait
   * for the cell.
   */
  cameTo(cell: number, id: bigint, timeoutMs: number): Promise<boolean> {
    if (isOfAnother(cell, id)) return Promise.resolve(true);
    const known = this.#cell(cell);
    if (known.cursor >= id) return Promise.resolve(true);
    if (known.readers.length >= READERS_MAX) return Promise.resolve(false);
    const since = performance.now();
    // Polls Postgres for commits that were announced before this process subscribed.
    if (since - this.#askedAt > ASK_AFTER_MS && !this.#isAsking) void this.#ask();
    return new Promise((resolve) => {
      known.readers.push({ id, since, deadline: since + timeoutMs, resolve });
      this.#askFor(cell, known);
      this.#timer ??= setTimeout(this.#turn, TURN_MS);
    });
  }

  /**
   * True if the cell's ledger has not advanced for so long that a new command would hardly be answered in
   * time.
   */
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

  /** Notes that the ledger has every entry of the cell up to the cursor. */
  advance(cell: number, epoch: string, cursor: bigint): void {
    if (!epoch.startsWith(`${this.options.datasetId}:`)) return;
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
    this.#settle(known, epoch, cursor);
    known.isAskedFor = false;
    if (known.waiting.length + known.readers.length > 0) this.#askFor(cell, known);
  }

  #askFor(cell: number, known: Cell): void {
    if (known.isAskedFor) return;
    known.isAskedFor = true;
    this.options.onAwaited(cell);
  }

  #settle(known: Cell, epoch: string, cursor: bigint): void {
    if (known.waiting.length === 0) return;
    const now = performance.now();
    const left: Waiting[] = [];
    for (const each of known.waiting) {
      if (each.epoch === epoch && each.id <= cursor) {
        this.options.onConfirmed((now - each.since) / 1000);
        each.resolve(true);
      } else {
        left.push(each);
      }
    }
    known.waiting = left;
  }

  /**
   * Forgets an entry that callers wait for, if a server run that has ended made the entry. The entry may be
   * lost although the epoch is unchanged. The cursor would then pass the entry's id only after a further
   * deal, so that deal must not wait for the entry.
   */
  #forgive(cell: number, known: Cell): void {
    const serverId = this.options.serverOf(cell);
    if (serverId !== undefined && known.owed?.serverId !== serverId) known.owed = undefined;
  }

  #cell(cell: number): Cell {
    let known = this.#cells.get(cell);
    if (known === undefined) {
      known = { epoch: '', cursor: 0n, readers: [], waiting: [], isAskedFor: false, owed: undefined };
      this.#cells.set(cell, known);
    }
    return known;
  }

  readonly #turn = (): void => {
    const now = performance.now();
    let oldest = now;
    for (const [number, cell] of this.#cells) {
      const isLate = ({ deadline }: Waiting): boolean => deadline < now;
      for (const each of cell.waiting) {
        if (!isLate(each)) continue;
        each.resolve(false);
        if (cell.owed === undefined || each.id > cell.owed.id) cell.owed = each;
      }
      cell.waiting = cell.waiting.filter((each) => !isLate(each));
      this.#forgive(number, cell);
      for (const { deadline, resolve } of cell.readers) if (deadline <= now) resolve(false);
      cell.readers = cell.readers.filter(({ deadline }) => deadline > now);
      // The message that asked for a commit may have been lost.
      cell.isAskedFor = false;
      if (cell.waiting.length + cell.readers.length > 0) this.#askFor(number, cell);
      for (const { since } of cell.waiting) oldest = Math.min(oldest, since);
      for (const { since } of cell.readers) oldest = Math.min(oldest, since);
    }
    const isOwed = [...this.#cells.values()].some(({ owed }) => owed !== undefined);
    // The poll of Postgres is not awaited, because an unresponsive Postgres must not delay the deadlines.
    if ((isOwed || now - oldest > ASK_AFTER_MS) && !this.#isAsking) void this.#ask();
    const isAwaited =
      isOwed || [...this.#cells.values()].some(({ waiting, readers }) => waiting.length + readers.length > 0);
    this.#timer = isAwaited ? setTimeout(this.#turn, TURN_MS) : undefined;
  };

  async #ask(): Promise<void> {
    this.#isAsking = true;
    this.#askedAt = performance.now();
    try {
      for (const { cell, epoch, cursor } of await this.options.read()) {
        const known = this.#cells.get(cell);
        if (known === undefined) continue;
        if (known.waiting.length + known.readers.length > 0 || known.owed !== undefined)
          this.advance(cell, epoch, cursor);
      }
    } catch (error) {
      this.options.onError(error);
    } finally {
      this.#isAsking = false;
    }
  }
}
