/** Counts connections in total and by client network, and decides which new connection is refused. */
import { readFileSync } from 'node:fs';
import { clientNetwork, isLoopback, siteNetwork } from '../../domain/trustedProxies.js';

/** File descriptors that are reserved for stores, files and the connections of the metrics server. */
const DESCRIPTORS_RESERVED = 256;
const CONNECTIONS_LEAST = 32;

export interface ConnectionLimits {
  readonly total: number;
  /** Maximum number of open connections from one IPv4 address or IPv6 /64. */
  readonly perAddress: number;
  /**
   * Returns whether the address is a proxy. A proxy carries the connections of many clients, so it has no
   * limit of its own.
   */
  isProxy(address: string): boolean;
}

export const CONNECTION_REFUSALS = ['total', 'address', 'pipeline', 'unread'] as const;
export type ConnectionRefusal = (typeof CONNECTION_REFUSALS)[number];

/**
 * Returns the connection limit that leaves file descriptors for all other uses. Without a free descriptor,
 * the process can neither accept nor refuse a connection.
 */
export function connectionsWithin(wanted: number, descriptors = descriptorLimit()): number {
  if (descriptors === undefined) return wanted;
  return Math.min(wanted, Math.max(CONNECTIONS_LEAST, descriptors - DESCRIPTORS_RESERVED));
}

/**
 * Returns the maximum number of open file descriptors of this process. Returns undefined if the operating
 * system does not report it.
 */
function descriptorLimit(): number | undefined {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}

export class Connections {
  readonly refused: Record<ConnectionRefusal, number> = { total: 0, address: 0, pipeline: 0, unread: 0 };
  readonly #byNetwork = new Map<string, number>();
  #open = 0;

  constructor(readonly limits: ConnectionLimits) {}

  get open(): number {
    return this.#open;
  }

  /** True if so many connections are open that one address could exceed its limit. */
  get mayExceedAddress(): boolean {
    return this.#open > this.limits.perAddress;
  }

  /**
   * Returns the networks that a connection counts for, each with its limit: the network of the client, and
   * the network of its IPv6 site.
   */
  boundsOf(address: string): [network: string, most: number][] {
    const client = clientNetwork(address);
    const site = siteNetwork(address);
    const bounds: [string, number][] = [[client, this.limits.perAddress]];
    // An IPv6 site has thousands of /64 networks. Without its own limit, a single site could take all
    // connections.
    if (site !== client) bounds.push([site, Math.max(this.limits.perAddress, this.limits.total / 2)]);
    return bounds;
  }

  /** Returns whether the limit for one address applies to an address. Loopback and proxies are exempt. */
  isBounded(address: string): boolean {
    return !isLoopback(address) && !this.limits.isProxy(address);
  }

  /** Counts a connection in the total. Returns the reason if the connection must be closed. */
  add(): ConnectionRefusal | undefined {
    return ++this.#open > this.limits.total ? 'total' : undefined;
  }

  /**
   * Counts a connection by its address and in the total. Returns the reason if the connection must be closed.
   */
  addOf(address: string): ConnectionRefusal | undefined {
    let isOver = false;
    for (const [network, most] of this.boundsOf(address)) {
      const count = (this.#byNetwork.get(network) ?? 0) + 1;
      this.#byNetwork.set(network, count);
      if (count > most) isOver = true;
    }
    return this.add() ?? (isOver && this.isBounded(address) ? 'address' : undefined);
  }

  remove(): void {
    this.#open--;
  }

  removeOf(address: string): void {
    for (const [network] of this.boundsOf(address)) {
      const count = this.#byNetwork.get(network)! - 1;
      if (count === 0) this.#byNetwork.delete(network);
      else this.#byNetwork.set(network, count);
    }
    this.remove();
  }
}
