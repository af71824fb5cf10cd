/** All nodes, and which of them holds a cell: one server for all cells, or the primaries of a Redis Cluster (clusterMap.ts). */
import { withTimeout } from '../../platform/runtime/withTimeout.js';
import {
  type CatalogAnnouncement,
  type CommitAnnouncement,
  catalogMessage,
  commitMessage,
  type DealtAnnouncement,
  type Listening,
  readCatalogMessage,
  readDealtMessage,
} from './announcements.js';
import { CellStore } from './cellStore.js';
import { authFailuresKey, bookedChannel, type CellName, changesKey, dealtChannel, logKey } from './keys.js';
import type { RedisNode } from './node.js';
import { isForbidden, NotSentError } from './scriptErrors.js';
import { CELLS, cellOfText, pinnedName } from './slots.js';
import { type RedisUse, sumOfUses } from './use.js';

/** Where the cells are. */
export interface CellMap {
  /** The nodes that hold cells now. */
  readonly nodes: readonly RedisNode[];
  /** The cells are pinned to slots, which move between the nodes. */
  readonly isCluster: boolean;
  of(cell: number): RedisNode;
  /** Calls the listener whenever cells have come to other nodes. @returns what ends that. */
  onChanged(listener: () => void): () => void;
  close(): void;
}

/** Nodes that always hold the same cells. @param placement which of them, by its index, holds a cell; by default the first holds all */
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

/** Cells by whether they can be dealt from. */
export interface CellStates {
  /** Redis is at another epoch, or at none. */
  readonly closed: readonly number[];
  /** Their node does not answer. */
  readonly away: readonly number[];
}

const CELL_NUMBERS = Array.from({ length: CELLS }, (_, cell) => cell);
/** A node that does not answer for so long is away. */
const ANSWERS_WITHIN_MS = 1500;

export class RedisNodes {
  readonly #map: CellMap;
  readonly #cells = new Map<number, CellStore>();
  /** The format in which an owner of this process has its cells written (domain/formats.ts). */
  writtenFormat = 1;
  /** Of nodes that are gone. */
  #connectionsLostBefore = 0;

  constructor(map: CellMap) {
    this.#map = map;
    this.each((node) => () => {
      this.#connectionsLostBefore += node.connectionsLost + 1;
    });
  }

  /** Cells are pinned to slots, and nodes may come and go. */
  get isCluster(): boolean {
    return this.#map.isCluster;
  }

  /** The nodes that hold cells now. */
  get all(): readonly RedisNode[] {
    return this.#map.nodes;
  }

