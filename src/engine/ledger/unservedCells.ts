/**
 * Lists the cells that need an operator's attention: cells whose ledger this worker has halted, and cells
 * that this worker was recently refused.
 */
import type { EventEmitter } from '../processEvents.js';

/**
 * Time for which a refusal of a cell counts, in ms. A cell that is refused is retried more often than this.
 * So if a cell has no recent refusal, another worker serves it.
 */
const LATELY_MS = 10_000;

export class UnservedCells {
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
