/**
 * Looks once a second at what makes answers late: how long Redis took to sync its log, to fork and to run a command, whether it
 * rewrites its log, checkpoints and vacuums of Postgres, how long an event loop of ours stood still, how long the
 * machine waited for its disk, and how much of its CPU went to others.
 */
import { readFileSync } from 'node:fs';
import { connectPostgres, raw, type Sql } from '../src/postgres/client.js';
import {
  CpuMeter,
  type CpuTimes,
  cpuBetween,
  type MachineTimes,
  machineTimes,
  type Processes,
} from './measure.js';
import type { Happening } from './slowSeconds.js';
import type { Stores } from './stores.js';

/** Shorter stops of Redis or of an event loop are none. */
const STOP_MS = 20;
/** Of a second: the time that some process waited for the disk. */
const DISK_WAIT_MS = 200;
/** Shares of the machine's CPU. */
const STOLEN_SHARE = 0.1;
const OTHERS_SHARE = 0.2;
const IDLE_SHARE = 0.03;
/** What Redis calls what it was late by, and what that is. */
const REDIS_EVENTS: Readonly<Record<string, string>> = {
  'aof-fsync-always': 'sync of Redis',
  'aof-write': 'write of Redis',
  'aof-write-active-child': 'write of Redis',
  'aof-write-alone': 'write of Redis',
  'aof-write-pending-fsync': 'write of Redis',
  fork: 'fork of Redis',
};

export interface Watched {
  readonly stores: Stores;
  /** Those that are measured, the load generator among them. */
  readonly processes: Processes;
  /** Where the processes of the service tell their metrics; empty where another server is measured. */
  readonly metrics: readonly { readonly name: string; readonly url: string }[];
}

/** Since the server began. */
interface Checkpoints {
  readonly begun: number;
  readonly syncMs: number;
}

/** What counts up, as it stood at the last look. */
interface Look {
  readonly at: number;
  readonly cpu: CpuTimes;
  readonly machine: MachineTimes;
  readonly diskWaitMicros: number | undefined;
  readonly checkpoints: Checkpoints;
  readonly redisEvents: ReadonlyMap<string, number>;
}

export class HappeningWatch {
  readonly #watched: Watched;
  readonly #cpu: CpuMeter;
  readonly #sql: Sql;
  readonly #happenings: Happening[] = [];
  #last: Look | undefined;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();

  constructor(watched: Watched) {
    this.#watched = watched;
    this.#cpu = new CpuMeter(watched.processes);
    this.#sql = connectPostgres(watched.stores.databaseUrl, { max: 1, name: 'bench', onError: () => {} });
  }

