/**
 * `npm run chaos -- cluster [--rounds 20] [--seed S] [--only kind,kind] [--ack redis|replica|ledger]
 *                   [--round n] [--rate 300]`
 *
 * Takes down servers of a Redis Cluster (three primaries and three replicas) under load. After each round it
 * compares the answers of the clients with the ledger: no acknowledged spin may be lost, and no outcome may
 * be dealt twice or be missing. With ACK=redis a spin may be lost with its primary, and then `lost_spins`
 * must name exactly the lost spins. The audit must be clean each time.
 *
 * The seed and the number of a round determine its faults. The run ends at the first broken round and keeps
 * its data and logs. Exit status 0 means that every promise held.
 */
import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import postgres from 'postgres';
import { BusRelays } from '../support/busRelays.js';
import { Cleanup } from '../support/cleanup.js';
import { ownCluster, type TestCluster } from '../support/cluster.js';
import { Random } from '../support/random.js';
import { openNodes } from '../support/redis.js';
import { until } from '../support/wait.js';
import { type Arena, openArena } from './arena.js';
import { Books, type Findings } from './books.js';
import { Clients } from './clients.js';
import { countLost, judgeLost } from './clusterBooks.js';
import { CLUSTER_FAULTS } from './clusterFaults.js';
import { contradiction, nameOf, type SpinRecord } from './records.js';
import { audit } from './round.js';
import type { Acknowledgement } from './services.js';
import { makeTargets } from './targets.js';

const CELLS = 6;
const CONNECTIONS = 24;
/**
 * Number of consecutive rounds with one kind of acknowledgement. After them, the service is restarted with
 * the other kind.
 */
const BLOCK_ROUNDS = 3;
const SPINS_BEFORE = [150, 500] as const;
const SPINS_AFTER = [150, 500] as const;
const ANSWERED_WITHIN_MS = 60_000;
const READY_WITHIN_MS = 120_000;
const LEFT_SHARE = 0.1;

interface Found {
  /** Acknowledged spins that the ledger lacks. */
  readonly lost: number;
  /** Number of these lost spins that are recorded in `lost_spins`. */
  readonly written: number;
  readonly twice: number;
  readonly missing: number;
}

interface Result {
  readonly round: number;
  readonly kind: string;
  readonly acknowledgement: Acknowledgement;
  readonly ok: number;
  readonly failed: number;
  readonly unknown: number;
  /** Longest time, in ms, for which any one partner had no answered spin. */
  readonly gapMs: number;
  readonly found: Found;
  readonly wrong: readonly string[];
}

interface Stage extends Arena {
  readonly cluster: TestCluster;
  readonly buses: BusRelays;
  readonly clients: Clients;
  readonly books: Books;
  /** Number of spins that were recorded as lost in earlier rounds. */
  lostBefore: number;
  acknowledgement: Acknowledgement;
}

/** Measures the longest time for which any one partner had no answered spin. */
class Gaps {
  readonly #newest = new Map<number, number>();
  #longestMs = 0;

  constructor(partnerIds: readonly number[]) {
    for (const partnerId of partnerIds) this.#newest.set(partnerId, performance.now());
  }

  answered(partnerId: number): void {
    const now = performance.now();
    this.#longestMs = Math.max(this.#longestMs, now - (this.#newest.get(partnerId) ?? now));
    this.#newest.set(partnerId, now);
  }

  get longestMs(): number {
    return this.#longestMs;
  }
}

async function playRound(
  stage: Stage,
  round: number,
  kind: string,
  seed: string,
  partnerIds: readonly number[],
): Promise<Result> {
  const { fleet, stores, clients, books, cluster, crashes } = stage;
  const { acknowledgement } = stage;
  const random = (purpose: string): Random => new Random(seed, round, purpose);
  const wrong: string[] = [];
  let gapMs = 0;
  let found: Found = { lost: 0, written: 0, twice: 0, missing: 0 };
  clients.beginRound(round);
  try {
    clients.start(random('load'));
    await clients.more(random('before').whole(...SPINS_BEFORE), ANSWERED_WITHIN_MS);
    const gaps = new Gaps(partnerIds);
    clients.onOk = ({ partnerId }) => gaps.answered(partnerId);
    await CLUSTER_FAULTS[kind]!({
      cluster,
      buses: stage.buses,
      operator: stage.api.operator,
      postgres: stores.postgres,
      random: random(kind),
      cells: partnerIds.length,
    });
    const probes = random('probes');
    await until(
      async () => (await fleet.isReady()) && (await clients.probe(probes, 4000)),
      'every process is ready and every partner is dealt spins',
      READY_WITHIN_MS,
      50,
    );
    gapMs = gaps.longestMs;
    await clients.more(random('after').whole(...SPINS_AFTER), ANSWERED_WITHIN_MS);
    await clients.stop();
    const left = random('left');
    const unknown = clients.touched.filter(
      (record) => record.requestId !== undefined && record.dealt === undefined && record.isUnknown,
    );
    const asked = unknown.filter(() => !left.chance(LEFT_SHARE));
    const unresolved = await clients.resolve(asked, 60_000);
    if (unresolved.length > 0) wrong.push(`${unresolved.length} unknown spins are never dealt`);
    await fleet.quiet(30_000);
    await atRest(cluster.url, stores.postgres.url);
    const findings = await books.reconcile(clients.touched);
    found = await judge(stage, findings, wrong);
    const complaint = await audit({ redis: { url: cluster.url }, postgres: stores.postgres });
    if (complaint !== undefined) wrong.push(`the audit is not clean: ${complaint}`);
  } catch (error) {
    wrong.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
    await clients.stop();
  }
  wrong.push(...crashes.splice(0));
  const { ok, failed, unknown } = clients.counts;
  return { round, kind, acknowledgement, ok, failed, unknown, gapMs, found, wrong };
}

