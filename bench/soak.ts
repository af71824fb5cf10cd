/**
 * `npm run bench -- soak [--minutes 20] [--share 0.7] [--connections 64]`
 *
 * Loads a front end and a worker for a long time at a share of their capacity, which is measured first. The
 * load consists of slots and raffles of several partners with a new requestId for each spin, large wins that
 * are delivered as webhooks, and look-ups. The run passes only if nothing grows after the warm-up (memory of
 * each process and store, queues, handles), no answer is a 5xx, and the ledger contains exactly the answered
 * spins. RequestIds are bound for one minute, so that Redis releases them during the soak.
 *
 * The shortest useful run takes six and a half minutes. Prints the findings, and exits with 1 if a check
 * failed. Needs Linux.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { bodyOf } from '../src/api/client/apiClients.js';
import { type Cleanup, runToEnd } from '../test/support/cleanup.js';
import { pause } from '../test/support/wait.js';
import { type LoadResult, startGenerator, type Target } from './load.js';
import { CpuMeter, type CpuTimes, cpuBetween, describeMachine, requireProc, table } from './measure.js';
import { Sampler } from './sampler.js';
import { PAR_SHEET, type Service, startService } from './service.js';
import { playerName } from './spinRequests.js';
import { drained } from './stores.js';
import { type Finding, judge, type Samples } from './trend.js';

const BIND_SECONDS = 60;
const PARTNERS = 4;
const GAMES = 8;
const RAFFLES = 2;
/**
 * Fraction of spins that buy a ticket. A pool of a million tickets then lasts for an hour at a few hundred
 * spins per second.
 */
const RAFFLE_SHARE = 0.02;
const PLAYERS = 10_000;
/** Threshold of a large win in USD. One of 500 spins of the PAR sheet pays more. */
const LARGE_WIN_USD = 9;
const CAPACITY_SECONDS = 10;
const WARM_UP_SECONDS = 5;
/**
 * Returns the length of the warm-up, in which growth is allowed: a quarter of the run, but at least three
 * times as long as a requestId is bound, and at most half of the run.
 */
const warmUpOf = (seconds: number): number =>
  Math.min(seconds / 2, Math.max(seconds / 4, 3 * BIND_SECONDS + 20));
const KNOWN_AFTER_MS = 1000;
const LOOK_MS = 200;
const DELIVERED_WITHIN_MS = 30_000;

interface Options {
  readonly minutes: number;
  readonly share: number;
  readonly connections: number;
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '20' },
      share: { type: 'string', default: '0.7' },
      connections: { type: 'string', default: '64' },
    },
  });
  const positive = (name: 'minutes' | 'share' | 'connections'): number => {
    const value = Number(values[name]);
    if (!(value > 0)) throw new Error(`--${name} must be a number above 0`);
    return value;
  };
  return {
    minutes: positive('minutes'),
    share: positive('share'),
    connections: positive('connections'),
  };
}

