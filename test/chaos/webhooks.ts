/**
 * `npm run chaos -- webhooks [--wins 10000] [--connections 16] [--seed S] [--keep]`
 *
 * Makes the given number of large wins while the receiver, the service processes, Redis and Postgres are
 * killed at random. Each win in the ledger must be delivered under one id with valid signatures, and nothing
 * else may be delivered. Deliveries that failed finally are resent as an operator would do it.
 *
 * Processes and stores are those of `npm run chaos -- machine`. Exit status 0 means that every check passed.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import postgres from 'postgres';
import { Webhook } from 'standardwebhooks';
import { bodyOf } from '../../src/api/client/apiClients.js';
import { freePort } from '../../src/app/embedded/index.js';
import { SpinIds } from '../../src/domain/spinId.js';
import type { Api } from '../support/api.js';
import type { Cleanup } from '../support/cleanup.js';
import { runToEnd } from '../support/cleanup.js';
import { ConnectionEnded, spinRequest, Wire, type WireAnswer } from '../support/load.js';
import { Random } from '../support/random.js';
import { constants } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import { pause, until } from '../support/wait.js';
import { type Arena, openArena } from './arena.js';
import { type FaultName, faultKind } from './faults.js';

const WAGER_USD = 0.25;
const PATIENCE_MS = 5000;
const ASK_AGAIN_MS = 100;
const KILL_EVERY_MS = [500, 3000] as const;
const RECEIVER_AWAY_MS = [100, 1500] as const;
const SERVERS: readonly FaultName[] = ['kill-service', 'kill-worker', 'kill-redis', 'kill-postgres'];
const READY_WITHIN_MS = 60_000;
const DELIVERED_WITHIN_MS = 300_000;
const RETRY_DELAYS_MS = [300, 600, 1200, 2400];

interface Options {
  readonly wins: number;
  readonly connections: number;
  readonly seed: string;
  readonly keep: boolean;
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      wins: { type: 'string', default: '10000' },
      connections: { type: 'string', default: '16' },
      seed: { type: 'string', default: randomBytes(4).toString('hex') },
      keep: { type: 'boolean', default: false },
    },
  });
  const { wins, connections, seed, keep } = values;
  return { wins: Number(wins), connections: Number(connections), seed, keep };
}

class Receiver {
  #child: ChildProcess | undefined;

  constructor(
    private readonly port: number,
    private readonly file: string,
  ) {
    writeFileSync(file, '');
    this.start();
  }

  start(): void {
    const program = join(import.meta.dirname, 'receiver.js');
    this.#child = spawn(process.execPath, [program, String(this.port), this.file], { stdio: 'ignore' });
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  /** Returns the deliveries that the receiver wrote completely. */
  received(): { headers: Record<string, string>; body: string }[] {
    return readFileSync(this.file, 'utf8')
      .split('\n')
      .filter((line) => line.endsWith('}'))
      .map((line) => JSON.parse(line));
  }
}

interface Stage extends Arena {
  readonly receiver: Receiver;
  readonly options: Options;
}