async function judge(stage: Stage, findings: Findings, wrong: string[]): Promise<Found> {
  const { clients, stores, acknowledgement } = stage;
  const { lost, twice, missing, other } = findings;
  const isLost = (record: SpinRecord): boolean =>
    lost.some(
      (line) => line.startsWith(`${nameOf(record)}: answered`) && line.includes(record.dealt!.spinId),
    );
  const gone =
    lost.length === 0 || acknowledgement !== 'redis'
      ? new Set<SpinRecord>()
      : new Set(clients.touched.filter((record) => record.dealt !== undefined && isLost(record)));
  if (acknowledgement === 'redis') {
    wrong.push(...(await judgeLost(stores.postgres.url, [...gone])));
    if (gone.size !== lost.length) wrong.push(`${lost.length} spins are lost, and ${gone.size} are known`);
  } else {
    wrong.push(...lost.map((line) => `lost: ${line}`));
  }
  const rows = await countLost(stores.postgres.url);
  const found = {
    lost: lost.length,
    written: rows - stage.lostBefore,
    twice: twice.length,
    missing: missing.length,
  };
  stage.lostBefore = rows;
  if (acknowledgement !== 'redis' && found.written !== 0)
    wrong.push(`${found.written} spins were written down as lost`);
  const names = [...gone].map(nameOf);
  const concernsGone = (line: string): boolean => names.some((name) => line.includes(name));
  wrong.push(...twice.map((line) => `twice: ${line}`), ...missing.map((line) => `missing: ${line}`));
  wrong.push(...[...other, ...clients.breaches].filter((line) => !concernsGone(line)));
  for (const record of clients.touched) {
    const found = gone.has(record) ? undefined : contradiction(record);
    if (found !== undefined) wrong.push(found);
  }
  clients.forget(gone);
  return found;
}

/** Waits until the ledger has every entry of the outboxes. */
async function atRest(clusterUrl: string, databaseUrl: string): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  const { nodes, close } = await openNodes(clusterUrl);
  try {
    await until(
      async () => {
        const cells = await sql<{ cell: number; cursor_id: string }[]>`SELECT cell, cursor_id FROM cells`;
        const waiting = await Promise.all(
          cells.map(async (row) => (await nodes.cell(row.cell).newestInOutbox()) > BigInt(row.cursor_id)),
        );
        return !waiting.includes(true);
      },
      'the ledger has all that the outboxes have',
      60_000,
    );
  } finally {
    close();
    await sql.end();
  }
}

const line = ({ round, kind, acknowledgement, ok, failed, unknown, gapMs, found, wrong }: Result): string =>
  `round ${String(round).padStart(3)}  ACK=${acknowledgement.padEnd(7)} ${kind.padEnd(16)} ${ok} ok, ${failed} failed, ` +
  `${unknown} unknown; longest without an answer ${gapMs.toFixed(0)} ms; lost ${found.lost}, written down ${found.written}; ` +
  `${wrong.length === 0 ? 'held' : 'BROKEN'}`;