async function soak(cleanup: Cleanup): Promise<boolean> {
  requireProc();
  const { minutes, share, connections } = readOptions();
  const machine = describeMachine();
  const receiver = await startReceiver(cleanup);
  const { service, targets, webhookId } = await startSoaked(receiver, cleanup);
  const order = { base: service.base, targets, connections, players: PLAYERS, hasRequestId: true };
  const generator = startGenerator(cleanup);

  const closed = { ...order, rate: undefined };
  const warmUp = await generator.load({ ...closed, seconds: WARM_UP_SECONDS });
  const full = await generator.load({ ...closed, seconds: CAPACITY_SECONDS });
  await drained(service.books);
  const capacity = full.spins / full.seconds;
  const rate = Math.round(capacity * share);
  const seconds = Math.round(minutes * 60);
  console.log(
    `capacity ${capacity.toFixed(0)} spins/s (closed loop, ${connections} connections); running ${rate} spins/s for ${seconds} s`,
  );

  const sampler = new Sampler(service, rate / 5);
  const looks = new Looks(service, webhookId);
  sampler.start();
  looks.start();
  const processes = { ...service.processes, generator: [generator.pid], bench: [process.pid] };
  const meter = new CpuMeter(processes);
  const before = meter.sample();
  const load = await generator.load({ ...order, rate, seconds });
  const cpu = cpuBetween(before, meter.sample());
  const lookStatuses = await looks.stop();
  const watched = await sampler.stop();
  await drained(service.books);
  await delivered(service);

  const fromSeconds = warmUpOf(seconds);
  const findings = [
    ...watched.flatMap(({ samples, bound }) =>
      bound === undefined ? [] : [judge(samples, bound, fromSeconds, BIND_SECONDS)],
    ),
    answersOf('spins', load.statuses, load.errors),
    answersOf('look-ups', lookStatuses, 0),
    await booksOf(service, [warmUp, full, load]),
    await webhooksOf(service, receiver),
    paceOf(load, rate),
  ];
  const missed = findings.filter(({ isMet }) => !isMet).length;
  console.log(`\n${machine}; ${PAR_SHEET}; the first ${fromSeconds.toFixed(0)} s are warm-up`);
  for (const [place, line] of table(
    findings.map(({ what, isMet }) => [what, isMet ? 'pass' : 'MISS']),
  ).entries())
    console.log(`${line}  ${findings[place]!.text}`);
  console.log(
    missed === 0 ? 'SOAK: all checks passed' : `SOAK: ${missed} of ${findings.length} checks failed`,
  );
  for (const { samples, bound } of watched) if (bound === undefined) console.log(shown(samples, fromSeconds));
  console.log(`CPU in microseconds per spin: ${cpuText(cpu, load.spins)}`);
  return missed === 0;
}

/** Starts the service with all targets, and a webhook of one of its partners. */
async function startSoaked(
  receiver: Receiver,
  cleanup: Cleanup,
): Promise<{ readonly service: Service; readonly targets: readonly Target[]; readonly webhookId: number }> {
  const service = await startService(
    { ack: 'redis', frontEnds: 1, partners: PARTNERS, games: GAMES, gameType: 'slot' },
    cleanup,
    [],
    // Only tests may use such a short binding time, on their own database.
    { REQUEST_ID_WINDOW_S: String(BIND_SECONDS), TEST_CONSTANTS: '{}' },
  );
  const slots = [...service.targets];
  const raffles = await service.addRaffles(RAFFLES);
  const webhookIds: number[] = [];
  for (const { partnerId, apiKey } of service.partners) {
    const params = { path: { id: partnerId } };
    await bodyOf(
      service.api.operator.PATCH('/partners/{id}', { params, body: { largeWinThresholdUsd: LARGE_WIN_USD } }),
    );
    const webhook = { url: receiver.url, events: ['spin.large_win' as const] };
    const { id } = await bodyOf(service.api.partner(apiKey).POST('/webhooks', { body: webhook }));
    webhookIds.push(id);
  }
  // The worker reads the changed thresholds for large wins at its next poll.
  await pause(KNOWN_AFTER_MS);
  // Targets are drawn at random from a list that repeats the slots as often as RAFFLE_SHARE requires.
  const times = Math.round(((1 - RAFFLE_SHARE) / RAFFLE_SHARE) * (raffles.length / slots.length));
  const targets = [...Array.from({ length: times }, () => slots).flat(), ...raffles];
  return { service, targets, webhookId: webhookIds[0]! };
}

interface Receiver {
  readonly url: string;
  readonly received: ReadonlySet<string>;
}

