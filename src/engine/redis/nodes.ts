/**
 * All Redis nodes, and the map from cells to nodes: one server for all cells, or the primaries of a Redis
 * Cluster (clusterMap.ts).
 */
import { withTimeout } from '../../platform/runtime/withTimeout.js';
import {
  type AwaitedAnnouncement,
  awaitedMessage,
  type CatalogAnnouncement,
  type CommitAnnouncement,
  catalogMessage,
  commitMessage,
  type DealtAnnouncement,
  type Listening,
  readAwaitedMessage,
  readCatalogMessage,
  readDealtMessage,
} from './announcements.js';
import { CellStore } from './cellStore.js';
import {
  AWAITED_CHANNELS,
  authFailuresKey,
  awaitedChannel,
  bookedChannel,
  type CellName,
  changesKey,
  dealtChannel,
  logKey,
} from './keys.js';
import type { RedisNode } from './node.js';
import { isForbidden, NotSentError } from './scriptErrors.js';
import { CELLS, cellOfText, pinnedName } from './slots.js';
import { type RedisUse, sumOfUses } from './use.js';

export interface CellMap {
  readonly nodes: readonly RedisNode[];
  /** True if the cells are pinned to hash slots. Slots can move between nodes. */
  readonly isCluster: boolean;
  of(cell: number): RedisNode;
  /**
   * Calls the listener whenever cells have moved to other nodes.
   * @returns a function that removes the listener
   */
  onChanged(listener: () => void): () => void;
  close(): void;
}

/**
 * @param placement returns the index of the node that holds a cell; by default the first node holds all cells
 */
export const fixedMap = (
  nodes: readonly RedisNode[],
  placement: (cell: number) => number = () => 0,
): CellMap => ({
  nodes,
  isCluster: false,
  of: (cell) => nodes[placement(cell)]!,
  onChanged: () => () => {},
  close: () => {
    for (const node of nodes) node.close();
  },
});

/** Cells from which nothing can be dealt, grouped by reason. */
export interface CellStates {
  /** Cells whose Redis has another epoch or none. */
  readonly closed: readonly number[];
  /** Cells whose node does not respond. */
  readonly away: readonly number[];
}

const CELL_NUMBERS = Array.from({ length: CELLS }, (_, cell) => cell);
/** Time without a response after which a node counts as unreachable, in ms. */
const ANSWERS_WITHIN_MS = 1500;

export class RedisNodes {
  readonly #cells = new Map<number, CellStore>();
  /** Data format that an owner in this process writes to its cells (domain/formats.ts). */
  writtenFormat = 1;
  /** Number of connections lost to nodes that no longer hold cells. */
  #connectionsLostBefore = 0;

  constructor(private readonly map: CellMap) {
    this.each((node) => () => {
      this.#connectionsLostBefore += node.connectionsLost + 1;
    });
  }

  /** True if the cells are pinned to hash slots and nodes may come and go. */
  get isCluster(): boolean {
    return this.map.isCluster;
  }

  get all(): readonly RedisNode[] {
    return this.map.nodes;
  }

