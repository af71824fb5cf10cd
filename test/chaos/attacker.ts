/**
 * An attacker of `npm run hostile`: a process of its own at the lowest priority, so that what it computes delays the service as
 * little as may be. It floods with so many requests a second and no more, or holds connections that say little, nothing, or much at once.
 */
import { connect, type Socket } from 'node:net';
import { setPriority } from 'node:os';
import { Wire } from '../support/load.js';
import { pause } from '../support/wait.js';

export interface AttackOrder {
  readonly port: number;
  readonly connections: number;
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
}

const LOWEST_PRIORITY = 19;
const TURN_MS = 10;
const SLOW_BYTE_EVERY_MS = 2000;
/** A connection that was closed is opened again after a time up to this. */
const OPEN_AGAIN_WITHIN_MS = 2000;

let isOver = false;
let connectionsOpened = 0;
const answers: Record<string, number> = {};

/** Sends a request wherever a connection is free, at the pace that was ordered. */
async function flood({ port, connections, flood }: AttackOrder): Promise<void> {
  const { request, perSecond } = flood!;
  const idle: Wire[] = [];
  const open = async (): Promise<void> => {
    connectionsOpened++;
    idle.push(await Wire.open(port));
  };
  await Promise.all(Array.from({ length: connections }, open));
  const ask = async (wire: Wire): Promise<void> => {
    try {
      const { status } = await wire.ask(request);
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

setPriority(LOWEST_PRIORITY);
process.on('disconnect', () => process.exit());
process.on('message', (order: AttackOrder | 'end') => {
  if (order !== 'end') {
    void (order.flood === undefined ? hold(order) : flood(order));
    return;
  }
  isOver = true;
  const { user, system } = process.cpuUsage();
  const report: AttackReport = { answers, connectionsOpened, cpuSeconds: (user + system) / 1e6 };
  process.send!(report, () => process.exit());
});
