/**
 * Judges the return to player of each game day by day, up to the last day whose settlement reports are
 * complete (docs/reports.md).
 */

import { type SheetMoments, sheetMoments } from '../../domain/rtp.js';
import type { BooksStore } from '../books.store.js';

/** Maximum number of PAR sheets whose moments are cached. A full cache is cleared. */
const SHEETS_MAX = 20_000;
const SHEETS_AT_ONCE = 100;

export class RtpJudging {
  readonly #moments = new Map<number, SheetMoments>();

  constructor(private readonly store: Pick<BooksStore, 'rtp'>) {}

  /** @throws Error if Postgres does not answer; judgements made before are kept */
  async run(now: () => Date, isStopped: () => boolean): Promise<void> {
    while (!isStopped()) {
      const judged = await this.store.rtp.judgeNext((ids) => this.#momentsOf(ids), now());
      if (judged === 0) return;
    }
  }

  async #momentsOf(sheetIds: readonly number[]): Promise<ReadonlyMap<number, SheetMoments>> {
    if (this.#moments.size > SHEETS_MAX) this.#moments.clear();
    const missing = sheetIds.filter((id) => !this.#moments.has(id));
    for (let at = 0; at < missing.length; at += SHEETS_AT_ONCE) {
      const sheets = await this.store.rtp.sheets(missing.slice(at, at + SHEETS_AT_ONCE));
      for (const [id, sheet] of sheets) this.#moments.set(id, sheetMoments(sheet));
    }
    return this.#moments;
  }
}
