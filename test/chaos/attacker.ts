/**
 * Runs an attacker of `npm run chaos -- hostile` in a process of its own. The process has the lowest
 * priority, so that its own work delays the service as little as possible. The attacker floods at a fixed
 * rate, holds slow, silent or bulky connections, or sends endless answers to every client that connects to
 * it.
 */
import { connect, createServer, type Socket } from 'node:net';
import { setPriority } from 'node:os';
import { Wire } from '../support/load.js';
import { pause } from '../support/wait.js';

export interface AttackOrder {
  readonly port: number;
  readonly connections: number;
  /** Source address in the loopback network. Default 127.0.0.1. */
  readonly from?: string;
  /**
   * Port on which the attacker answers clients. The answers have a few bytes at first, and are endless after
   * the order to stream.
   */
  readonly streamsOn?: number;
  /**
   * Request that the attacker repeats at a fixed rate, spread over all its connections, with at most one
   * request in flight on each.
   */
  readonly flood?: { readonly request: string; readonly perSecond: number };
  /**
   * Text that is sent one byte at a time, at long intervals. With an empty text the connection stays silent.
   */
  readonly slowText?: string;
  /** Data that is sent at once on each connection. */
  readonly upload?: string;
}

export interface AttackReport {
  readonly answers: Readonly<Record<string, number>>;
  readonly connectionsOpened: number;
  readonly cpuSeconds: number;
  /** Number of endless answers that were begun. `streamedMb` is their total size. */
  readonly streams: number;
  readonly streamedMb: number;
}

const LOWEST_PRIORITY = 19;
const TURN_MS = 10;
const SLOW_BYTE_EVERY_MS = 2000;
/** Longest wait in ms before a closed connection is opened again. */
const OPEN_AGAIN_WITHIN_MS = 2000;

/** Endless answers: a beginning, and a piece that is repeated. */
const STREAMS: readonly (readonly [begin: string, piece: string])[] = [
  ['', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(2000)],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1', ';a=0123456789'.repeat(4000)],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', `2000\r\n${'x'.repeat(0x2000)}\r\n`],
];

/** Short answers that the attacker gives before it streams. */
const SHORT = [500, 500, 200].map((status) => `HTTP/1.1 ${status} OK\r\nContent-Length: 0\r\n\r\n`);

let isStreaming = false;
let streams = 0;
let streamedBytes = 0;
let isOver = false;
let connectionsOpened = 0;
const answers: Record<string, number> = {};

/** Sends requests at the ordered rate, each on a free connection. */
async function flood({ port, connections, from, flood }: AttackOrder): Promise<void> {
  const { request, perSecond } = flood!;
  const isHead = request.startsWith('HEAD');
  const idle: Wire[] = [];
  const open = async (): Promise<void> => {
    connectionsOpened++;
    idle.push(await Wire.open(port, from));
  };
  await Promise.all(Array.from({ length: connections }, open));
  const ask = async (wire: Wire): Promise<void> => {
    try {
      const { status } = await wire.ask(request, isHead);
      answers[status] = (answers[status] ?? 0) + 1;
      idle.push(wire);
    } catch {
      answers.none = (answers.none ?? 0) + 1;
      await open().catch(() => {});
    }
  };
  let budget = 0;
  let lastMs = performance.now();
  while (!isOver) {
    await pause(TURN_MS);
    const nowMs = performance.now();
    // Requests that could not be sent within a second are dropped.
    budget = Math.min(perSecond, budget + ((nowMs - lastMs) * perSecond) / 1000);
    lastMs = nowMs;
    // The connections are used in turn, because the server closes a connection that is silent for 10 s.
    for (; budget >= 1 && idle.length > 0; budget--) void ask(idle.shift()!);
  }
}

/** Keeps connections open and reopens those that are closed. */
async function hold({ port, connections, slowText = '', upload }: AttackOrder): Promise<void> {
  const open = (): void => {
    if (isOver) return;
    connectionsOpened++;
    const socket: Socket = connect({ port, host: '127.0.0.1' });
    let sent = 0;
    const timer =
      slowText === ''
        ? undefined
        : setInterval(() => socket.write(slowText[sent++ % slowText.length]!), SLOW_BYTE_EVERY_MS);
    socket.on('error', () => {});
    if (upload !== undefined) socket.write(upload);
    socket.resume();
    socket.on('close', () => {
      clearInterval(timer);
      setTimeout(open, Math.random() * OPEN_AGAIN_WITHIN_MS);
    });
  };
  for (let i = 0; i < connections; i++) setTimeout(open, Math.random() * OPEN_AGAIN_WITHIN_MS);
  while (!isOver) await pause(TURN_MS * 10);
}

/** Answers each request with a stream that is as fast as the client reads. */
function streamOn(port: number): void {
  createServer((socket) => {
    socket.on('error', () => {});
    socket.on('close', () => {
      streamedBytes += socket.bytesWritten;
    });
    socket.once('data', () => {
      if (!isStreaming) {
        socket.end(SHORT[streams++ % SHORT.length]!);
        return;
      }
      const [begin, piece] = STREAMS[streams++ % STREAMS.length]!;
      socket.write(begin);
      const stream = (): void => {
        while (!isOver && !socket.destroyed && socket.write(piece));
      };
      socket.on('drain', stream);
      stream();
    });
  }).listen(port, '127.0.0.1');
}

setPriority(LOWEST_PRIORITY);
process.on('disconnect', () => process.exit());
process.on('message', (order: AttackOrder | 'stream' | 'end') => {
  if (order === 'stream') {
    isStreaming = true;
    return;
  }
  if (order !== 'end') {
    if (order.streamsOn !== undefined) streamOn(order.streamsOn);
    void (order.flood === undefined ? hold(order) : flood(order));
    return;
  }
  isOver = true;
  const { user, system } = process.cpuUsage();
  const report: AttackReport = {
    answers,
    connectionsOpened,
    streams,
    streamedMb: streamedBytes / 1_048_576,
    cpuSeconds: (user + system) / 1e6,
  };
  process.send!(report, () => process.exit());
});
