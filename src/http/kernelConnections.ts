/**
 * Client networks with too many connections, as the kernel counts them: uWebSockets.js does not tell which connection it was
 * that closed. Linux only; elsewhere none is known.
 */
import { readFile } from 'node:fs/promises';
import { clientNetwork } from '../domain/trustedProxies.js';
import type { Connections } from './connections.js';

const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];
const COUNT_EVERY_MS = 1000;
const ESTABLISHED = '01';

export class KernelConnections {
  readonly #connections: Connections;
  readonly #port: () => number;
  #over: ReadonlySet<string> = new Set();
  #countedMs = Number.NEGATIVE_INFINITY;

  constructor(connections: Connections, port: () => number) {
    this.#connections = connections;
    this.#port = port;
  }

  /** Whether an address had too many connections when the kernel was asked last, at most about a second ago. */
  isOver(address: string): boolean {
    if (!this.#connections.mayExceedAddress) return false;
    if (performance.now() - this.#countedMs > COUNT_EVERY_MS) {
      this.#countedMs = performance.now();
      void this.#count();
    }
    return this.#over.has(clientNetwork(address)) && this.#connections.isBounded(address);
  }

  async #count(): Promise<void> {
    const port = this.#port().toString(16).toUpperCase().padStart(4, '0');
    const tables = await Promise.all(TABLES.map((path) => readFile(path, 'latin1').catch(() => '')));
    const counts = new Map<string, number>();
    for (const table of tables) countClients(table, port, counts);
    const over = new Set<string>();
    for (const [network, count] of byNetwork(counts)) {
      if (count > this.#connections.limits.perAddress) over.add(network);
    }
    this.#over = over;
  }
}

/** Counts the clients of established connections to a port, by the kernel's spelling of their address. */
function countClients(table: string, port: string, counts: Map<string, number>): void {
  let end = 0;
  for (let start = table.indexOf('\n') + 1; start < table.length; start = end + 1) {
    end = table.indexOf('\n', start);
    if (end < 0) return;
    const local = table.indexOf(':', table.indexOf(':', start) + 1) + 1;
    if (!table.startsWith(port, local)) continue;
    const clientEnd = table.indexOf(':', local + port.length + 1);
    if (!table.startsWith(ESTABLISHED, clientEnd + 6)) continue;
    const client = table.slice(local + port.length + 1, clientEnd);
    counts.set(client, (counts.get(client) ?? 0) + 1);
  }
}

function byNetwork(counts: ReadonlyMap<string, number>): Map<string, number> {
  const networks = new Map<string, number>();
  for (const [client, count] of counts) {
    const network = clientNetwork(addressOf(client));
    networks.set(network, (networks.get(network) ?? 0) + count);
  }
  return networks;
}

/** Address of the kernel's spelling: 32-bit words in hexadecimal, each in the order of the machine's bytes. */
function addressOf(hex: string): string {
  const bytes = Buffer.from(hex, 'hex');
  for (let word = 0; word < bytes.length; word += 4) bytes.subarray(word, word + 4).reverse();
  if (bytes.length === 4) return bytes.join('.');
  return bytes.toString('hex').replace(/(.{4})(?!$)/g, '$1:');
}
