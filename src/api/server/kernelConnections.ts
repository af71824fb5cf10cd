/**
 * Finds client networks with too many connections by the kernel's connection tables, because uWebSockets.js
 * does not report which connection closed. Works on Linux only; on other systems it finds no network.
 */
import { readFile } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Connections } from './connections.js';

const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];
const COUNT_EVERY_MS = 1000;
const ESTABLISHED = '01';
/**
 * Number of lines of a kernel table that are read in one turn of the event loop. Reading them takes about a
 * millisecond.
 */
const LINES_PER_TURN = 1000;
/**
 * Maximum number of networks whose new connections are counted in this process. If there are more networks,
 * the kernel's table is read.
 */
const NETWORKS_MAX = 10_000;

/** Reads the text of a file. Returns an empty string if the file does not exist. */
type ReadText = (path: string) => Promise<string>;
const readTable: ReadText = (path) => readFile(path, 'latin1').catch(() => '');

export class KernelConnections {
  readonly #readTable: ReadText;
  /**
   * Connections by network: the result of the last count in the kernel, and the connections opened since that
   * count began.
   */
  #counted: ReadonlyMap<string, number> = new Map();
  readonly #opened = new Map<string, number>();
  /**
   * True if every open connection is included in the last count of the kernel or in the connections opened
   * since.
   */
  #areAllKnown = false;
  #countedMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly connections: Connections,
    private readonly port: () => number,
    read = readTable,
  ) {
    this.#readTable = read;
  }

  /**
   * Counts a new connection. Returns whether its address had too many connections at the last count in the
   * kernel. The kernel is read at most once a second, and only if an address may have too many connections,
   * because a read takes a tenth of a second of a core with thousands of connections.
   */
  isOver(address: string): boolean {
    if (!this.connections.mayExceedAddress) {
      this.#areAllKnown = false;
      return false;
    }
    if (!this.connections.isBounded(address)) return false;
    let isClear = this.#areAllKnown;
    let isOver = false;
    for (const [network, most] of this.connections.boundsOf(address)) {
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
    const port = this.port().toString(16).toUpperCase().padStart(4, '0');
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
      for (const [network] of this.connections.boundsOf(addressOf(client)))
        networks.set(network, (networks.get(network) ?? 0) + count);
    }
    return networks;
  }
}

/** Counts the clients of established connections to a port, by address in the kernel's notation. */
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

/**
 * Converts an address from the kernel's notation: hexadecimal 32-bit words, each in the byte order of the
 * machine.
 */
function addressOf(hex: string): string {
  const bytes = Buffer.from(hex, 'hex');
  for (let word = 0; word < bytes.length; word += 4) bytes.subarray(word, word + 4).reverse();
  if (bytes.length === 4) return bytes.join('.');
  return bytes.toString('hex').replace(/(.{4})(?!$)/g, '$1:');
}
