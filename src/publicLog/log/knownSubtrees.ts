/** LRU cache of subtrees, from which Merkle paths are computed. */
import type { Subtrees } from '../../domain/publicLog/subtrees.js';

/**
 * Maximum number of cached subtrees. Each has up to 256 leaves and takes up to 16 KB, so all take up to 4 MB.
 */
const KEPT_MAX = 256;

export class KnownSubtrees {
  /** Cached subtrees, most recently used last. */
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
