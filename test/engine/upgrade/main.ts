/**
 * `npm run test:upgrade -- [--from REF] [--rounds 30] [--rate 500] [--kills] [--plant NAME]`
 *
 * Starts two front ends and two workers of an older build and puts load on them. Replaces them one by one
 * with a newer build and then with the older build again, round after round. Finally it upgrades all
 * processes, finishes the upgrade, and starts the older build once more, which must be refused. `--kills`
 * also kills a process in each round. With `--plant` the newer build has a fault that the test must find.
 * Exit status 0 means that no request failed, nothing was lost or dealt twice, every repeated request got the
 * same response, and the audit found no fault.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import postgres from 'postgres';
import { type Cleanup, runToEnd } from '../../support/cleanup.js';
import { Client, OPERATOR_KEY } from '../../support/client.js';
import { cliOf, mainOf } from '../../support/root.js';
import { newTable } from '../../support/rounds.js';
import { ServerProcess } from '../../support/serverProcess.js';
import { parSheet } from '../../support/sheets.js';
import { type OwnStores, ownStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';
import { buildOf, lastRelease, makeNewer, NEXT_FORMAT, PLANTS, type Plant } from './builds.js';
import { type Games, quantile, Traffic } from './traffic.js';

const { values } = parseArgs({
  options: {
    from: { type: 'string' },
    rounds: { type: 'string', default: '30' },
    rate: { type: 'string', default: '500' },
    kills: { type: 'boolean', default: false },
    plant: { type: 'string' },
  },
});
const plant = values.plant as Plant | undefined;
if (plant !== undefined && !PLANTS.includes(plant)) throw new Error(`--plant is one of ${PLANTS.join(', ')}`);

const NOT_UNDERSTOOD = 'messages were not understood';
/** Pattern that the findings must match if the newer version has the fault. */
const SYMPTOMS: Readonly<Record<Plant, RegExp>> = {
  'dropped-column': /column .* does not exist/,
  'early-format': new RegExp(`format ${NEXT_FORMAT}, which this version (does not|can't) read`),
  'shorter-message': new RegExp(NOT_UNDERSTOOD),
};

const say = (line: string): void => console.log(line);
const STEADY_MS = 2000;
/**
 * Time, in ms, in which the leases of a killed worker expire and another worker begins to write its cells.
 */
const AFTER_KILL_MS = 6000;
const AFTER_FINISH_MS = 7000;
/** Time, in ms, in which a load balancer learns that an address is gone. */
const LEARNT_AFTER_MS = 1000;
const WATCHED_EVERY_MS = 20;
const PARTNERS = 2;

type Role = 'http' | 'worker';
interface Member {
  readonly role: Role;
  process: ServerProcess;
}

class Fleet {
  readonly members: Member[] = [];
  /** Errors that processes have logged, and columns of the schema that they did not find. */
  readonly logged: string[] = [];

  constructor(
    private readonly settings: NodeJS.ProcessEnv,
    private readonly traffic: () => Traffic | undefined,
  ) {}

  async launch(root: string, role: Role): Promise<ServerProcess> {
    const env = { ...this.settings, ROLES: role };
    const process = await ServerProcess.launch({ env, program: mainOf(root) }).ready();
    if (role === 'http') this.traffic()?.add(process.base!);
    return process;
  }

  async add(root: string, role: Role): Promise<void> {
    this.members.push({ role, process: await this.launch(root, role) });
  }

  /** Starts a replacement of a process and ends the old process once the new one is ready. */
  async replace(member: Member, root: string): Promise<void> {
    const before = member.process;
    member.process = await this.launch(root, member.role);
    const learnt = pause(LEARNT_AFTER_MS).then(() => this.#forget(before));
    const status = await before.end();
    if (status !== 0) this.logged.push(`a process ended with ${status}`);
    await learnt;
    this.#keep(before);
  }

  async kill(member: Member, root: string): Promise<void> {
    const before = member.process;
    await before.end('SIGKILL');
    this.#forget(before);
    this.#keep(before);
    member.process = await this.launch(root, member.role);
  }

  async stop(): Promise<void> {
    for (const { process } of this.members) {
      await process.stop();
      this.#keep(process);
    }
  }

  #forget({ base }: ServerProcess): void {
    if (base !== undefined) this.traffic()?.remove(base);
  }

