/**
 * An attacker of `npm run chaos -- hostile`: a process of its own at the lowest priority, so that what it computes delays the service as
 * little as may be. It floods with so many requests a second and no more, holds connections that say little, nothing, or much at
 * once, or answers without an end whoever connects to it.
 */
import { connect, createServer, type Socket } from 'node:net';
import { setPriority } from 'node:os';
import { Wire } from '../support/load.js';
import { pause } from '../support/wait.js';

export interface AttackOrder {
  readonly port: number;
  readonly connections: number;
  /** Its address, in the loopback network; absent: 127.0.0.1. */
  readonly from?: string;
  /** A port on which it answers whoever connects: in a few bytes, and without an end once it is told to. */
  readonly streamsOn?: number;
  /** Asks so often on its connections together, each of which has one request under way at most. */
  readonly flood?: { readonly request: string; readonly perSecond: number };
  /** Sends of this text a byte now and then; empty: nothing. */
  readonly slowText?: string;
  /** Sent at once on each connection. */
  readonly upload?: string;
}

export interface AttackReport {
  /** Answers by status. */
  readonly answers: Readonly<Record<string, number>>;
  readonly connectionsOpened: number;
  readonly cpuSeconds: number;
  /** Answers that were begun on that port, and what was sent of them. */
  readonly streams: number;
  readonly streamedMb: number;
}

const LOWEST_PRIORITY = 19;
const TURN_MS = 10;
const SLOW_BYTE_EVERY_MS = 2000;
/** A connection that was closed is opened again after a time up to this. */
const OPEN_AGAIN_WITHIN_MS = 2000;

/** A beginning, and what comes behind it again and again. */
const STREAMS: readonly (readonly [begin: string, piece: string])[] = [
  ['', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(2000)],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1', ';a=0123456789'.repeat(4000)],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', `2000\r\n${'x'.repeat(0x2000)}\r\n`],
];

/** What the same connections are answered with before. */
const SHORT = [500, 500, 200].map((status) => `HTTP/1.1 ${status} OK\r\nContent-Length: 0\r\n\r\n`);

let isStreaming = false;
let streams = 0;
let streamedBytes = 0;
let isOver = false;
let connectionsOpened = 0;
const answers: Record<string, number> = {};

/** Sends a request wherever a connection is free, at the pace that was ordered. */
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
    // What could not be sent in a second is not made up for.
    budget = Math.min(perSecond, budget + ((nowMs - lastMs) * perSecond) / 1000);
    lastMs = nowMs;
    // Each connection in turn: one that says nothing for 10 s is closed.
    for (; budget >= 1 && idle.length > 0; budget--) void ask(idle.shift()!);
  }
}

/** Keeps connections open, and opens those again that are closed. */
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

/** Answers each request that comes, with a stream as fast as it is taken. */
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