/** Spins on one connection until there are enough wins. Each spin is retried until it is answered. */
async function play(
  { fleet, options }: Stage,
  partner: { key: string },
  gameId: number,
  won: Map<string, number>,
  next: () => number,
): Promise<void> {
  let wire: Wire | undefined;
  const ask = async (bytes: Buffer): Promise<WireAnswer | undefined> => {
    let timer: NodeJS.Timeout | undefined;
    try {
      if (wire === undefined || wire.hasEnded) wire = await Wire.open(fleet.port);
      timer = setTimeout(() => wire?.close(), PATIENCE_MS);
      return await wire.ask(bytes);
    } catch (error) {
      if (!(error instanceof ConnectionEnded) && (error as NodeJS.ErrnoException).code === undefined)
        throw error;
      wire?.close();
      wire = undefined;
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  };
  while (won.size < options.wins) {
    const number = next();
    const body = {
      gameId,
      playerId: `player-${number % 500}`,
      wagerUsd: WAGER_USD,
      requestId: `r-${number}`,
    };
    const bytes = spinRequest(partner.key, JSON.stringify(body));
    for (;;) {
      const answer = await ask(bytes);
      if (answer?.status === 200) {
        const { spinId, outcome } = JSON.parse(answer.text) as {
          spinId: string;
          outcome: { payoutUsd: number };
        };
        if (outcome.payoutUsd > 0) won.set(spinId, outcome.payoutUsd);
        break;
      }
      if (answer !== undefined && answer.status < 500 && answer.status !== 409) {
        throw new Error(`no outage explains ${answer.text}`);
      }
      await pause(ASK_AGAIN_MS);
    }
  }
  wire?.close();
}

/**
 * Kills a process about every second until the end.
 * @returns the number of kills by target
 */
async function killing(stage: Stage, isOver: () => boolean): Promise<Record<string, number>> {
  const random = new Random(stage.options.seed, 'webhooks');
  const done: Record<string, number> = {};
  while (!isOver()) {
    await pause(random.whole(...KILL_EVERY_MS));
    const name = random.chance(0.4) ? 'kill-receiver' : random.pick(SERVERS);
    if (name === 'kill-receiver') {
      await stage.receiver.kill();
      await pause(random.whole(...RECEIVER_AWAY_MS));
      stage.receiver.start();
    } else {
      await faultKind(name).run({ ...stage, targets: [] }, random);
    }
    done[name] = (done[name] ?? 0) + 1;
  }
  return done;
}

/** Waits until no delivery is pending, and resends failed deliveries as an operator would do it. */
async function settle(api: Api, sql: postgres.Sql): Promise<number> {
  let resent = 0;
  await until(
    async () => {
      const [open] = await sql<{ pending: number; failed: number }[]>`
        SELECT count(*) FILTER (WHERE status = 'pending')::int AS pending,
               count(*) FILTER (WHERE status = 'failed')::int AS failed FROM deliveries`;
      if (open!.pending === 0 && open!.failed > 0) {
        const since = new Date(0).toISOString();
        resent += (await bodyOf(api.operator.POST('/webhooks/resend', { body: { since } }))).resent;
      }
      return open!.pending === 0 && open!.failed === 0;
    },
    'every delivery was made',
    DELIVERED_WITHIN_MS,
    200,
  );
  return resent;
}

/** Returns differences between the received events, the ledger and the answers of the clients. */
async function judge(
  sql: postgres.Sql,
  { receiver }: Stage,
  partnerId: number,
  secret: string,
  won: ReadonlyMap<string, number>,
): Promise<{ wrong: string[]; requests: number; events: number }> {
  const wrong: string[] = [];
  const [installed] = await sql<{ spin_id_key: Buffer }[]>`SELECT spin_id_key FROM installation`;
  const spinIds = new SpinIds(installed!.spin_id_key);
  const rows = await sql<{ entry_id: string; credit_micros: string }[]>`
    SELECT entry_id, credit_micros FROM ledger WHERE partner_id = ${partnerId} AND kind = 1 AND credit_micros > 0`;
  const ledger = new Map(
    rows.map((row) => [spinIds.encodeOne(BigInt(row.entry_id), partnerId), Number(row.credit_micros) / 1e6]),
  );
  const eventBySpin = new Map<string, string>();
  const bodyByEvent = new Map<string, string>();
  const verifier = new Webhook(secret);
  const received = receiver.received();
  for (const { headers, body } of received) {
    const { id, data } = JSON.parse(body) as { id: string; data: { spinId: string; payoutUsd: number } };
    const digest = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
    if (headers['x-spindle-signature'] !== digest) wrong.push(`the signature of ${id} is not valid`);
    try {
      // The signature is computed here because a run may exceed the five minutes that the verifier allows.
      const sentAt = new Date(Number(headers['webhook-timestamp']) * 1000);
      const [, signature] = verifier.sign(id, sentAt, body).split(',');
      if (headers['webhook-signature'] !== `v1,${signature}`) throw new Error('another signature');
    } catch (error) {
      wrong.push(`the standard signature of ${id} is not valid: ${(error as Error).message}`);
    }
    if ((eventBySpin.get(data.spinId) ?? id) !== id) wrong.push(`${data.spinId} was told as two events`);
    if ((bodyByEvent.get(id) ?? body) !== body) wrong.push(`${id} was told in two ways`);
    eventBySpin.set(data.spinId, id);
    bodyByEvent.set(id, body);
    if (ledger.get(data.spinId) !== data.payoutUsd) wrong.push(`${data.spinId} was invented`);
  }
  for (const spinId of ledger.keys()) {
    if (!eventBySpin.has(spinId)) wrong.push(`${spinId} was not told`);
  }
  for (const [spinId, payoutUsd] of won) {
    if (ledger.get(spinId) !== payoutUsd) wrong.push(`${spinId} was answered and is not in the ledger`);
  }
  const [events] = await sql<{ count: string }[]>`SELECT count(*) FROM events`;
  if (Number(events!.count) !== ledger.size) wrong.push(`${events!.count} events for ${ledger.size} wins`);
  return { wrong, requests: received.length, events: ledger.size };
}

async function run(options: Options, cleanup: Cleanup): Promise<boolean> {
  const arena = await openArena(
    cleanup,
    { keep: options.keep, acknowledgement: 'redis' },
    constants({ webhookRetryDelaysMs: RETRY_DELAYS_MS }),
  );
  const { folder, stores, fleet, api, crashes } = arena;
  const port = await freePort();
  const receiver = new Receiver(port, join(folder, 'received.jsonl'));
  cleanup.add(() => receiver.kill());
  const stage: Stage = { ...arena, receiver, options };
  const partner = await api.newPartner('webhooks');
  await bodyOf(
    api.operator.PATCH('/partners/{id}', {
      params: { path: { id: partner.partnerId } },
      body: { largeWinThresholdUsd: 0 },
    }),
  );
  const { secret } = await bodyOf(
    api.partner(partner.key).POST('/webhooks', {
      body: { url: `http://localhost:${port}/`, events: ['spin.large_win'] },
    }),
  );
  const gameId = await api.newGame(partner.key, 'webhooks', parSheet('classic-3-reel'));

  const started = performance.now();
  const won = new Map<string, number>();
  let spins = 0;
  let isOver = false;
  const killed = killing(stage, () => isOver);
  const clients = Array.from({ length: options.connections }, () =>
    play(stage, partner, gameId, won, () => spins++),
  );
  await Promise.all(clients).finally(() => {
    isOver = true;
  });
  const faults = await killed;
  const playedSeconds = (performance.now() - started) / 1000;
  await until(() => fleet.isReady(), 'every process is ready', READY_WITHIN_MS);
  const sql = postgres(stores.postgres.url, { max: 2, onnotice: () => {} });
  cleanup.add(() => sql.end({ timeout: 1 }));
  await until(
    async () => {
      const [row] = await sql<{ count: number }[]>`SELECT count(*)::int AS count FROM ledger WHERE kind = 1`;
      return row!.count >= spins;
    },
    'every spin is booked',
    READY_WITHIN_MS,
  );
  const resent = await settle(api, sql);
  const settledSeconds = (performance.now() - started) / 1000 - playedSeconds;
  const { wrong, requests, events } = await judge(sql, stage, partner.partnerId, secret, won);
  wrong.push(...crashes);
  console.log(
    `${spins} spins, ${events} large wins, ${requests} requests received, ${resent} sent again by the operator; ` +
      `${playedSeconds.toFixed(0)} s under fire, all told ${settledSeconds.toFixed(1)} s later; ` +
      `${Object.entries(faults)
        .map(([name, times]) => `${name} ${times}`)
        .join(', ')}`,
  );
  console.log(wrong.length === 0 ? 'each win told, under one id, signed; none invented' : 'BROKEN');
  for (const line of wrong.slice(0, 20)) console.log(`  ${line}`);
  await fleet.stop();
  return wrong.length === 0;
}

const options = readOptions();
console.log(`seed ${options.seed}`);
await runToEnd((cleanup) => run(options, cleanup));