  async start(): Promise<void> {
    await this.#watched.stores.redis.config('SET', 'latency-monitor-threshold', String(STOP_MS));
    await this.#watched.stores.redis.config('SET', 'slowlog-log-slower-than', String(STOP_MS * 1000));
    this.#timer = setInterval(() => {
      this.#looking = this.#looking.then(() => this.#look()).catch((error: unknown) => console.error(error));
    }, 1000);
  }

  async stop(): Promise<readonly Happening[]> {
    clearInterval(this.#timer);
    await this.#looking;
    await this.#sql.end();
    return this.#happenings;
  }

  async #look(): Promise<void> {
    const last = this.#last;
    const from = last?.at ?? Math.floor(Date.now() / 1000);
    const [redisEvents, postgres, isRewriting] = await Promise.all([
      this.#redisEvents(),
      this.#postgres(),
      this.#isRewriting(),
      ...this.#watched.metrics.map((endpoint) => this.#eventLoop(endpoint, from)),
    ]);
    const now: Look = {
      at: Math.floor(Date.now() / 1000),
      cpu: this.#cpu.sample(),
      machine: machineTimes(),
      diskWaitMicros: diskWaitMicros(),
      checkpoints: postgres.checkpoints,
      redisEvents,
    };
    this.#last = now;
    if (last === undefined) return;
    const note: Note = (cause, amount, text) => {
      this.#happenings.push({ from, to: now.at, cause, amount, text });
    };
    if (isRewriting) note('rewrite of the log of Redis', 1, 'Redis rewrites its log');
    const { begun, syncMs } = postgres.checkpoints;
    const syncedMs = syncMs - last.checkpoints.syncMs;
    if (begun > last.checkpoints.begun) note('begin of a checkpoint', 1, 'Postgres began a checkpoint');
    if (syncedMs > 0)
      note('sync of a checkpoint', syncedMs, `Postgres synced a checkpoint, ${syncedMs.toFixed(0)} ms`);
    const { vacuums } = postgres;
    if (vacuums > 0) note('vacuum', vacuums, `${vacuums} vacuums`);
    noteMachine(last, now, note);
  }

  /** Notes what Redis was late by, and when. @returns the second of the newest event of each name */
  async #redisEvents(): Promise<Map<string, number>> {
    const latest = (await this.#watched.stores.redis.call('LATENCY', 'LATEST')) as [string, number, number][];
    const seen = new Map<string, number>();
    for (const [name, at, ms] of latest) {
      seen.set(name, at);
      const before = this.#last?.redisEvents.get(name) ?? Number.POSITIVE_INFINITY;
      if (this.#last === undefined || (this.#last.redisEvents.has(name) && at <= before)) continue;
      const cause = REDIS_EVENTS[name] ?? 'command of Redis';
      const what = name === 'command' ? await this.#slowestCommand() : name;
      this.#happenings.push({
        from: at - Math.ceil(ms / 1000),
        to: at,
        cause,
        amount: ms,
        text: `Redis ${what} ${ms} ms`,
      });
    }
    return seen;
  }

  /** @returns the slowest of the newest slow commands, with the beginning of its arguments */
  async #slowestCommand(): Promise<string> {
    const logged = (await this.#watched.stores.redis.slowlog('GET', 8)) as SlowCommand[];
    const [slowest] = logged.sort(([, , a], [, , b]) => b - a);
    if (slowest === undefined) return 'command';
    return slowest[3]
      .slice(0, 4)
      .map((each) => each.slice(0, 24))
      .join(' ');
  }

  async #isRewriting(): Promise<boolean> {
    return (await this.#watched.stores.redis.info('persistence')).includes('aof_rewrite_in_progress:1');
  }

  async #postgres(): Promise<{ checkpoints: Checkpoints; vacuums: number }> {
    const sql = this.#sql;
    const [{ version } = { version: 0 }] = await sql<{ version: number }[]>`
      SELECT current_setting('server_version_num')::int AS version`;
    const counted =
      version >= 170_000
        ? 'num_timed + num_requested AS begun, sync_time AS ms FROM pg_stat_checkpointer'
        : 'checkpoints_timed + checkpoints_req AS begun, checkpoint_sync_time AS ms FROM pg_stat_bgwriter';
    const [row] = await sql<{ vacuums: bigint; begun: bigint; ms: number }[]>`
      SELECT (SELECT count(*) FROM pg_stat_progress_vacuum) AS vacuums, ${raw(counted)}`;
    return {
      checkpoints: { begun: Number(row!.begun), syncMs: row!.ms },
      vacuums: Number(row!.vacuums),
    };
  }

  /** Each scrape tells the longest stop since the one before. */
  async #eventLoop({ name, url }: { name: string; url: string }, from: number): Promise<void> {
    const text = await (await fetch(url)).text();
    const seconds = Number(/^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(text)?.[1]);
    if (!(seconds * 1000 >= STOP_MS)) return;
    const to = Math.floor(Date.now() / 1000);
    const cause = `event loop of the ${name}`;
    this.#happenings.push({
      from,
      to,
      cause,
      amount: seconds,
      text: `${cause} ${(seconds * 1000).toFixed(0)} ms`,
    });
  }
}

/** As SLOWLOG GET tells it: its number, seconds since the epoch, microseconds, the command with its arguments. */
type SlowCommand = [id: number, at: number, micros: number, words: string[]];

type Note = (cause: string, amount: number, text: string) => void;

function noteMachine(last: Look, now: Look, note: Note): void {
  const all = now.machine.all - last.machine.all;
  const busy = now.machine.busy - last.machine.busy;
  const stolen = (now.machine.stolen - last.machine.stolen) / all;
  const byProcess = cpuBetween(last.cpu, now.cpu);
  const own = Object.values(byProcess).reduce((sum, micros) => sum + micros, 0);
  const others = (busy - own) / all;
  const percent = (share: number): string => `${Math.round(share * 100)} %`;
  if (stolen >= STOLEN_SHARE)
    note('CPU taken by other machines', stolen, `${percent(stolen)} of the CPU to other machines`);
  if (others >= OTHERS_SHARE)
    note('CPU taken by other processes', others, `${percent(others)} of the CPU to other processes`);
  if (1 - busy / all - stolen < IDLE_SHARE) {
    const shares = Object.entries({ ...byProcess, others: busy - own })
      .sort(([, a], [, b]) => b - a)
      .map(([name, micros]) => `${name} ${percent(micros / all)}`);
    note('no idle CPU', 1, `no idle CPU (${shares.join(', ')})`);
  }
  if (last.diskWaitMicros === undefined || now.diskWaitMicros === undefined) return;
  const waitMs = (now.diskWaitMicros - last.diskWaitMicros) / 1000;
  if (waitMs >= DISK_WAIT_MS) note('disk', waitMs, `${waitMs.toFixed(0)} ms waited for the disk`);
}

/** How long some process has waited for the disk; undefined where the kernel does not tell. */
function diskWaitMicros(): number | undefined {
  try {
    return Number(/^some .*total=(\d+)$/m.exec(readFileSync('/proc/pressure/io', 'utf8'))?.[1]);
  } catch {
    return undefined;
  }
}