  /** How often a connection to a node was lost since this process began. */
  get connectionsLost(): number {
    return this.all.reduce((sum, node) => sum + node.connectionsLost, this.#connectionsLostBefore);
  }

  /** The node that holds a cell now. */
  of(cell: number): RedisNode {
    return this.#map.of(cell);
  }

  /** How the keys of a cell name it. */
  nameOf(cell: number): CellName {
    return this.#map.isCluster ? pinnedName(cell) : cell;
  }

  /** What Redis holds of a cell. */
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

  /** Resolves once the node of a cell can be reached, or another holds the cell, or after the milliseconds. */
  whenReady(cell: number, timeoutMs: number): Promise<void> {
    return this.of(cell).whenReady(timeoutMs);
  }

  /**
   * Begins something for each node, at once and for those that come later, and ends it for those that go.
   * @returns what ends all of it.
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
    const endFollowing = this.#map.onChanged(follow);
    return () => {
      endFollowing();
      for (const end of ends.values()) end();
      ends.clear();
    };
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

  /** The cells that can't be dealt from at the given epochs. */
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

  /** Calls the listener each time that the server of a node has identified itself anew. @returns what ends that. */
  onIdentified(listener: () => void): () => void {
    return this.each((node) => node.onIdentified(listener));
  }

  /** Announces to every listener that a cell is booked up to a cursor. The message may be lost. */
  announceCommit(announcement: CommitAnnouncement): void {
    const { cell } = announcement;
    const channel = bookedChannel(this.#map.isCluster ? this.nameOf(cell) : undefined);
    this.of(cell).publish(channel, commitMessage(announcement), this.#map.isCluster);
  }

  /** Announces to every listener what was read of the catalog, over each node. The message may be lost. */
  announceCatalog(read: CatalogAnnouncement): void {
    for (const node of this.all)
      for (const channel of this.#changesKeys(node))
        node.publish(channel, catalogMessage(read), this.#map.isCluster);
  }

  /**
   * Listens to what others read of the catalog, over a connection to each node.
   * @param onDeaf a connection is broken: what is announced over that node now is missed
   * @returns what ends it
   */
  listenCatalog(
    onRead: (read: CatalogAnnouncement) => void,
    listening: Omit<Listening, 'onMessage'>,
  ): () => void {
    const onMessage = (message: string): void => onRead(readCatalogMessage(message));
    return this.each((node) => {
      const { isOpen, subscribe, close } = node.listen(
        this.#map.isCluster ? () => this.#changesKeys(node) : changesKey(),
        { ...listening, onMessage },
      );
      // A try that fails is followed by others.
      isOpen.catch(() => {});
      const endFollowing = this.#map.onChanged(subscribe);
      return () => {
        endFollowing();
        close();
      };
    });
  }

  /** Calls the listener whenever cells have come to other nodes. @returns what ends that. */
  onChanged(listener: () => void): () => void {
    return this.#map.onChanged(listener);
  }

  /**
   * Listens to announcements over a connection to each node; those of a node that is away are missed.
   * @param cells those that there are; once there are more, `subscribe` is to be called
   * @throws where a node of now can't be reached and there is no other.
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
        this.#map.isCluster ? () => this.#shardChannels(node, cells(), bookedChannel) : undefined,
        onBooked,
        onError,
      );
      // Of a node that comes later nobody waits for it: a try that fails is followed by others.
      isOpen.catch(() => {});
      opened.push(isOpen);
      subscriptions.add(subscribe);
      const endFollowing = this.#map.onChanged(subscribe);
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
   * Listens to what the scripts announce of blocks that are dealt out, over a connection to each node.
   * @param cells those that are listened for; once there are more, `subscribe` is to be called
   */
  listenDealt(
    cells: () => Iterable<number>,
    onDealt: (announcement: DealtAnnouncement) => void,
    onError: (error: Error) => void,
  ): { readonly subscribe: () => void; readonly end: () => void } {
    const subscriptions = new Set<() => void>();
    const onMessage = (message: string): void => onDealt(readDealtMessage(message));
    const end = this.each((node) => {
      const channels = (): string[] => this.#shardChannels(node, cells(), dealtChannel);
      const { isOpen, subscribe, close } = node.listen(channels, { onMessage, onError });
      // A try that fails is followed by others.
      isOpen.catch(() => {});
      subscriptions.add(subscribe);
      const endFollowing = this.#map.onChanged(subscribe);
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

  /** The channels of those of the cells that a node holds. */
  #shardChannels(node: RedisNode, cells: Iterable<number>, channelOf: typeof dealtChannel): string[] {
    return [...cells].filter((cell) => this.of(cell) === node).map((cell) => channelOf(this.nameOf(cell)));
  }

  /** The number of the newest change of partners, keys and games that was announced to a node; 0 where none was. */
  announcedChange(node: RedisNode, datasetId: string): Promise<bigint> {
    return node.announcedChange(this.#changesKey(node), datasetId);
  }

  announceChange(node: RedisNode, datasetId: string, change: bigint): Promise<void> {
    return node.announceChange(this.#changesKey(node), datasetId, change);
  }

  /** Keeps a published note of the public log on each node. @param log names it. @throws where a node does not take it */
  async keepLogNote(log: string, size: number, note: string): Promise<void> {
    const kept = this.all.map(async (node) => {
      const [key] = this.#keysOf(node, (cell) => logKey(log, cell));
      if (key !== undefined) await withTimeout(node.keepLogNote(key, size, note), ANSWERS_WITHIN_MS);
    });
    const failed = (await Promise.allSettled(kept)).find((each) => each.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /**
   * The notes of the public log that are kept.
   * @returns undefined: no node answers
   * @throws Error where the Redis user may not read them
   */
  async logNotes(log: string): Promise<string[] | undefined> {
    // A cell may have come to another node since its note was kept.
    const places = this.#map.isCluster
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
    if (key === undefined) throw new NotSentError('The node holds no cell any more');
    return key;
  }

  /** The key on the node, which names its channel, too; none where the node holds no cell any more. */
  #changesKeys(node: RedisNode): string[] {
    return this.#keysOf(node, changesKey);
  }

  /** A key outside the cells on a node: in a cluster it bears the tag of a cell of the node. */
  #keysOf(node: RedisNode, keyOf: (cell?: CellName) => string): string[] {
    if (!this.#map.isCluster) return [keyOf()];
    const cell = CELL_NUMBERS.find((each) => this.of(each) === node);
    return cell === undefined ? [] : [keyOf(this.nameOf(cell))];
  }

  /** Which node counts failed authentications of a client address, and under which key: another one while that is away. */
  failuresOf(address: string): { readonly node: RedisNode; readonly key: string } {
    if (!this.#map.isCluster) return { node: this.all[0]!, key: authFailuresKey(address) };
    const first = cellOfText(address);
    let cell = first;
    for (let i = 1; i < CELLS && !this.of(cell).isReady; i++) cell = (first + i) % CELLS;
    return { node: this.of(cell), key: authFailuresKey(address, this.nameOf(cell)) };
  }

  /** The resources of all nodes that answer, together. @throws where none does. */
  async use(): Promise<RedisUse> {
    const asked = this.all.map((node) => withTimeout(node.use(), ANSWERS_WITHIN_MS));
    const uses = await Promise.allSettled(asked);
    const known = uses.flatMap((use) => (use.status === 'fulfilled' ? [use.value] : []));
    if (known.length === 0) await Promise.all(asked);
    return sumOfUses(known);
  }

  close(): void {
    this.#map.close();
  }
}