/** Starts a server that receives the webhooks of a partner. */
async function startReceiver(cleanup: Cleanup): Promise<Receiver> {
  const received = new Set<string>();
  const server: Server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString('utf8');
    });
    request.on('end', () => {
      received.add((JSON.parse(body) as { id: string }).id);
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  cleanup.add(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://localhost:${(server.address() as AddressInfo).port}/`, received };
}

/** Sends read requests of a partner one after the other, a few per second. */
class Looks {
  readonly #base: string;
  readonly #apiKey: string;
  readonly #paths: readonly string[];
  readonly #statuses: Record<string, number> = {};
  #isStopped = false;
  #running: Promise<void> = Promise.resolve();

  constructor({ base, partners }: Service, webhookId: number) {
    this.#base = base;
    this.#apiKey = partners[0]!.apiKey;
    const ofPartner = [
      '/games',
      '/par-sheets',
      `/players/${playerName(0)}`,
      `/players/${playerName(0)}/spins`,
      '/webhooks',
      `/webhooks/${webhookId}/deliveries`,
      '/settlements',
      '/version',
    ];
    this.#paths = [...ofPartner.map((path) => `/api/partner/v1${path}`), '/readyz', '/healthz'];
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<Readonly<Record<string, number>>> {
    this.#isStopped = true;
    await this.#running;
    return this.#statuses;
  }

  async #run(): Promise<void> {
    for (let turn = 0; !this.#isStopped; turn++) {
      const url = this.#base + this.#paths[turn % this.#paths.length]!;
      const status = await fetch(url, { headers: { 'X-API-Key': this.#apiKey } }).then(
        async (response) => {
          await response.arrayBuffer();
          return String(response.status);
        },
        () => 'failed',
      );
      this.#statuses[status] = (this.#statuses[status] ?? 0) + 1;
      await pause(LOOK_MS);
    }
  }
}

/** Waits until no delivery is pending, but at most DELIVERED_WITHIN_MS. */
async function delivered({ stores }: Service): Promise<void> {
  const deadline = performance.now() + DELIVERED_WITHIN_MS;
  while (performance.now() < deadline) {
    const [row] = await stores.ask<{ pending: bigint }>(
      "SELECT count(*) AS pending FROM deliveries WHERE status = 'pending'",
    );
    if (row!.pending === 0n) return;
    await pause(500);
  }
}

function answersOf(what: string, statuses: Readonly<Record<string, number>>, errors: number): Finding {
  const failed = Object.entries(statuses).reduce(
    (sum, [status, count]) => sum + (status === 'failed' || Number(status) >= 500 ? count : 0),
    errors,
  );
  return { what: `${what}: no 5xx`, isMet: failed === 0, text: JSON.stringify({ ...statuses, errors }) };
}

async function booksOf({ books }: Service, loads: readonly LoadResult[]): Promise<Finding> {
  const spins = loads.reduce((sum, load) => sum + load.spins, 0);
  const rows = await books.ledgerRows();
  const waiting = await books.outboxEntries();
  return {
    what: 'ledger: contains exactly the answered spins',
    isMet: rows === spins && waiting === 0,
    text: `${spins} answered with 2xx, ${rows} committed, ${waiting} in the outbox`,
  };
}

async function webhooksOf({ stores }: Service, { received }: Receiver): Promise<Finding> {
  const [row] = await stores.ask<{ wins: bigint; events: bigint }>(
    `SELECT (SELECT count(*) FROM ledger WHERE kind = 1 AND credit_micros > ${LARGE_WIN_USD * 1e6}) AS wins,
       (SELECT count(*) FROM events WHERE event = 'spin.large_win') AS events`,
  );
  const { wins, events } = row!;
  return {
    what: 'webhooks: each large win was received',
    isMet: wins > 0n && events === wins && BigInt(received.size) === events,
    text: `${wins} large wins, ${events} events, ${received.size} received`,
  };
}

/** Checks that the load had the intended rate. Otherwise the run has no meaning. */
function paceOf({ spins, seconds, p50Ms, p99Ms, lateP99Ms }: LoadResult, rate: number): Finding {
  const pace = spins / seconds;
  return {
    what: 'load: reached the planned rate',
    isMet: pace >= 0.99 * rate,
    text: `${pace.toFixed(0)} spins/s of ${rate}; latency from the planned time: p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms; delay of the generator: p99 ${lateP99Ms!.toFixed(1)} ms`,
  };
}

const cpuText = (cpu: CpuTimes, spins: number): string =>
  Object.entries(cpu)
    .map(([name, micros]) => `${name} ${(micros / spins).toFixed(1)}`)
    .join(', ');

/** Describes a sampled value: after the warm-up and at the end. */
function shown({ name, unit, samples }: Samples, fromSeconds: number): string {
  const first = samples.find(([seconds]) => seconds >= fromSeconds)?.[1];
  const last = samples.at(-1)?.[1];
  return `${name}: ${first?.toFixed(1)} ${unit} after the warm-up, ${last?.toFixed(1)} at the end`;
}

await runToEnd(soak);
