/**
 * `npm run bench -- log [sealing] [append] [proofs] [raffle] [first]`: measures the cost of the public log
 * (docs/proofs.md). Each figure is the median of several rounds. Without arguments all parts are measured.
 * Starts stores and the service itself. Needs Linux.
 */
import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import type { ParSheet } from '../src/domain/par.js';
import { checkpointText } from '../src/domain/publicLog/checkpoints.js';
import { signatureLine, signerOf } from '../src/domain/publicLog/notes.js';
import { connectPostgres } from '../src/postgres/connect.js';
import { appendWaiting } from '../src/publicLog/log/logAppend.store.js';
import { storeCheckpoint } from '../src/publicLog/log/publicLog.store.js';
import type { Api, TestPartner } from '../test/support/api.js';
import { Cleanup } from '../test/support/cleanup.js';
import type { Client } from '../test/support/client.js';
import type { ServerProcess } from '../test/support/serverProcess.js';
import { environment, spawnService } from '../test/support/service.js';
import { type OwnStores, ownStores } from '../test/support/stores.js';
import { until } from '../test/support/wait.js';
import { compiledSheet, drawFrom } from '../workers/drawBlock.js';
import { makeBlock, treeOf } from '../workers/makeBlock.js';
import { sealRaffle } from '../workers/sealRaffle.js';
import { CpuMeter, cpuBetween, median } from './measure.js';
import { sheet } from './service.js';

const SHEET = sheet as unknown as ParSheet;
const RAFFLE = {
  ticketPriceUsd: 0.5,
  poolSize: 1_000_000,
  prizes: [
    { prizeName: 'Car', prizeTier: 6, valueUsd: 5000, count: 5 },
    { prizeName: 'Mug', prizeTier: 1, valueUsd: 1.25, count: 250_000 },
  ],
};
const ROUNDS = 5;
const APPENDS = 60;
const RECORDS = 100;
const PROOFS = 400;
const NEW_GAMES = 150;
const POLL_MS = 5;

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const atShare = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.ceil(values.length * share) - 1]!;
const spread = (values: readonly number[], digits = 1): string =>
  [median([...values]), atShare(values, 0.99), Math.max(...values)]
    .map((each) => each.toFixed(digits))
    .join(', ');
function msOf(work: () => unknown): number {
  const from = performance.now();
  work();
  return performance.now() - from;
}

/** Measures the time to draw outcomes and the time to seal them, on this thread. */
function sealing(): void {
  const { distribution } = compiledSheet(SHEET);
  for (const count of [2048, 32_768, 262_144]) {
    const times = Math.ceil(2_000_000 / count);
    const rounds = Array.from({ length: ROUNDS + 1 }, () => {
      let [drawn, sealed, whole] = [0, 0, 0];
      for (let i = 0; i < times; i++) {
        let codes: Uint16Array = new Uint16Array();
        const seed = randomBytes(32);
        drawn += msOf(() => (codes = drawFrom(distribution, seed, count)));
        sealed += msOf(() => treeOf({ gameId: 7, fromIndex: i * count, nonce: seed, codes }));
        whole += msOf(() => makeBlock({ sheet: SHEET, gameId: 7, fromIndex: i * count, count }));
      }
      const each = 1000 / (times * count);
      return { drawn: drawn * each, sealed: sealed * each, perSecond: 1e6 / (whole * each) };
    }).slice(1);
    const of = (name: keyof (typeof rounds)[0]): number => median(rounds.map((round) => round[name]));
    say(
      `sealing, blocks of ${count}: drawn in ${of('drawn').toFixed(4)} µs an outcome, sealed in ${of('sealed').toFixed(3)}; ` +
        `${Math.round(of('perSecond'))} outcomes/s per thread in total`,
    );
  }
  const pools = Array.from({ length: ROUNDS }, () => msOf(() => sealRaffle({ gameId: 7, table: RAFFLE })));
  say(`a pool of 1,000,000 outcomes on one thread: ${spread(pools, 0)} ms (median, p99, worst)`);
}

interface Stage {
  readonly stores: OwnStores;
  readonly sql: postgres.Sql;
  readonly service: ServerProcess;
  readonly client: Client;
  readonly api: Api;
  readonly partner: TestPartner;
  start(): Promise<ServerProcess>;
}

