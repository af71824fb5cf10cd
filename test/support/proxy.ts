/** A TCP proxy of the test's own: it can hold back, tear or cut what goes either way. */
import { connect, createServer, type Socket } from 'node:net';

/** Which way bytes go: to the store, or from it. */
export type Way = 'requests' | 'answers';

export interface Cable {
  /** The given URL, through the proxy. */
  readonly url: string;
  /** Forwards answers of the store; false: they are swallowed. */
  answers: boolean;
  /** Takes new connections; false: each is cut at once. */
  accepts: boolean;
  /** Milliseconds by which the next chunk, either way, is held back; chunks of a connection stay in order. */
  delayMs: () => number;
  /** Called with each chunk of requests before it is forwarded. */
  beforeRequest: (chunk: Buffer) => void;
  /** Called with each chunk of requests that was forwarded; may cut. */
  onRequest: (chunk: Buffer) => void;
  /** Cuts every connection; new ones are made as before. */
  cut(): void;
  /** Cuts each connection that is open in the middle of its next chunk. */
  tear(): void;
  /**
   * Cuts every connection once exactly so many bytes, counted from now, have gone one way: those are delivered, and
   * nothing of either way after them. Resolves when it has come to that. Called within {@link beforeRequest}, it counts the
   * bytes of that connection only.
   * @param byReset with RST, which takes from either side also what it has not read yet; else with FIN.
   */
  cutAfter(way: Way, bytes: number, byReset?: boolean): Promise<void>;
  /** Takes back a cut that has not come yet. */
  disarm(): void;
  /**
   * Holds the next chunk of requests, and what follows on its connection, for so long; then the store gets it all, in order, also
   * if the client has given the connection up by then. Resolves when that has been delivered.
   */
  holdLate(ms: number): Promise<void>;
  /** Keeps what the store answers until {@link release}, in order. */
  hold(): void;
  release(): void;
  close(): Promise<void>;
}

interface Armed {
  readonly way: Way;
  /** Whose bytes count; undefined: everybody's. */
  readonly client: Socket | undefined;
  left: number;
  readonly byReset: boolean;
  readonly done: () => void;
}

export async function proxy(target: string): Promise<Cable> {
  const url = new URL(target);
  const open = new Set<Socket>();
  const torn = new WeakSet<Socket>();
  let armed: Armed | undefined;
  /** Whose request is being looked at. */
  let asking: Socket | undefined;
  let kept: (() => void)[] | undefined;
  let late: { readonly ms: number; readonly done: () => void } | undefined;

  /** Forwards a chunk; where the cut comes within it or at its end, what is before the cut, and cuts. */
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
    const store = connect(Number(url.port), url.hostname);
    const sockets = [client, store];
    /** Requests that are delivered late, whatever becomes of their client. */
    let heldRequests: Buffer[] | undefined;
    const end = (): void => {
      if (heldRequests === undefined || store.destroyed) for (const socket of sockets) socket.destroy();
    };
    const deliverLate = ({ ms, done }: NonNullable<typeof late>): void => {
      heldRequests = [];
      setTimeout(() => {
        for (const chunk of heldRequests ?? []) store.write(chunk);
        heldRequests = undefined;
        // The store has read what was written before it sees the end.
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

/** Hands chunks on in their order, each once its delay is over; at once where there is none and nothing waits. */
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
