/**
 * `npm run hostile [-- --seconds 60]`: everything that strangers and a partner can do to others at once. Slow and idle
 * connections, a flood of a partner and one of strangers, while another partner spins: its p99 stays below three times the
 * quiet one, no answer is lost, the memory is flat, the audit finds nothing. Ends with 1 where one of these fails.
 */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { parseArgs } from 'node:util';
import { runToEnd } from '../support/cleanup.js';
import { plainRequest, portOf, spinRequest, Wire } from '../support/load.js';
import { environment, spawnService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import { ownStores } from '../support/stores.js';
import { pause } from '../support/wait.js';
import { audit } from './round.js';

const SLOW = 500;
const IDLE = 5000;
const QUIET_SECONDS = 10;
const PARTNER_CONNECTIONS = 32;
const STRANGER_CONNECTIONS = 32;
const SPINS_PER_SECOND = 100;
/** Of one that waits for each answer, these are in flight at most. */
const VICTIM_CONNECTIONS = 16;
const SLOW_BYTE_EVERY_MS = 2000;
const P99_RATIO_MAX = 3;
const GROWTH_MB_MAX = 100;

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' } } });
const seconds = Number(values.seconds);

const residentMb = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

const percentile = (times: number[], share: number): number =>
  times.sort((a, b) => a - b)[Math.floor(times.length * share)] ?? Number.NaN;

/** Spins at a steady rate; each time counts from when the spin was due. @returns milliseconds, and answers other than 200 */
async function spinFor(port: number, request: () => Buffer, forSeconds: number) {
  const times: number[] = [];
  let lost = 0;
  const startMs = performance.now();
  const total = forSeconds * SPINS_PER_SECOND;
  let next = 0;
  await Promise.all(
    Array.from({ length: VICTIM_CONNECTIONS }, async () => {
      const wire = await Wire.open(port);
      while (next < total) {
        const dueMs = startMs + (next++ * 1000) / SPINS_PER_SECOND;
        const waitMs = dueMs - performance.now();
        if (waitMs > 0) await pause(waitMs);
        const answer = await wire.ask(request()).catch(() => undefined);
        if (answer?.status === 200) times.push(performance.now() - dueMs);
        else lost++;
      }
      wire.close();
    }),
  );
  return { times, lost };
}

/** Asks without a pause on some connections, which it opens again when they are closed. */
function flood(port: number, connections: number, bytes: string | Buffer, isOver: () => boolean) {
  let answers = 0;
  const done = Promise.all(
    Array.from({ length: connections }, async () => {
      while (!isOver()) {
        try {
          const wire = await Wire.open(port);
          while (!isOver()) {
            await wire.ask(bytes);
            answers++;
          }
          wire.close();
        } catch {
          await pause(10);
        }
      }
    }),
  );
  return { done, answers: () => answers };
}

/** Keeps connections open, of which some send a byte of a request now and then. */
function hold(
  port: number,
  count: number,
  slowBytes: string | undefined,
  isOver: () => boolean,
): Promise<void> {
  const open = (): Socket => {
    const socket = connect({ port, host: '127.0.0.1' });
    let sent = 0;
    const timer = setInterval(() => {
      if (slowBytes !== undefined) socket.write(slowBytes[sent++ % slowBytes.length]!);
    }, SLOW_BYTE_EVERY_MS);
    socket.on('error', () => {});
    socket.on('close', () => {
      clearInterval(timer);
      if (!isOver()) setTimeout(() => sockets.push(open()), 500);
    });
    return socket;
  };
  const sockets: Socket[] = Array.from({ length: count }, open);
  return (async () => {
    while (!isOver()) await pause(100);
    for (const socket of sockets) socket.destroy();
  })();
}

await runToEnd(async (cleanup) => {
  const stores = await ownStores();
  cleanup.add(() => stores.drop());
  const service = await spawnService(environment(stores, { LOG_LEVEL: 'fatal' }));
  cleanup.add(() => service.stop());
  const port = portOf(service.base!);
  const [victim, flooder] = [await service.client.newPartner(), await service.client.newPartner()];
  for (const { partnerId } of [victim])
    await service.client.operator('PATCH', `/partners/${partnerId}`, { spinRateLimit: 1_000_000 });
  const sheet = parSheet('classic-3-reel');
  const games = [
    await service.client.newGame(victim.key, sheet),
    await service.client.newGame(flooder.key, sheet),
  ];
  const spin = (key: string, gameId: number, playerId: string): Buffer =>
    spinRequest(key, JSON.stringify({ gameId, playerId, wagerUsd: 0.25 }));
  const victims = (): Buffer => spin(victim.key, games[0]!, `p${Math.floor(Math.random() * 500)}`);

  await spinFor(port, victims, 3);
  const quiet = await spinFor(port, victims, QUIET_SECONDS);
  const quietMs = percentile(quiet.times, 0.99);

  let over = false;
  const isOver = (): boolean => over;
  const held = [
    hold(port, SLOW, plainRequest('GET', '/healthz', victim.key), isOver),
    hold(port, IDLE, undefined, isOver),
  ];
  const floods = [
    flood(port, PARTNER_CONNECTIONS, spin(flooder.key, games[1]!, 'flood'), isOver),
    flood(port, STRANGER_CONNECTIONS, plainRequest('GET', '/api/partner/v1/games', 'ks_wrong'), isOver),
  ];
  // Until all are connected: that they come at once is no part of the figures of memory.
  await pause(3000);
  const beforeMb = residentMb(service.pid);
  const hostile = await spinFor(port, victims, seconds);
  const afterMb = residentMb(service.pid);
  over = true;
  await Promise.all([...held, ...floods.map(({ done }) => done)]);
  const hostileMs = percentile(hostile.times, 0.99);
  await service.stop();
  const faults = await audit(stores);

  const ratio = hostileMs / quietMs;
  console.log(
    `p99 of ${hostile.times.length} spins: ${hostileMs.toFixed(1)} ms, quiet ${quietMs.toFixed(1)} ms, ratio ${ratio.toFixed(2)}`,
  );
  console.log(`spins without a 200: ${quiet.lost + hostile.lost}`);
  console.log(
    `answers to the partner's flood: ${floods[0]!.answers()}, to the strangers': ${floods[1]!.answers()}`,
  );
  console.log(`memory: ${beforeMb.toFixed(0)} MB, after ${seconds} s ${afterMb.toFixed(0)} MB`);
  console.log(`audit: ${faults ?? 'clean'}`);
  return (
    ratio < P99_RATIO_MAX &&
    quiet.lost + hostile.lost === 0 &&
    afterMb - beforeMb < GROWTH_MB_MAX &&
    faults === undefined
  );
});