function summary(results: readonly Result[]): string {
  const kinds = [...new Set(results.map(({ kind }) => kind))].sort();
  const rows = kinds.map((kind) => {
    const mine = results.filter((each) => each.kind === kind);
    const gaps = mine.map(({ gapMs }) => gapMs).sort((a, b) => a - b);
    const written = mine.reduce((sum, { found }) => sum + found.written, 0);
    const broken = mine.filter(({ wrong }) => wrong.length > 0).length;
    return `| ${kind} | ${mine.length} | ${gaps[Math.floor((gaps.length - 1) / 2)]!.toFixed(0)} | ${gaps.at(-1)!.toFixed(0)} | ${written} | ${broken} |`;
  });
  const acks = [...new Set(results.map(({ acknowledgement }) => acknowledgement))].sort();
  const byAck = acks.map((ack) => {
    const mine = results.filter(({ acknowledgement }) => acknowledgement === ack);
    const sum = (of: (each: Result) => number): number => mine.reduce((total, each) => total + of(each), 0);
    const figures = [
      mine.length,
      sum(({ ok, failed, unknown }) => ok + failed + unknown),
      sum(({ ok }) => ok),
      sum(({ found }) => found.lost),
      sum(({ found }) => found.written),
      sum(({ found }) => found.twice),
      sum(({ found }) => found.missing),
    ];
    return `| ${ack} | ${figures.join(' | ')} |`;
  });
  return [
    '| ACK | rounds | requests | answered 200 | acknowledged and lost | lost_spins | twice | gaps |',
    '|---|---|---|---|---|---|---|---|',
    ...byAck,
    '',
    '| fault | times | longest without an answer, p50 ms | worst ms | lost and written down | broken |',
    '|---|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}

function readOptions() {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '20' },
      round: { type: 'string' },
      seed: { type: 'string', default: randomBytes(4).toString('hex') },
      only: { type: 'string' },
      ack: { type: 'string' },
      rate: { type: 'string', default: '300' },
    },
  });
  const names = values.only?.split(',') ?? Object.keys(CLUSTER_FAULTS);
  for (const name of names)
    if (!(name in CLUSTER_FAULTS))
      throw new Error(`«${name}» is no kind of fault; there are ${Object.keys(CLUSTER_FAULTS).join(', ')}`);
  if (values.ack !== undefined && !ACKNOWLEDGEMENTS.includes(values.ack as Acknowledgement))
    throw new Error(`--ack takes ${ACKNOWLEDGEMENTS.join(' or ')}`);
  const rounds =
    values.round === undefined
      ? Array.from({ length: Number(values.rounds) }, (_, i) => i + 1)
      : [Number(values.round)];
  return {
    ...values,
    names,
    rounds,
    ack: values.ack as Acknowledgement | undefined,
    rate: Number(values.rate),
  };
}

const ACKNOWLEDGEMENTS: readonly Acknowledgement[] = ['replica', 'redis', 'ledger'];

async function play(cleanup: Cleanup): Promise<boolean> {
  const { names, rounds, seed, ack, rate } = readOptions();
  console.log(`seed ${seed}`);
  const ackOf = (round: number): Acknowledgement =>
    ack ?? ACKNOWLEDGEMENTS[Math.floor((round - 1) / BLOCK_ROUNDS) % ACKNOWLEDGEMENTS.length]!;
  const kindOf = (round: number): string => {
    const pack = Math.floor((round - 1) / names.length);
    return new Random(seed, 'pack', pack).shuffled(names)[(round - 1) % names.length]!;
  };
  const buses = new BusRelays();
  cleanup.add(() => buses.close());
  const cluster = await ownCluster(buses.settings);
  cleanup.add(() => cluster.drop());
  await buses.areUsed(cluster);
  const acknowledgement = ackOf(rounds[0]!);
  const settings = { REDIS_URL: cluster.url, CELLS: String(CELLS) };
  const arena = await openArena(cleanup, { keep: false, acknowledgement }, settings);
  const targets = await makeTargets(arena.api, CELLS);
  const clients = new Clients({
    port: arena.fleet.port,
    targets,
    connections: CONNECTIONS,
    rate,
    prefix: seed,
  });
  const books = new Books(arena.stores.postgres.url);
  const stage: Stage = { ...arena, cluster, buses, clients, books, acknowledgement, lostBefore: 0 };
  const results: Result[] = [];
  for (const round of rounds) {
    const wanted = ackOf(round);
    if (wanted !== stage.acknowledgement) {
      await stage.fleet.stop();
      await stage.fleet.start(wanted);
      stage.acknowledgement = wanted;
    }
    const partnerIds = targets.map(({ partnerId }) => partnerId);
    const result = await playRound(stage, round, kindOf(round), seed, partnerIds);
    results.push(result);
    console.log(line(result));
    if (result.wrong.length === 0) continue;
    for (const each of result.wrong.slice(0, 12)) console.log(`  ${each}`);
    await arena.close(true);
    console.log(`  data and logs are in ${arena.folder}; again: --seed ${seed} --round ${round}`);
    break;
  }
  console.log(`\n${summary(results)}`);
  return results.every(({ wrong }) => wrong.length === 0);
}

const cleanup = new Cleanup();
let isHolding = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void cleanup.run().finally(() => process.exit(130)));
try {
  isHolding = await play(cleanup);
} catch (error) {
  console.error(error);
}
await cleanup.run();
process.exit(isHolding ? 0 : 1);