  #keep(process: ServerProcess): void {
    for (const line of process.output().split('\n'))
      if (/"level":[56]0|does not exist|this version (does not|can't) read/.test(line))
        this.logged.push(line);
    if (process.output().includes('ignoring malformed pub/sub message')) this.logged.push(NOT_UNDERSTOOD);
  }
}

async function provision(client: Client): Promise<Games[]> {
  const partners: Games[] = [];
  for (let i = 0; i < PARTNERS; i++) {
    const { key, partnerId } = await client.newPartner();
    const slots = [
      await client.newGame(key, parSheet('classic-3-reel')),
      await client.newGame(key, parSheet('classic-3-reel')),
    ];
    const prizes = [{ prizeName: 'Prize', prizeTier: 1, valueUsd: 5, count: 1000 }];
    const terms = { ticketPriceUsd: 1, poolSize: 200_000, prizes };
    const raffle = await client.api.newRaffle(partnerId, `raffle-${i}`, terms);
    partners.push({ key, slots, raffle, table: await newTable(client, partnerId) });
  }
  return partners;
}

/**
 * Polls for cells without an owner.
 * @returns a function that stops polling and returns the longest time for which a cell had no owner, in ms
 */
function watchOwners(sql: postgres.Sql): () => Promise<number> {
  const freeSince = new Map<number, number>();
  let longestMs = 0;
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      const rows = await sql<
        { cell: number }[]
      >`SELECT cell FROM cells WHERE owner IS NULL OR lease_until < now()`;
      const now = performance.now();
      const free = new Set(rows.map(({ cell }) => cell));
      for (const cell of free) if (!freeSince.has(cell)) freeSince.set(cell, now);
      for (const [cell, since] of freeSince) {
        longestMs = Math.max(longestMs, now - since);
        if (!free.has(cell)) freeSince.delete(cell);
      }
      await pause(WATCHED_EVERY_MS);
    }
  })();
  return async () => {
    isOver = true;
    await watching;
    return longestMs;
  };
}

const spindle = (root: string, stores: OwnStores, ...args: string[]) =>
  promisify(execFile)(process.execPath, [cliOf(root), ...args], {
    env: { PATH: process.env.PATH, REDIS_URL: stores.redisUrl, DATABASE_URL: stores.databaseUrl },
  }).then(
    ({ stdout }) => ({ status: 0, out: stdout }),
    (error: { code: number; stdout: string; stderr: string }) => ({
      status: error.code,
      out: error.stdout + error.stderr,
    }),
  );

/** Checks that the older version is refused with a message after the upgrade is finished. */
async function refusal(root: string, settings: NodeJS.ProcessEnv): Promise<string | undefined> {
  const started = ServerProcess.launch({ env: { ...settings, ROLES: 'http' }, program: mainOf(root) });
  const status = await started.ended;
  const said = new RegExp(
    `(in format ${NEXT_FORMAT} since an upgrade was finished|an upgrade was finished and the data has format ${NEXT_FORMAT})`,
  ).test(started.output());
  return status === 1 && said
    ? undefined
    : `the older version ended with ${status}: ${started.output().slice(-300)}`;
}

interface Scene {
  readonly older: string;
  readonly newer: string;
  readonly stores: OwnStores;
  readonly settings: NodeJS.ProcessEnv;
  readonly fleet: Fleet;
  readonly traffic: Traffic;
  readonly sql: postgres.Sql;
}

async function openScene(cleanup: Cleanup): Promise<Scene> {
  const folder = await mkdtemp(join(tmpdir(), 'spindle-upgrade-'));
  cleanup.add(() => rm(folder, { recursive: true, force: true }));
  const ref = values.from ?? (await lastRelease());
  say(`building ${ref} and the version after it …`);
  const older = await buildOf(ref, join(folder, 'older'));
  const newer = await buildOf('HEAD', join(folder, 'newer'), (root) => makeNewer(root, plant));
  const stores = await ownStores();
  cleanup.add(() => stores.drop());
  const settings = {
    REDIS_URL: stores.redisUrl,
    DATABASE_URL: stores.databaseUrl,
    OPERATOR_API_KEY: OPERATOR_KEY,
    PORT: '0',
    METRICS_PORT: '0',
    CELLS: '8',
    LOG_LEVEL: 'warn',
    REQUEST_ID_WINDOW_S: '5',
    // TEST_CONSTANTS switches off the check that settings are in the range for production, because
    // REQUEST_ID_WINDOW_S is shorter here.
    TEST_CONSTANTS: '{}',
    POSITION_FILE: join(folder, 'position.json'),
  };
  let traffic: Traffic | undefined;
  const fleet = new Fleet(settings, () => traffic);
  cleanup.add(() => fleet.stop());
  for (const role of ['worker', 'worker', 'http', 'http'] as const) await fleet.add(older, role);
  traffic = new Traffic(await provision(new Client(fleet.members[2]!.process.base!)));
  for (const { process } of fleet.members.slice(2)) traffic.add(process.base!);
  const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  cleanup.add(() => sql.end());
  return { older, newer, stores, settings, fleet, traffic, sql };
}

