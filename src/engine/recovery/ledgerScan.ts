/**
 * Reads the ledger once for all cells that are being rebuilt, because a scan of the ledger costs the same for
 * one cell as for all.
 *
 *   rebuild of a cell ──begin()──> … ──read(from)──┐
 *   rebuild of a cell ──begin()──> … ──read(from)──┼── all cells that called begin() wait ──> one scan
 *                                                  │        ──> each cell gets its rows
 */
import { entryCell } from '../../domain/entryId.js';
import type { Sql } from '../../postgres/connection.js';
import type { CopyRow } from '../../postgres/copy.js';
import { RECOVERED, readEntriesFrom } from './recoveries.store.js';

/**
 * Maximum time that rebuilds wait for other rebuilds to join their scan of the ledger, in ms. After that time
 * the scan starts without the other rebuilds.
 */
const GATHER_MS = 5000;

interface Reader {
  readonly cell: number;
  readonly fromId: bigint;
  readonly onRow: (row: CopyRow) => void;
  readonly onPause: () => Promise<void>;
  readonly done: (failure?: unknown) => void;
  failed: boolean;
}

export class LedgerScan {
  /** Cells whose rebuilds have announced that they will read the ledger. */
  readonly #expected = new Set<number>();
  #waiting: Reader[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isScanning = false;

  constructor(private readonly sql: Sql) {}

  /** Announces that a cell's rebuild will either read the ledger or call {@link end}. */
  begin(cell: number): void {
    this.#expected.add(cell);
  }

  /** Announces that a cell's rebuild will not read the ledger any more. */
  end(cell: number): void {
    this.#expected.delete(cell);
    this.#scanWhenAllWait();
  }

  /**
   * Reads the cell's entries from an id on, in no particular order, like `readEntriesFrom`.
   * @throws the error of the scan, or of the cell's own `onPause`; the latter does not affect other cells
   */
  read(
    cell: number,
    fromId: bigint,
    onRow: (row: CopyRow) => void,
    onPause: () => Promise<void>,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (failure?: unknown): void => (failure === undefined ? resolve() : reject(failure));
      this.#waiting.push({ cell, fromId, onRow, onPause, done, failed: false });
      this.#timer ??= setTimeout(() => this.#scan(), GATHER_MS);
      this.#scanWhenAllWait();
    });
  }

  #scanWhenAllWait(): void {
    const waiting = new Set(this.#waiting.map(({ cell }) => cell));
    if (waiting.size > 0 && [...this.#expected].every((cell) => waiting.has(cell))) this.#scan();
  }

  #scan(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#isScanning || this.#waiting.length === 0) return;
    const readers = this.#waiting;
    this.#waiting = [];
    for (const { cell } of readers) this.#expected.delete(cell);
    this.#isScanning = true;
    void this.#read(readers).finally(() => {
      this.#isScanning = false;
      if (this.#waiting.length > 0) this.#timer ??= setTimeout(() => this.#scan(), GATHER_MS);
      this.#scanWhenAllWait();
    });
  }

  async #read(readers: readonly Reader[]): Promise<void> {
    const byCell = new Map(readers.map((reader) => [reader.cell, reader]));
    const fromId = readers.reduce(
      (least, reader) => (reader.fromId < least ? reader.fromId : least),
      readers[0]!.fromId,
    );
    try {
      await readEntriesFrom(
        this.sql,
        [...byCell.keys()],
        fromId,
        (row) => {
          const id = row.big(RECOVERED.id);
          const reader = byCell.get(entryCell(id));
          if (reader === undefined || reader.failed || id < reader.fromId) return;
          try {
            reader.onRow(row);
          } catch (error) {
            fail(reader, error);
          }
        },
        async () => {
          await Promise.all(
            readers
              .filter(({ failed }) => !failed)
              .map((reader) => reader.onPause().catch((error: unknown) => fail(reader, error))),
          );
        },
      );
      for (const reader of readers) if (!reader.failed) reader.done();
    } catch (error) {
      for (const reader of readers) if (!reader.failed) reader.done(error);
    }
  }
}

function fail(reader: Reader, error: unknown): void {
  reader.failed = true;
  reader.done(error);
}