/** Creates a meter for the CPU time of Postgres and of a process of the service. */
const meterOf = ({ stores }: Stage, pid: number): CpuMeter =>
  new CpuMeter({ postgres: [stores.postgres.pid()!], process: [pid] });

/** Queues entries for the public log. All entries are about copies of one block. */
async function queueEntries({ sql }: Stage, gameId: number, from: number): Promise<void> {
  await sql`
    INSERT INTO blocks SELECT r.* FROM blocks b, generate_series(${from}::bigint, ${from + RECORDS - 1}::bigint) n,
      LATERAL jsonb_populate_record(b, jsonb_build_object('from_index', b.to_index * n, 'to_index', b.to_index * (n + 1),
        'log_number', next_log_entry(${gameId}, 1, b.to_index * n, b.to_index * (n + 1), now(), false, NULL))) r
    WHERE b.game_id = ${gameId} AND b.from_index = 0`;
}

/** Measures batches of 100 records: each batch is appended, signed and stored. */
async function append(stage: Stage): Promise<void> {
  const { sql, api, partner, stores } = stage;
  const gameId = await api.newGame(partner.key, 'append', sheet);
  await stage.service.stop();
  const own = connectPostgres(stores.databaseUrl, { max: 1, name: 'bench', onError: () => {} });
  const [{ origin }] = (await sql`SELECT origin FROM logs`) as unknown as [{ origin: string }];
  const signer = signerOf(origin, 'log', randomBytes(32));
  const meter = new CpuMeter({ postgres: [stores.postgres.pid()!] });
  const rounds: { worker: number; postgres: number; total: number; perSecond: number }[] = [];
  for (let round = 0, at = 1000; round < ROUNDS; round++) {
    let [ms, worker, postgres] = [0, 0, 0];
    for (let i = 0; i < APPENDS; i++, at += RECORDS) {
      await queueEntries(stage, gameId, at);
      const before = meter.sample();
      // CPU time of this process is measured without the time that the meter itself uses.
      const used = process.cpuUsage();
      const from = performance.now();
      const { logId, size, root, appended } = await appendWaiting(own);
      const text = checkpointText({ origin, size, root });
      const note = `${text}\n${signatureLine(text, signer)}`;
      await storeCheckpoint(own, logId, { size, note, isPublished: true });
      ms += performance.now() - from;
      const { user, system } = process.cpuUsage(used);
      worker += user + system;
      postgres += cpuBetween(before, meter.sample()).postgres!;
      if (appended !== RECORDS && i > 0)
        throw new Error(`${appended} records were appended instead of ${RECORDS}`);
    }
    const each = 1 / (1000 * APPENDS);
    rounds.push({
      worker: worker * each,
      postgres: postgres * each,
      total: (worker + postgres) * each,
      perSecond: (1000 * APPENDS * RECORDS) / ms,
    });
  }
  const of = (name: keyof (typeof rounds)[0]): string =>
    median(rounds.map((round) => round[name])).toFixed(1);
  say(
    `append of 100 records: ${of('total')} ms of CPU (worker ${of('worker')}, Postgres ${of('postgres')}); ${of('perSecond')} records/s`,
  );
  await own.end();
}

/**
 * Measures proofs of slot spins and of tickets of a large pool, sequentially, each for a different outcome.
 */