/** Replaces every process with one of the newer build, and then with one of the older build again. */
async function playRound({ older, newer, fleet, traffic }: Scene, round: number): Promise<void> {
  for (const [turn, root] of [newer, older].entries()) {
    for (const member of fleet.members) {
      traffic.phase = 'steady';
      await pause(STEADY_MS);
      traffic.phase = 'replacing';
      await fleet.replace(member, root);
    }
    if (!values.kills) continue;
    traffic.phase = 'killing';
    traffic.mayFail = true;
    await fleet.kill(fleet.members[(round * 2 + turn) % fleet.members.length]!, root);
    await pause(AFTER_KILL_MS);
    traffic.mayFail = false;
  }
  const { failures, dealt, rounds, retried } = traffic;
  say(
    `round ${round}: ${dealt} spins and tickets, ${rounds} rounds, ${retried} sent again, ${failures.length} failed`,
  );
}

/**
 * Finishes the upgrade, so that the older build is refused afterwards.
 * @returns the faults
 */
async function finish({ older, newer, stores, settings, fleet }: Scene): Promise<string[]> {
  const faults: string[] = [];
  for (const member of fleet.members) await fleet.replace(member, newer);
  const mayFinish = async (): Promise<boolean> =>
    (await spindle(newer, stores, 'upgrade', 'status')).out.includes('«spindle upgrade finish»');
  await until(mayFinish, 'the upgrade can be finished', 60_000);
  const finished = await spindle(newer, stores, 'upgrade', 'finish', '--yes');
  if (finished.status !== 0) faults.push(`finish: ${finished.out}`);
  // During the pause, every process learns that the upgrade is finished.
  await pause(AFTER_FINISH_MS);
  const unrefused = await refusal(older, settings);
  return unrefused === undefined ? faults : [...faults, unrefused];
}

/**
 * Compares all responses with the stores.
 * @returns the faults
 */
async function judge({ newer, stores, fleet, traffic, sql }: Scene): Promise<string[]> {
  const faults: string[] = [];
  const { dealt, failures } = traffic;
  const booked = async (): Promise<number> =>
    Number((await sql`SELECT count(*) AS n FROM ledger WHERE kind = 1`)[0]!.n);
  await until(async () => (await booked()) >= dealt, 'all that was answered is booked', 30_000).catch(
    () => {},
  );
  const rows = await booked();
  if (rows !== dealt) faults.push(`${dealt} spins were answered, and the ledger has ${rows}`);
  const differing = await traffic.differing();
  if (differing.length > 0)
    faults.push(`${differing.length} answers are not repeated: ${differing[0]!.body}`);
  await traffic.close();
  await fleet.stop();
  const audit = await spindle(newer, stores, 'audit');
  if (audit.status !== 0) faults.push(`audit: ${audit.out}`);
  for (const { at, what } of failures.slice(0, 10)) faults.push(`${at} ${what}`);
  if (failures.length > 0) faults.push(`${failures.length} requests failed`);
  return [...faults, ...fleet.logged];
}

async function run(cleanup: Cleanup): Promise<boolean> {
  const scene = await openScene(cleanup);
  const { traffic } = scene;
  const ownersWatched = watchOwners(scene.sql);
  traffic.start(Number(values.rate));
  const rounds = Number(values.rounds);
  for (let round = 1; round <= rounds && (plant === undefined || traffic.failures.length === 0); round++)
    await playRound(scene, round);
  const unfinished = await finish(scene);
  await traffic.stop();
  const longestFreeMs = await ownersWatched();
  const faults = [...unfinished, ...(await judge(scene))];
  for (const [phase, all] of traffic.latencies) {
    const [p50, p99] = [0.5, 0.99].map((share) => quantile(all, share).toFixed(1));
    say(`${phase}: ${all.length} requests, p50 ${p50} ms, p99 ${p99} ms`);
  }
  say(`longest time that a cell had no owner: ${longestFreeMs.toFixed(0)} ms`);
  for (const fault of faults) say(`FAULT ${fault.slice(0, 400)}`);
  say(`${rounds} upgrades and ${rounds} ways back: ${faults.length === 0 ? 'held' : 'NOT held'}`);
  if (plant === undefined) return faults.length === 0;
  const isFound = faults.some((fault) => SYMPTOMS[plant].test(fault));
  say(`${plant}: ${isFound ? 'found' : 'NOT found'}`);
  return isFound;
}

await runToEnd(run);
