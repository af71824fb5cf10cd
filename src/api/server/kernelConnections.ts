/**
 * Client networks with too many connections, as the kernel counts them: uWebSockets.js does not tell which connection it was
 * that closed. Linux only; elsewhere none is known.
 */
import { readFile } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Connections } from './connections.js';

const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];
const COUNT_EVERY_MS = 1000;
const ESTABLISHED = '01';
/** Lines of a table that are read in one turn of the event loop: about a millisecond. */
const LINES_PER_TURN = 1000;
/** Networks whose new connections are counted here; beyond them the kernel is asked. */
const NETWORKS_MAX = 10_000;

/** The text of a file; empty where there is none. */
type ReadText = (path: string) => Promise<string>;
const readTable: ReadText = (path) => readFile(path, 'latin1').catch(() => '');

export class KernelConnections {
  readonly #connections: Connections;
  readonly #port: () => number;
  readonly #readTable: ReadText;
  /** By network: connections at the last count, and those that were opened since it began. */
  #counted: ReadonlyMap<string, number> = new Map();
  readonly #opened = new Map<string, number>();
  /** Every connection is in one of the two. */
  #areAllKnown = false;
  #countedMs = Number.NEGATIVE_INFINITY;

  constructor(connections: Connections, port: () => number, read = readTable) {
    this.#connections = connections;
    this.#port = port;
    this.#readTable = read;
  }

  /**
   * Takes a new connection into account.
   * @returns whether its address had too many when the kernel was asked last. The kernel is asked once a second at the most, and
   *   only where the address may have too many: with thousands of connections that takes a tenth of a second of a core.
   */
  isOver(address: string): boolean {
    if (!this.#connections.mayExceedAddress) {
      this.#areAllKnown = false;
      return false;
    }
    if (!this.#connections.isBounded(address)) return false;
    let isClear = this.#areAllKnown;
    let isOver = false;
    for (const [network, most] of this.#connections.boundsOf(address)) {
      const opened = (this.#opened.get(network) ?? 0) + 1;
      this.#opened.set(network, opened);
      const counted = this.#counted.get(network) ?? 0;
      if (counted + opened > most) isClear = false;
      if (counted > most) isOver = true;
    }
    isClear &&= this.#opened.size <= NETWORKS_MAX;
    if (!isClear && performance.now() - this.#countedMs > COUNT_EVERY_MS) {
      this.#countedMs = performance.now();
      void this.#count();
    }
    return isOver;
  }

  async #count(): Promise<void> {
    this.#opened.clear();
    this.#areAllKnown = true;
    const port = this.#port().toString(16).toUpperCase().padStart(4, '0');
    const tables = await Promise.all(TABLES.map(this.#readTable));
    const counts = new Map<string, number>();
    for (const table of tables) await countClients(table, port, counts);
    this.#counted = await this.#byNetwork(counts);
  }

  async #byNetwork(counts: ReadonlyMap<string, number>): Promise<Map<string, number>> {
    const networks = new Map<string, number>();
    let clients = 0;
    for (const [client, count] of counts) {
      if (++clients % LINES_PER_TURN === 0) await nextTurn();
      for (const [network] of this.#connections.boundsOf(addressOf(client)))
        networks.set(network, (networks.get(network) ?? 0) + count);
    }
    return networks;
  }
}

/** Counts the clients of established connections to a port, by the kernel's spelling of their address. */
async function countClients(table: string, port: string, counts: Map<string, number>): Promise<void> {
  let end = 0;
  let lines = 0;
  for (let start = table.indexOf('\n') + 1; start < table.length; start = end + 1) {
    end = table.indexOf('\n', start);
    if (end < 0) return;
    if (++lines % LINES_PER_TURN === 0) await nextTurn();
    const local = table.indexOf(':', table.indexOf(':', start) + 1) + 1;
    if (!table.startsWith(port, local)) continue;
    const clientEnd = table.indexOf(':', local + port.length + 1);
    if (!table.startsWith(ESTABLISHED, clientEnd + 6)) continue;
    const client = table.slice(local + port.length + 1, clientEnd);
    counts.set(client, (counts.get(client) ?? 0) + 1);
  }
}

/** Address of the kernel's spelling: 32-bit words in hexadecimal, each in the order of the machine's bytes. */
function addressOf(hex: string): string {
  const bytes = Buffer.from(hex, 'hex');
  for (let word = 0; word < bytes.length; word += 4) bytes.subarray(word, word + 4).reverse();
  if (bytes.length === 4) return bytes.join('.');
  return bytes.toString('hex').replace(/(.{4})(?!$)/g, '$1:');
}