async function proofs(stage: Stage): Promise<void> {
  const { api, partner, client, service } = stage;
  const games = [
    {
      name: 'slot',
      gameId: await api.newGame(partner.key, 'proofs', sheet),
      wagerUsd: sheet.denominationUsd,
    },
    {
      name: 'raffle of 1,000,000',
      gameId: await api.newRaffle(partner.partnerId, 'proofs-raffle', RAFFLE),
      wagerUsd: 0.5,
    },
  ];
  for (const { name, gameId, wagerUsd } of games) {
    const spinIds: string[] = [];
    while (spinIds.length < PROOFS) {
      const { body } = await client.spin<{ spinId: string }>(partner.key, {
        gameId,
        playerId: 'p',
        wagerUsd,
      });
      spinIds.push(body.spinId);
    }
    const prove = (at = 0) =>
      client.request('GET', `/api/partner/v1/spins/${spinIds[at]}/proof`, { key: partner.key });
    const { text, status } = await prove();
    if (status !== 200) throw new Error(text);
    const meter = meterOf(stage, service.pid);
    const [cpu, times]: [number[], number[]] = [[], []];
    for (let round = 0; round <= ROUNDS; round++) {
      const before = meter.sample();
      for (let i = 0; i < PROOFS; i++) {
        const from = performance.now();
        await prove(i);
        if (round > 0) times.push(performance.now() - from);
      }
      const used = cpuBetween(before, meter.sample());
      if (round > 0) cpu.push((used.process! + used.postgres!) / PROOFS / 1000);
    }
    say(
      `proof, ${name}: ${Buffer.byteLength(text)} bytes; ${median(cpu).toFixed(2)} ms of CPU (service and Postgres); ` +
        `answered in ${spread(times)} ms (median, p99, worst of ${times.length})`,
    );
  }
}

/**
 * Measures the time from the request that creates a raffle until its pool is open and its first ticket is
 * sold.
 */
async function raffle({ api, partner, client }: Stage): Promise<void> {
  const [open, sold]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    const from = performance.now();
    const gameId = await api.addRaffle(partner.partnerId, `raffle-${round}`, RAFFLE);
    const pool = () => client.partner<{ status: string }>('GET', `/games/${gameId}/pool`, partner.key);
    await until(
      async () => (await pool()).body.status === 'ACTIVE',
      'the raffle is open',
      undefined,
      POLL_MS,
    );
    open.push(performance.now() - from);
    const buy = () => client.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.5 });
    await until(async () => (await buy()).status === 200, 'a ticket is sold', undefined, POLL_MS);
    sold.push(performance.now() - from);
  }
  say(
    `raffle of 1,000,000: ACTIVE after ${spread(open, 0)} ms, a ticket sold after ${spread(sold, 0)} ms (median, p99, worst of ${ROUNDS})`,
  );
}

/**
 * Measures the delay that the log adds before a new game's first block is loaded: from the lease of the block
 * until a checkpoint that covers it is published.
 */
async function first({ sql, api, partner }: Stage): Promise<void> {
  const sheetId = await api.addSheet(partner.key, sheet);
  const games: number[] = [];
  for (let i = 0; i < NEW_GAMES; i++) {
    const gameId = await api.addGame(partner.key, sheetId, `first-${i}`);
    const ready = async () =>
      (await api.operator.GET('/games/{id}', { params: { path: { id: gameId } } })).data!.queue
        .outcomesReady > 0;
    await until(ready, 'the game can be played', undefined, POLL_MS);
    games.push(gameId);
  }
  const rows = await sql<{ ms: number }[]>`
    SELECT extract(epoch FROM (SELECT min(published_at) FROM log_checkpoints c WHERE c.size > e.log_index) - at)::float8 * 1000 AS ms
    FROM log_entries e WHERE number = 0 AND game_id = ANY(${games})`;
  say(
    `delay of the first block of a new game: ${spread(rows.map(({ ms }) => ms))} ms (median, p99, worst of ${rows.length})`,
  );
}

const PARTS = { append, proofs, raffle, first };

async function onStage(measure: (stage: Stage) => Promise<void>): Promise<void> {
  const cleanup = new Cleanup();
  try {
    const stores = await ownStores();
    cleanup.add(() => stores.drop());
    const sql = postgres(stores.databaseUrl, { max: 2, onnotice: () => {} });
    cleanup.add(() => sql.end());
    const start = async (): Promise<ServerProcess> => {
      const started = await spawnService(environment(stores, { TEST_CONSTANTS: undefined }));
      cleanup.add(() => started.stop());
      return started;
    };
    const service = await start();
    const { client } = service;
    const { api } = client;
    const partner = await api.newPartner('bench', { openingBalanceUsd: 10_000 });
    await measure({ stores, sql, service, client, api, partner, start });
  } finally {
    await cleanup.run();
  }
}

const chosen = process.argv.slice(2);
const isChosen = (name: string): boolean => chosen.length === 0 || chosen.includes(name);
if (isChosen('sealing')) sealing();
for (const [name, measure] of Object.entries(PARTS)) if (isChosen(name)) await onStage(measure);
