/** Subtrees that paths were made of, kept for the next ones: as many as the bound, those that were used last. */
import type { Subtrees } from '../../domain/publicLog/subtrees.js';

/** 256 leaves and what is above them: at most 16 KB each, 4 MB in all. */
const KEPT_MAX = 256;

export class KnownSubtrees {
  /** The one that was used last is the last. */
  readonly #kept = new Map<string, Subtrees>();

  find(name: string): Subtrees | undefined {
    const found = this.#kept.get(name);
    if (found !== undefined) this.keep(name, found);
    return found;
  }

  keep(name: string, subtrees: Subtrees): void {
    this.#kept.delete(name);
    this.#kept.set(name, subtrees);
    if (this.#kept.size > KEPT_MAX) this.#kept.delete(this.#kept.keys().next().value!);
  }

  clear(): void {
    this.#kept.clear();
  }
}
