/** Which cells people must look at: those whose ledger this worker halted, and those that it was lately refused. */
import type { EventEmitter } from '../processEvents.js';

/** A cell that is refused is tried again more often than this; one that was not refused for longer is served elsewhere. */
const LATELY_MS = 10_000;

export class UnservedCells {
  /** By cell: when it was found last. */
  readonly #refused = new Map<number, number>();
  readonly #halted = new Map<number, number>();

  constructor(events: EventEmitter) {
    events.on('CellRefused', ({ cell }) => this.#refused.set(cell, performance.now()));
    events.on('CellAcquired', ({ lease }) => this.#refused.delete(lease.cell));
    events.on('CellHalted', ({ cell }) => this.#halted.set(cell, performance.now()));
  }

  get cells(): number[] {
    const since = performance.now() - LATELY_MS;
    return [...new Map([...this.#halted, ...this.#refused])].flatMap(([cell, atMs]) =>
      atMs > since ? [cell] : [],
    );
  }
}
