/**
 * TCP relays in front of the cluster buses of Redis servers. They can cut a server off from the other
 * servers, including its replication, while clients still reach it.
 */
import { readFile } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';

import type { TestCluster } from './cluster.js';
import type { StoreServer } from './storeServer.js';
import { until } from './wait.js';

/** Each message of the bus has the id of its sending node in bytes 40 to 79, as 40 hex digits. */
const SENDER_AT = 40;
const SENDER_END = 80;
const WRONG_PASSWORD = 'cut-off';

/** A Redis server, with the bus address that the other servers know. */
interface Member {
  readonly nodeId: string;
  /** Port of the relay in front of the bus. */
  readonly port: number;
}

/** A bus connection of one server to another. */
interface Link {
  readonly from: string;
  /** Port of the relay in front of the target's bus. */
  readonly to: number;
  readonly sockets: readonly Socket[];
}

export class BusRelays {
  readonly #servers: Server[] = [];
  /** Ports of the relays, by the folders of the servers. */
  readonly #ports = new Map<string, number>();
  readonly #links = new Set<Link>();
  #cutOff: Member | undefined;

  /** Returns the lines of a server's configuration for its bus, for `ownCluster`. */
  readonly settings = async (folder: string): Promise<string> => {
    let port = this.#ports.get(folder);
    if (port === undefined) {
      port = await this.#open(folder);
      this.#ports.set(folder, port);
    }
    return `cluster-announce-bus-port ${port}\n`;
  };

  /** Waits until every server reaches every other through a relay. */
  async areUsed(cluster: TestCluster): Promise<void> {
    const pairs = cluster.servers.length * (cluster.servers.length - 1);
    const linked = (): number => new Set([...this.#links].map(({ from, to }) => `${from} ${to}`)).size;
    await until(() => linked() === pairs, 'every server reaches every other through a relay');
  }

  /**
   * Cuts a primary and its replica off from each other, and the primary's bus off from all other servers.
   * @returns a function that reconnects them
   */
  async cutOff(
    cluster: TestCluster,
    primary: StoreServer,
    replica: StoreServer,
  ): Promise<() => Promise<void>> {
    const nodes = await cluster.ask(primary, 'CLUSTER', 'NODES');
    const [, nodeId, port] = /^(\w+) \S+?@(\d+)\S* myself/m.exec(nodes) ?? [];
    if (nodeId === undefined) throw new Error(`the server does not name itself: ${nodes}`);
    await cluster.ask(replica, 'CONFIG', 'SET', 'masterauth', WRONG_PASSWORD);
    this.#cutOff = { nodeId, port: Number(port) };
    for (const link of this.#links) if (this.#isCut(link)) end(link.sockets);
    await cluster.ask(primary, 'CLIENT', 'KILL', 'TYPE', 'replica');
    return async () => {
      this.#cutOff = undefined;
      await cluster.ask(replica, 'CONFIG', 'SET', 'masterauth', new URL(replica.url).password);
    };
  }

  close(): void {
    for (const server of this.#servers) server.close();
    for (const { sockets } of this.#links) end(sockets);
  }

  #isCut({ from, to }: Pick<Link, 'from' | 'to'>): boolean {
    return from === this.#cutOff?.nodeId || to === this.#cutOff?.port;
  }

  async #open(folder: string): Promise<number> {
    let port = 0;
    const server = createServer((socket) => this.#accept(socket, folder, port));
    this.#servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    ({ port } = server.address() as { port: number });
    return port;
  }

  /** Accepts a connection, and forwards nothing until its sender is identified. */
  #accept(socket: Socket, folder: string, to: number): void {
    const chunks: Buffer[] = [];
    socket.on('error', () => socket.destroy());
    const read = (chunk: Buffer): void => {
      chunks.push(chunk);
      const begun = Buffer.concat(chunks);
      if (begun.length < SENDER_END) return;
      socket.off('data', read);
      socket.pause();
      void this.#link(socket, folder, { from: begun.toString('latin1', SENDER_AT, SENDER_END), to }, begun);
    };
    socket.on('data', read);
  }

  async #link(socket: Socket, folder: string, ends: Pick<Link, 'from' | 'to'>, begun: Buffer): Promise<void> {
    // The server may have got another port at its restart.
    const busPort = Number(await readFile(join(folder, 'bus-port'), 'utf8'));
    if (this.#isCut(ends)) {
      socket.destroy();
      return;
    }
    const bus = connect(busPort, '127.0.0.1');
    const link: Link = { ...ends, sockets: [socket, bus] };
    this.#links.add(link);
    for (const each of link.sockets) {
      each.setNoDelay(true);
      each.on('error', () => {});
      each.on('close', () => {
        this.#links.delete(link);
        end(link.sockets);
      });
    }
    bus.write(begun);
    socket.pipe(bus);
    bus.pipe(socket);
  }
}

const end = (sockets: readonly Socket[]): void => {
  for (const socket of sockets) socket.destroy();
};