  get connectionsLost(): number {
    return this.all.reduce((sum, node) => sum + node.connectionsLost, this.#connectionsLostBefore);
  }

  of(cell: number): RedisNode {
    return this.map.of(cell);
  }

  /** Returns the name of a cell in its keys. */
  nameOf(cell: number): CellName {
    return this.map.isCluster ? pinnedName(cell) : cell;
  }

  cell(cell: number): CellStore {
    let store = this.#cells.get(cell);
    if (store === undefined) {
      store = new CellStore(
        () => this.of(cell),
        cell,
        this.nameOf(cell),
        () => this.writtenFormat,
      );
      this.#cells.set(cell, store);
    }
    return store;
  }

  /**
   * Resolves when a cell's node becomes reachable, when the cell moves to another node, or after the timeout
   * in ms.
   */
  whenReady(cell: number, timeoutMs: number): Promise<void> {
    return this.of(cell).whenReady(timeoutMs);
  }

  /**
   * Calls `begin` for each node, now and whenever a node is added. When a node is removed, calls the function
   * that `begin` returned for it.
   * @returns a function that ends everything
   */
  each(begin: (node: RedisNode) => () => void): () => void {
    const ends = new Map<RedisNode, () => void>();
    const follow = (): void => {
      const now = new Set(this.all);
      for (const [node, end] of ends) {
        if (now.has(node)) continue;
        ends.delete(node);
        end();
      }
      for (const node of now) if (!ends.has(node)) ends.set(node, begin(node));
    };
    follow();
    const endFollowing = this.map.onChanged(follow);
    return () => {
      endFollowing();
      for (const end of ends.values()) end();
      ends.clear();
    };
  }

  /** Sends all commands that the callback issues in one write per node. */
  pipelined(calls: () => void): void {
    let all = calls;
    for (const node of this.all) {
      const inner = all;
      all = () => node.pipelined(inner);
    }
    all();
  }

  /** Returns the cells from which nothing can be dealt under the given epochs. */
  async closed(epochs: ReadonlyMap<number, string>): Promise<CellStates> {
    const closed: number[] = [];
    const away: number[] = [];
    const look = async ([cell, epoch]: readonly [number, string]): Promise<void> => {
      const isOpen = await withTimeout(this.cell(cell).isOpen(epoch), ANSWERS_WITHIN_MS).catch(
        () => undefined,
      );
      if (isOpen === undefined) away.push(cell);
      else if (!isOpen) closed.push(cell);
    };
    const looks: Promise<void>[] = [];
    this.pipelined(() => looks.push(...[...epochs].map(look)));
    await Promise.all(looks);
    const ascending = (cells: number[]): number[] => cells.sort((a, b) => a - b);
    return { closed: ascending(closed), away: ascending(away) };
  }

  /**
   * Calls the listener whenever the server of a node has identified itself anew.
   * @returns a function that removes the listener
   */
  onIdentified(listener: () => void): () => void {
    return this.each((node) => node.onIdentified(listener));
  }

  /** Announces that a cell is committed up to a cursor. The message may be lost. */
  announceCommit(announcement: CommitAnnouncement): void {
    const { cell } = announcement;
    const channel = bookedChannel(this.map.isCluster ? this.nameOf(cell) : undefined);
    void this.of(cell).publish(channel, commitMessage(announcement), this.map.isCluster);
  }

  /** Asks the worker of a cell to commit soon. The message may be lost. */
  announceAwaited(announcement: AwaitedAnnouncement): void {
    const { cell } = announcement;
    void this.of(cell).publish(awaitedChannel(this.nameOf(cell)), awaitedMessage(announcement), true);
  }

  /**
   * Announces on every node what this process has read of the catalog. The message may be lost.
   * @returns whether a process other than this one may have received the message. This process itself is one
   * subscriber of each channel
   */
  async announceCatalog(read: CatalogAnnouncement): Promise<boolean> {
    const message = catalogMessage(read);
    const receivers = await Promise.all(
      this.all.flatMap((node) =>
        this.#changesKeys(node).map((channel) => node.publish(channel, message, this.map.isCluster)),
      ),
    );
    return receivers.some((count) => count === undefined || count > 1);
  }

  /**
   * Listens for announcements of catalog reads by other processes, over a connection to each node.
   * @param onDeaf called when a connection is lost; from then on, announcements on that node are missed
   * @returns a function that ends the subscription
   */
  listenCatalog(
    onRead: (read: CatalogAnnouncement) => void,
    listening: Omit<Listening, 'onMessage'>,
  ): () => void {
    const onMessage = (message: string): void => onRead(readCatalogMessage(message));
    return this.each((node) => {
      const { isOpen, subscribe, close } = node.listen(
        this.map.isCluster ? () => this.#changesKeys(node) : changesKey(),
        { ...listening, onMessage },
      );
      // A failed connection attempt is retried, so its error is ignored.
      isOpen.catch(() => {});
      const endFollowing = this.map.onChanged(subscribe);
      return () => {
        endFollowing();
        close();
      };
    });
  }

  /** @returns a function that removes the listener */
  onChanged(listener: () => void): () => void {
    return this.map.onChanged(listener);
  }

  /**
   * Listens for commits over a connection to each node. Announcements of an unreachable node are missed.
   * @param cells returns the existing cells; `subscribe` must be called after cells were added
   * @throws Error if none of the current nodes is reachable
   */
  async listenForCommits(
    cells: () => Iterable<number>,
    onBooked: (announcement: CommitAnnouncement) => void,
    onError: (error: Error) => void,
  ): Promise<{ readonly subscribe: () => void; readonly end: () => void }> {
    const opened: Promise<unknown>[] = [];
    const subscriptions = new Set<() => void>();
    const end = this.each((node) => {
      const { isOpen, subscribe, close } = node.listenForCommits(
        this.map.isCluster ? () => this.#shardChannels(node, cells(), bookedChannel) : undefined,
        onBooked,
        onError,
      );
      // The caller does not wait for the subscription on a node that is added later. A failed connection
      // attempt is retried.
      isOpen.catch(() => {});
      opened.push(isOpen);
      subscriptions.add(subscribe);
      const endFollowing = this.map.onChanged(subscribe);
      return () => {
        subscriptions.delete(subscribe);
        endFollowing();
        close();
      };
    });
    try {
      await Promise.any(opened);
    } catch (error) {
      end();
      throw (error as AggregateError).errors.at(-1);
    }
    const subscribeAll = (): void => {
      for (const subscribe of subscriptions) subscribe();
    };
    return { subscribe: subscribeAll, end };
  }

  /**
   * Listens for announcements of dealt-out blocks and of awaited commits over a connection to each node.
   * @param cells returns the cells to listen for; `subscribe` must be called after cells were added
   */
  listenForWork(
    cells: () => Iterable<number>,
    onDealt: (announcement: DealtAnnouncement) => void,
    onAwaited: (announcement: AwaitedAnnouncement) => void,
    onError: (error: Error) => void,
  ): { readonly subscribe: () => void; readonly end: () => void } {
    const subscriptions = new Set<() => void>();
    const onMessage = (message: string, channel: string): void => {
      if (channel.startsWith(AWAITED_CHANNELS)) onAwaited(readAwaitedMessage(message));
      else onDealt(readDealtMessage(message));
    };
    const end = this.each((node) => {
      const channels = (): string[] =>
        [dealtChannel, awaitedChannel].flatMap((channelOf) => this.#shardChannels(node, cells(), channelOf));
      const { isOpen, subscribe, close } = node.listen(channels, { onMessage, onError });
      // A failed connection attempt is retried, so its error is ignored.
      isOpen.catch(() => {});
      subscriptions.add(subscribe);
      const endFollowing = this.map.onChanged(subscribe);
      return () => {
        subscriptions.delete(subscribe);
        endFollowing();
        close();
      };
    });
    const subscribeAll = (): void => {
      for (const subscribe of subscriptions) subscribe();
    };
    return { subscribe: subscribeAll, end };
  }

  #shardChannels(node: RedisNode, cells: Iterable<number>, channelOf: typeof dealtChannel): string[] {
    return [...cells].filter((cell) => this.of(cell) === node).map((cell) => channelOf(this.nameOf(cell)));
  }

  /**
   * Returns the number of the newest change of partners, keys and games that was announced to a node, or 0 if
   * there is none.
   */
  announcedChange(node: RedisNode, datasetId: string): Promise<bigint> {
    return node.announcedChange(this.#changesKey(node), datasetId);
  }

  announceChange(node: RedisNode, datasetId: string, change: bigint): Promise<void> {
    return node.announceChange(this.#changesKey(node), datasetId, change);
  }

  /**
   * Keeps a published note of the public log on each node.
   * @throws the error of a node that does not accept the note
   */
  async keepLogNote(log: string, size: number, note: string): Promise<void> {
    const kept = this.all.map(async (node) => {
      const [key] = this.#keysOf(node, (cell) => logKey(log, cell));
      if (key !== undefined) await withTimeout(node.keepLogNote(key, size, note), ANSWERS_WITHIN_MS);
    });
    const failed = (await Promise.allSettled(kept)).find((each) => each.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /**
   * Returns the notes of the public log that are kept on the nodes.
   * @returns undefined if no node responds
   * @throws Error if the Redis user has no permission to read them
   */
  async logNotes(log: string): Promise<string[] | undefined> {
    // Search all cells' keys, because a cell may have moved to another node since its note was stored.
    const places = this.map.isCluster
      ? CELL_NUMBERS.map((cell) => ({ node: this.of(cell), key: logKey(log, this.nameOf(cell)) }))
      : [{ node: this.all[0]!, key: logKey(log) }];
    const asked = await Promise.allSettled(
      places.map(({ node, key }) => withTimeout(node.logNotes(key), ANSWERS_WITHIN_MS)),
    );
    const answers = asked.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    if (answers.length > 0) return answers.flat();
    const refused = asked.find((each) => each.status === 'rejected' && isForbidden(each.reason));
    if (refused?.status === 'rejected') throw refused.reason;
    return undefined;
  }

  #changesKey(node: RedisNode): string {
    const [key] = this.#changesKeys(node);
    if (key === undefined) throw new NotSentError('The node no longer holds any cell');
    return key;
  }

  /**
   * Returns the node's key for announced changes, which is also the name of its channel. Empty if the node no
   * longer holds a cell.
   */
  #changesKeys(node: RedisNode): string[] {
    return this.#keysOf(node, changesKey);
  }

  /**
   * Returns a key for data that does not belong to a cell. In a cluster the key has the hash tag of one of
   * the node's cells.
   */
  #keysOf(node: RedisNode, keyOf: (cell?: CellName) => string): string[] {
    if (!this.map.isCluster) return [keyOf()];
    const cell = CELL_NUMBERS.find((each) => this.of(each) === node);
    return cell === undefined ? [] : [keyOf(this.nameOf(cell))];
  }

  /**
   * Returns the node and key for the count of failed authentications from a client address. If the node that
   * is assigned to the address is unreachable, another node keeps the count.
   */
  failuresOf(address: string): { readonly node: RedisNode; readonly key: string } {
    if (!this.map.isCluster) return { node: this.all[0]!, key: authFailuresKey(address) };
    const first = cellOfText(address);
    let cell = first;
    for (let i = 1; i < CELLS && !this.of(cell).isReady; i++) cell = (first + i) % CELLS;
    return { node: this.of(cell), key: authFailuresKey(address, this.nameOf(cell)) };
  }

  /**
   * Returns the total resource usage of all nodes that respond.
   * @throws the error of a node if none responds
   */
  async use(): Promise<RedisUse> {
    const asked = this.all.map((node) => withTimeout(node.use(), ANSWERS_WITHIN_MS));
    const uses = await Promise.allSettled(asked);
    const known = uses.flatMap((use) => (use.status === 'fulfilled' ? [use.value] : []));
    if (known.length === 0) await Promise.all(asked);
    return sumOfUses(known);
  }

  close(): void {
    this.map.close();
  }
}
