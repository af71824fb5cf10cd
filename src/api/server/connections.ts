/** How many connections there are, in all and by client network, and which further one is refused. */
import { readFileSync } from 'node:fs';
import { clientNetwork, isLoopback, siteNetwork } from '../../domain/trustedProxies.js';

/** Descriptors that are left for stores, files and the connections of the metrics server. */
const DESCRIPTORS_RESERVED = 256;
const CONNECTIONS_LEAST = 32;

export interface ConnectionLimits {
  /** Open at once. */
  readonly total: number;
  /** Open at once from one IPv4 address or IPv6 /64. */
  readonly perAddress: number;
  /** An address that carries the connections of many clients has no bound of its own. */
  isProxy(address: string): boolean;
}

/** Why a connection was closed before its time. */
export const CONNECTION_REFUSALS = ['total', 'address', 'pipeline', 'unread'] as const;
export type ConnectionRefusal = (typeof CONNECTION_REFUSALS)[number];

/**
 * The bound for connections that leaves descriptors for everything else: without a descriptor nothing can be accepted, nor
 * refused.
 */
export function connectionsWithin(wanted: number, descriptors = descriptorLimit()): number {
  if (descriptors === undefined) return wanted;
  return Math.min(wanted, Math.max(CONNECTIONS_LEAST, descriptors - DESCRIPTORS_RESERVED));
}

/** Descriptors that this process may have open; undefined where the system does not tell. */
function descriptorLimit(): number | undefined {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}

export class Connections {
  readonly limits: ConnectionLimits;
  readonly refused: Record<ConnectionRefusal, number> = { total: 0, address: 0, pipeline: 0, unread: 0 };
  readonly #byNetwork = new Map<string, number>();
  #open = 0;

  constructor(limits: ConnectionLimits) {
    this.limits = limits;
  }

  get open(): number {
    return this.#open;
  }

  /** Whether the bound by address can be reached at all with what is open. */
  get mayExceedAddress(): boolean {
    return this.#open > this.limits.perAddress;
  }

  /** The networks that a connection counts for, and how many each may have open: its client's, and that of an IPv6 site. */
  boundsOf(address: string): [network: string, most: number][] {
    const client = clientNetwork(address);
    const site = siteNetwork(address);
    const bounds: [string, number][] = [[client, this.limits.perAddress]];
    // A site has thousands of /64s: without this bound one could open all connections that there are.
    if (site !== client) bounds.push([site, Math.max(this.limits.perAddress, this.limits.total / 2)]);
    return bounds;
  }

  /** Whether an address has a bound of its own. */
  isBounded(address: string): boolean {
    return !isLoopback(address) && !this.limits.isProxy(address);
  }

  /** Counts a connection. @returns why it has to be closed, where it has to */
  add(): ConnectionRefusal | undefined {
    return ++this.#open > this.limits.total ? 'total' : undefined;
  }

  /** Counts a connection by its address, too. */
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
