/** A TCP proxy for tests that can delay, truncate or cut traffic in either direction. */
import { connect, createServer, type Socket } from 'node:net';

/** Direction of traffic: requests to the store, or replies from it. */
export type Way = 'requests' | 'answers';

export interface Cable {
  /** The given URL, with the address of the proxy instead of the store's. */
  readonly url: string;
  /** URL of the store that new connections are forwarded to. Open connections stay as they are. */
  target: string;
  /** Whether replies of the store are forwarded. If false, they are discarded. */
  answers: boolean;
  /** Whether new connections are accepted. If false, each new connection is cut at once. */
  accepts: boolean;
  /** Delay in ms of the next chunk in either direction. The chunks of a connection stay in order. */
  delayMs: () => number;
  /** Called with each chunk of requests before it is forwarded. */
  beforeRequest: (chunk: Buffer) => void;
  /** Called with each chunk of requests after it was forwarded. The function may cut the connection. */
  onRequest: (chunk: Buffer) => void;
  /** Cuts every connection. New connections are accepted as before. */
  cut(): void;
  /** Cuts each open connection in the middle of its next chunk. */
  tear(): void;
  /**
   * Cuts every connection once exactly this many bytes, counted from the call, have passed in one direction.
   * These bytes are delivered, and no later byte in either direction. Resolves when the cut has happened. If
   * called within {@link beforeRequest}, only the bytes of that connection count.
   *
   * @param byReset cuts with RST, which also discards data that a side has not read yet; otherwise with FIN
   */
  cutAfter(way: Way, bytes: number, byReset?: boolean): Promise<void>;
  /** Cancels a cut that has not happened yet. */
  disarm(): void;
  /**
   * Holds the next chunk of requests, and later chunks of its connection, for a number of ms. Then the store
   * receives all of them in order, even if the client has closed the connection. Resolves when they are
   * delivered.
   */
  holdLate(ms: number): Promise<void>;
  /** Holds the replies of the store, in order, until {@link release}. */
  hold(): void;
  release(): void;
  close(): Promise<void>;
}

interface Armed {
  readonly way: Way;
  /** The client whose bytes count, or undefined if the bytes of all clients count. */
  readonly client: Socket | undefined;
  left: number;
  readonly byReset: boolean;
  readonly done: () => void;
}

export async function proxy(target: string): Promise<Cable> {
  const open = new Set<Socket>();
  const torn = new WeakSet<Socket>();
  let armed: Armed | undefined;
  /** The client whose request is being processed. */
  let asking: Socket | undefined;
  let kept: (() => void)[] | undefined;
  let late: { readonly ms: number; readonly done: () => void } | undefined;

  /**
   * Forwards a chunk. If the cut falls within or at the end of the chunk, forwards only the part before the
   * cut, and cuts.
   */
  const forward = (chunk: Buffer, to: Socket, way: Way, client: Socket): void => {
    if (armed?.way !== way || (armed.client ?? client) !== client) {
      to.write(chunk);
      return;
    }
    if (armed.left > chunk.length) {
      armed.left -= chunk.length;
      to.write(chunk);
      return;
    }
    const { left, byReset, done } = armed;
    armed = undefined;
    const end = (): void => {
      for (const socket of open) {
        if (byReset) socket.resetAndDestroy();
        else socket.destroy();
      }
      done();
    };
    for (const socket of open) socket.pause();
    if (left === 0) end();
    else to.write(chunk.subarray(0, left), end);
  };
  const server = createServer((client) => {
    if (!made.accepts) return void client.destroy();
    const { port, hostname } = new URL(made.target);
    const store = connect(Number(port), hostname);
    const sockets = [client, store];
    /** Requests that are delivered late, even if their client has disconnected meanwhile. */
    let heldRequests: Buffer[] | undefined;
    const end = (): void => {
      if (heldRequests === undefined || store.destroyed) for (const socket of sockets) socket.destroy();
    };
    const deliverLate = ({ ms, done }: NonNullable<typeof late>): void => {
      heldRequests = [];
      setTimeout(() => {
        for (const chunk of heldRequests ?? []) store.write(chunk);
        heldRequests = undefined;
        // The store reads the delivered requests before it notices the end of the connection.
        if (client.destroyed) store.end();
        done();
      }, ms);
    };
    for (const socket of sockets) {
      socket.setNoDelay(true);
      open.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        open.delete(socket);
        end();
      });
    }
    const lane = (to: Socket, way: Way): ((chunk: Buffer) => void) =>
      held(
        () => made.delayMs(),
        (chunk) => {
          if (torn.has(client)) to.write(chunk.subarray(0, Math.floor(chunk.length / 2)), end);
          else forward(chunk, to, way, client);
        },
      );
    const toStore = lane(store, 'requests');
    const toClient = lane(client, 'answers');
    client.on('data', (chunk: Buffer) => {
      if (late !== undefined && heldRequests === undefined) {
        deliverLate(late);
        late = undefined;
      }
      if (heldRequests !== undefined) {
        heldRequests.push(chunk);
        return;
      }
      asking = client;
      made.beforeRequest(chunk);
      asking = undefined;
      toStore(chunk);
      made.onRequest(chunk);
    });
    store.on('data', (chunk: Buffer) => {
      if (!made.answers) return;
      if (kept === undefined) toClient(chunk);
      else kept.push(() => toClient(chunk));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const through = new URL(target);
  through.port = String((server.address() as { port: number }).port);
  const made: Cable = {
    url: through.href,
    target,
    answers: true,
    accepts: true,
    delayMs: () => 0,
    beforeRequest: () => {},
    onRequest: () => {},
    cut() {
      for (const socket of open) socket.destroy();
    },
    tear() {
      for (const socket of open) torn.add(socket);
    },
    cutAfter(way, bytes, byReset = false) {
      return new Promise((resolve) => {
        armed = { way, client: asking, left: bytes, byReset, done: resolve };
      });
    },
    disarm() {
      armed = undefined;
    },
    holdLate(ms) {
      return new Promise((resolve) => {
        late = { ms, done: resolve };
      });
    },
    hold() {
      kept ??= [];
    },
    release() {
      const chunks = kept ?? [];
      kept = undefined;
      for (const send of chunks) send();
    },
    async close() {
      made.cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return made;
}

/**
 * Returns a function that passes chunks on in order, each after its delay. A chunk without delay is passed on
 * at once if no chunk waits.
 */
function held(delayMs: () => number, hand: (chunk: Buffer) => void): (chunk: Buffer) => void {
  const waiting: { chunk: Buffer; dueMs: number }[] = [];
  const release = (): void => {
    for (let first = waiting[0]; first !== undefined; first = waiting[0]) {
      const restMs = first.dueMs - performance.now();
      if (restMs > 0) {
        setTimeout(release, Math.ceil(restMs));
        return;
      }
      waiting.shift();
      hand(first.chunk);
    }
  };
  return (chunk) => {
    const ms = delayMs();
    if (ms <= 0 && waiting.length === 0) {
      hand(chunk);
      return;
    }
    waiting.push({ chunk, dueMs: performance.now() + ms });
    if (waiting.length === 1) setTimeout(release, ms);
  };
}
