/**
 * All nodes, and which of them holds a cell. Today one node holds all cells; nobody above src/redis relies on that, so
 * a second node is an entry of the list and another placement.
 */
import type { BookedAnnouncement } from './announcements.js';
import { CellStore } from './cellStore.js';
import type { RedisNode } from './node.js';
import { type RedisUse, sumOfUses } from './use.js';

export class RedisNodes {
  readonly all: readonly RedisNode[];
  readonly #placement: (cell: number) => number;
  readonly #cells = new Map<number, CellStore>();

  /**
   * @param all at least one
   * @param placement which of them, by its index, holds a cell: always the same one. By default the first holds all.
   */
  constructor(all: readonly RedisNode[], placement: (cell: number) => number = () => 0) {
    this.all = all;
    this.#placement = placement;
  }

  /** How often a connection to a node was lost since this process began. */
  get connectionsLost(): number {
    return this.all.reduce((sum, node) => sum + node.connectionsLost, 0);
  }

  /** The node that holds a cell. */
  of(cell: number): RedisNode {
    return this.all[this.#placement(cell)]!;
  }

  /** What Redis holds of a cell. */
  cell(cell: number): CellStore {
    let store = this.#cells.get(cell);
    if (store === undefined) {
      store = new CellStore(this.of(cell), cell);
      this.#cells.set(cell, store);
    }
    return store;
  }

  /** Writes the commands that are called in there at once, in one piece for each node. */
  pipelined(calls: () => void): void {
    let all = calls;
    for (const node of this.all) {
      const inner = all;
      all = () => node.pipelined(inner);
    }
    all();
  }

  /**
   * The cells that can't be dealt from at the given epochs.
   * @throws where the node of one of them can't be reached.
   */
  async closed(epochs: ReadonlyMap<number, string>): Promise<number[]> {
    const cells = [...epochs];
    const isOpen = await Promise.all(cells.map(([cell, epoch]) => this.cell(cell).isOpen(epoch)));
    return cells.filter((_, i) => !isOpen[i]).map(([cell]) => cell);
  }

  /** Calls the listener each time that the server of a node has identified itself anew. @returns what ends that. */
  onIdentified(listener: () => void): () => void {
    const endings = this.all.map((node) => node.onIdentified(listener));
    return () => {
      for (const end of endings) end();
    };
  }

  /** Tells every listener that a cell is booked up to a cursor. The message may be lost. */
  announceBooked(announcement: BookedAnnouncement): void {
    this.of(announcement.cell).announceBooked(announcement);
  }

  /** The resources of all nodes together. */
  async use(): Promise<RedisUse> {
    return sumOfUses(await Promise.all(this.all.map((node) => node.use())));
  }
}
