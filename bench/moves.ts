/**
 * Moves a partner with many players and bound request ids to another cell while it spins: `npm run bench:moves -- 100000 1000000`
 * (players, each with one request id; `--kill worker` or `--kill redis` in the middle of the copy). Every answer is repeated or counted
 * afterwards, and the audit must be clean. Needs Linux.
 */
import { parseArgs } from 'node:util';
import { audit } from '../src/audit/audit.js';
import { connectPostgres, type Sql } from '../src/postgres/client.js';
import { Cleanup } from '../test/support/cleanup.js';
import { each, load, portOf, spinRequest, Wire } from '../test/support/load.js';
import { openNodes, rawRedis } from '../test/support/redis.js';
import type { ServerProcess } from '../test/support/serverProcess.js';
import { environment, spawnService } from '../test/support/service.js';
import { parSheet } from '../test/support/sheets.js';
import { ownStores } from '../test/support/stores.js';
import { pause, until } from '../test/support/wait.js';
import { residentBytes } from './memory.js';

const FILL_CONNECTIONS = 64;
const CLIENTS = 16;
const BESIDE_MS = 3000;
const SAMPLE_MS = 50;
const MOVED_WITHIN_MS = 300_000;
/** Of the answers, one in so many is asked for again. */
const REPLAYED = 500;
const MB = 1_048_576;
const SETTINGS = { CELLS: '2', LOG_LEVEL: 'warn', SPIN_DEADLINE_MS: '3000', TEST_CONSTANTS: undefined };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { kill: { type: 'string' }, 'kill-after': { type: 'string', default: '1000' } },
});
/** Both stores, a worker and a front end, and a partner with two games in cell 0 of two. */
async function startAll(cleanup: Cleanup) {
  const stores = await ownStores();
  cleanup.add(() => stores.drop());
  const sql = connectPostgres(stores.databaseUrl, { max: 2, name: 'bench', onError: () => {} });
  cleanup.add(() => sql.end());
  const redis = rawRedis(stores.redisUrl);
  cleanup.add(() => redis.disconnect());
  const start = (roles: string): Promise<ServerProcess> =>
    spawnService(environment(stores, { ...SETTINGS, ROLES: roles }));
  const worker = await start('worker');
  const front = await start('http');
  cleanup.add(() => front.end('SIGKILL'));
  const { client } = front;
  const { partnerId, key } = await client.newPartner({
    openingBalanceUsd: 100,
    cell: 0,
    spinRateLimit: 1_000_000,
  });
  const games: number[] = [];
  for (let made = 0; made < 2; made++) games.push(await client.newGame(key, parSheet('classic-3-reel')));
  const spinner = new Spinner(portOf(client.base), key, games);
  return { stores, sql, redis, start, worker, client, partnerId, spinner };
}

async function moved(players: number, cleanup: Cleanup): Promise<object> {
  const all = await startAll(cleanup);
  const { stores, sql, redis, start, client, partnerId, spinner } = all;
  let { worker } = all;
  cleanup.add(() => worker.end('SIGKILL'));
  const filling = performance.now();
  await spinner.fill(players);
  const isBooked = () => isEmpty(redis);
  await until(isBooked, 'all is booked', 60_000);
  const fillSeconds = seconds(filling);

  const memory = async (): Promise<{ worker: number; redis: number }> => ({
    worker: worker.hasEnded ? 0 : residentBytes(worker.pid),
    redis: Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))![1]),
  });
  spinner.spin(players);
  await pause(BESIDE_MS);
  const before = await memory();
  const peak = { ...before };
  const begun = performance.now();
  const asked = await client.operator('POST', `/partners/${partnerId}/move`, { cell: 1 });
  if (asked.status !== 202) throw new Error(asked.text);
  let isKilled = values.kill === undefined;
  let switchedSeconds = 0;
  const isFinished = async (): Promise<boolean> => {
    if (!isKilled && performance.now() - begun > Number(values['kill-after'])) {
      isKilled = true;
      if (values.kill === 'redis') await stores.redis.kill();
      else {
        await worker.end('SIGKILL');
        worker = await start('worker');
      }
    }
    const now = await memory().catch(() => peak);
    peak.worker = Math.max(peak.worker, now.worker);
    peak.redis = Math.max(peak.redis, now.redis);
    const [row] = await sql<{ switched_at: Date | null; finished_at: Date | null }[]>`
      SELECT switched_at, finished_at FROM partner_moves ORDER BY move_id DESC LIMIT 1`;
    if (switchedSeconds === 0 && row!.switched_at !== null) switchedSeconds = seconds(begun);
    return row!.finished_at !== null;
  };
  // What is changed meanwhile is copied, too.
  const patch = { status: 'ACTIVE', reason: 'changed beside the move' };
  const player = `/partners/${partnerId}/players/player-0`;
  await client.operator('PATCH', player, { ...patch, status: 'BLOCKED' });
  await client.operator('PATCH', player, patch);
  await until(isFinished, 'the move is finished', MOVED_WITHIN_MS, SAMPLE_MS);
  const finishedSeconds = seconds(begun);
  const stoppedSeconds = await metric(worker, 'spindle_partner_move_stopped_seconds_total');
  await pause(BESIDE_MS);
  const { spins, refusals, longestMs } = await spinner.end();
  await until(isBooked, 'all is booked', 60_000);
  const after = await memory();
  const replays = await spinner.replay();
  const [booked] = await sql<{ spins: bigint }[]>`SELECT count(*) AS spins FROM ledger WHERE kind = 1`;
  const books = await audited(stores.redisUrl, sql);
  return {
    players,
    kill: values.kill ?? 'nothing',
    fillSeconds,
    switchedSeconds,
    finishedSeconds,
    stoppedSeconds,
    spinsBeside: spins,
    refusals,
    longestMs: Math.round(longestMs),
    megabytes: { before: mb(before), peak: mb(peak), after: mb(after) },
    replays,
    missing: players + spins - Number(booked!.spins),
    books,
  };
}

