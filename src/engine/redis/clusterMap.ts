/**
 * Maps the cells to the nodes of a Redis Cluster, with a connection to each primary that holds cells.
 *
 *   seeds ──first answer──> primaries ──each second, after redirects──> views of the cluster ──> claims
 *                                                                                                └──> nodes
 *
 * Each server reports its own view of the cluster. Some views are outdated, because the server was cut off or
 * has just come back. If two views claim a cell's slot for different primaries, the claim with the higher
 * configuration epoch wins, as it does among the servers.
 */

import type { ClusterView, PrimaryView } from './clusterView.js';
import { readClusterNodes } from './clusterView.js';
import { RedisNode } from './node.js';
import type { CellMap } from './nodes.js';
import { askOnce } from './redisClient.js';
import { readMemberId } from './serverIdentity.js';
import { CELLS, slotOfCell } from './slots.js';

const LOOK_EVERY_MS = 1000;
/**
 * Minimum time between two polls of the cluster, in ms, so that many redirected calls cause only one poll.
 */
const LOOK_AGAIN_AFTER_MS = 50;
/**
 * Maximum time that a start waits for all primaries to become reachable, in ms. The start then continues
 * without those that are not.
 */
const READY_WITHIN_MS = 3000;

type Claim = Omit<PrimaryView, 'ranges'>;

export class ClusterMap implements CellMap {
  readonly isCluster = true;
  readonly #seeds: readonly string[];
  readonly #onError: (error: Error) => void;
  readonly #luaDir: string | undefined;
  /** By cell: the claim of a primary to the cell's hash slot. */
  readonly #claims: (Claim | undefined)[] = [];
  #places: readonly RedisNode[] = [];
  #nodes = new Map<string, RedisNode>();
  /** Node for the cells whose slot no primary has claimed yet. This node is never connected. */
  readonly #nowhere: RedisNode;
  readonly #listeners = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  private constructor(seeds: readonly string[], onError: (error: Error) => void, luaDir?: string) {
    this.#seeds = seeds;
    this.#onError = onError;
    this.#luaDir = luaDir;
    this.#nowhere = new RedisNode(seeds[0]!, () => {}, luaDir);
  }

  /**
   * Reads the cluster's layout from the seeds and connects to its primaries.
   * @param seeds addresses of some of the servers, with the same user and password
   * @throws Error if no seed answers, the server is not a cluster, or no primary is reachable
   */
  static async open(
    seeds: readonly string[],
    onError: (error: Error) => void,
    luaDir?: string,
  ): Promise<ClusterMap> {
    const map = new ClusterMap(seeds, onError, luaDir);
    try {
      await map.#askSeeds();
      await Promise.all(map.nodes.map((node) => node.whenReady(READY_WITHIN_MS)));
      if (!map.nodes.some(({ isReady }) => isReady))
        throw new Error('no primary of the cluster can be reached');
    } catch (error) {
      map.close();
      throw error;
    }
    map.#lookSoon(LOOK_EVERY_MS);
    return map;
  }

  get nodes(): readonly RedisNode[] {
    return [...this.#nodes.values()];
  }

  of(cell: number): RedisNode {
    return this.#places[cell] ?? this.#nowhere;
  }

  onChanged(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const node of this.#nodes.values()) node.close();
  }

  #lookSoon(afterMs: number): void {
    clearTimeout(this.#timer);
    if (!this.#isClosed) this.#timer = setTimeout(() => this.#look(), afterMs);
  }

  /** Polls every primary of the cluster. A primary that does not respond does not delay the others. */
  #look(): void {
    this.#lookedAt = performance.now();
    for (const node of this.#nodes.values()) node.identifyAgain();
    // If no known primary is reachable, other servers may have replaced all of them.
    if (!this.nodes.some(({ isReady }) => isReady)) this.#askSeeds().catch(this.#onError);
    this.#lookSoon(LOOK_EVERY_MS);
  }

  readonly #onRedirected = (): void =>
    this.#lookSoon(Math.max(0, this.#lookedAt + LOOK_AGAIN_AFTER_MS - performance.now()));

  /**
   * Adopts the view of the first seed that responds.
   * @throws the error of the last seed if none responds
   */
  async #askSeeds(): Promise<void> {
    const ask = async (seed: string): Promise<void> => {
      const text = await askOnce(seed, 'CLUSTER', 'NODES');
      this.#adopt(readClusterNodes(text, new URL(seed).hostname));
    };
    await Promise.any(this.#seeds.map(ask)).catch((error: AggregateError) => {
      throw error.errors.at(-1);
    });
  }

  #adopt(view: ClusterView): void {
    if (this.#isClosed) return;
    let isChanged = false;
    for (let cell = 0; cell < CELLS; cell++) {
      const slot = slotOfCell(cell);
      const claim = view.primaries.find(({ ranges }) =>
        ranges.some(([first, last]) => first <= slot && slot <= last),
      );
      if (claim === undefined || !this.#holds(claim, this.#claims[cell], view)) continue;
      isChanged ||= this.#claims[cell]?.address !== claim.address;
      this.#claims[cell] = claim;
    }
    if (isChanged) this.#place();
  }

  #holds(claim: Claim, known: Claim | undefined, { nodeIds }: ClusterView): boolean {
    if (known === undefined || claim.configEpoch > known.configEpoch) return true;
    // The primary has a new address, which some servers of the cluster do not know yet.
    if (claim.nodeId === known.nodeId)
      return claim.address !== known.address && this.#nodes.get(known.address)?.isReady !== true;
    // A recreated cluster counts its configuration epochs from the beginning, and its servers have new node
    // ids.
    return !nodeIds.has(known.nodeId);
  }

  #place(): void {
    const before = this.#nodes;
    const now = new Map<string, RedisNode>();
    const places: RedisNode[] = [];
    this.#claims.forEach((claim, cell) => {
      if (claim === undefined) return;
      const { address } = claim;
      const node = now.get(address) ?? before.get(address) ?? this.#begin(address);
      now.set(address, node);
      places[cell] = node;
    });
    this.#nodes = now;
    this.#places = places;
    for (const listener of this.#listeners) listener();
    // Nodes that are no longer needed are closed last, so that callers waiting for a closed node find the
    // cell on its new node.
    for (const [address, node] of before) if (!now.has(address)) node.close();
  }

  #begin(address: string): RedisNode {
    const url = new URL(this.#seeds[0]!);
    url.host = address;
    const node: RedisNode = new RedisNode(url.href, this.#onError, this.#luaDir, (client) =>
      readMemberId(client, url.hostname, (view) => {
        node.replicas = view.replicas;
        this.#adopt(view);
      }),
    );
    node.onRedirected(this.#onRedirected);
    node.begin();
    return node;
  }
}