const isEmpty = async (redis: ReturnType<typeof rawRedis>): Promise<boolean> =>
  (await redis.xlen('{c0}:outbox')) + (await redis.xlen('{c1}:outbox')) === 0;

const mb = ({ worker, redis }: { worker: number; redis: number }) => ({
  worker: Math.round(worker / MB),
  redis: Math.round(redis / MB),
});

const seconds = (since: number): number => Math.round((performance.now() - since) / 10) / 100;

async function metric(server: ServerProcess, name: string): Promise<number> {
  const text = await (await fetch(server.metrics!)).text();
  return Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1] ?? 0);
}

async function audited(redisUrl: string, sql: Sql): Promise<unknown> {
  const nodes = await openNodes(redisUrl);
  const report = await audit(sql, nodes.nodes, { limit: 3, onProgress: () => {} });
  nodes.close();
  const { violations, interrupted, moving, checks } = report;
  if (violations === 0 && interrupted === undefined && moving.length === 0) return 'CLEAN';
  return { violations, interrupted, moving, listed: checks.flatMap(({ listed }) => listed) };
}

/** Spins that are recorded: each is sent until it is answered with 200. */
class Spinner {
  readonly #port: number;
  readonly #key: string;
  readonly #games: readonly number[];
  /** Request and answer of some spins. */
  readonly #answers: [request: Buffer, text: string][] = [];
  readonly #refusals: Record<string, number> = {};
  #clients: Promise<void>[] = [];
  #isOver = false;
  #spins = 0;
  #longestMs = 0;

  constructor(port: number, key: string, games: readonly number[]) {
    this.#port = port;
    this.#key = key;
    this.#games = games;
  }

  #request(name: string, player: number, i: number): Buffer {
    const gameId = this.#games[i % this.#games.length]!;
    const body = { gameId, playerId: `player-${player}`, wagerUsd: 0.25, requestId: `${name}-${i}` };
    return spinRequest(this.#key, JSON.stringify(body));
  }

  /** One spin of each player. */
  async fill(players: number): Promise<void> {
    let due: Buffer[] = [];
    let made = 0;
    while (made < players || due.length > 0) {
      const again: Buffer[] = [];
      const next = (): Buffer | undefined =>
        due.pop() ?? (made < players ? this.#request('fill', made, made++) : undefined);
      let answered = 0;
      const onAnswer = ({ status, text }: { status: number; text: string }, sent: Buffer): void => {
        // Outcomes may be short while a game is young.
        if (status !== 200) again.push(sent);
        else if (answered++ % REPLAYED === 0) this.#answers.push([sent, text]);
      };
      await load({ port: this.#port, connections: FILL_CONNECTIONS, next, onAnswer });
      due = again;
    }
  }

  /** Begins to spin as random players, without a pause, until {@link end}. */
  spin(players: number): void {
    this.#clients = Array.from({ length: CLIENTS }, async (_, name) => {
      const wire = await Wire.open(this.#port);
      for (let i = 0; !this.#isOver; i++) {
        const sent = this.#request(`beside-${name}`, Math.floor(Math.random() * players), i);
        const since = performance.now();
        let answer = await wire.ask(sent);
        while (answer.status !== 200) {
          const code = `${answer.status} ${(JSON.parse(answer.text) as { errorCode: string }).errorCode}`;
          this.#refusals[code] = (this.#refusals[code] ?? 0) + 1;
          await pause(10);
          answer = await wire.ask(sent);
        }
        this.#longestMs = Math.max(this.#longestMs, performance.now() - since);
        if (this.#spins++ % REPLAYED === 0) this.#answers.push([sent, answer.text]);
      }
      wire.close();
    });
  }

  async end() {
    this.#isOver = true;
    await Promise.all(this.#clients);
    return { spins: this.#spins, refusals: this.#refusals, longestMs: this.#longestMs };
  }

  /** Sends spins again: how many, and how many of them were answered otherwise than before. */
  async replay(): Promise<{ asked: number; otherwise: number }> {
    let otherwise = 0;
    const before = new Map(this.#answers.map(([sent, text]) => [sent, text]));
    await load({
      port: this.#port,
      connections: 8,
      next: each([...before.keys()], (sent) => sent),
      onAnswer: ({ text }, sent) => {
        if (text !== before.get(sent)) otherwise++;
      },
    });
    return { asked: before.size, otherwise };
  }
}

for (const players of positionals.map(Number)) {
  const cleanup = new Cleanup();
  try {
    process.stdout.write(`${JSON.stringify(await moved(players, cleanup))}\n`);
  } finally {
    await cleanup.run();
  }
}
