/**
 * One round of a chaos run.
 *
 *   spins ──> faults, healed ──> ready again ──> more spins ──> stop ──> unknown spins asked again ──> outbox drained
 *         ──> ledger against what was answered ──> audit
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { outboxKey } from '../../src/redis/keys.js';
import { ROOT } from '../support/root.js';
import type { OwnStores } from '../support/stores.js';
import { pause, until } from '../support/wait.js';
import type { Books, Findings } from './books.js';
import type { Clients, Counts } from './clients.js';
import { type Arena, faultKind, withRedis } from './faults.js';
import type { RoundPlan } from './plan.js';
import { Random } from './random.js';
import { contradiction, type SpinRecord } from './records.js';

export interface RoundResult {
  readonly plan: RoundPlan;
  readonly counts: Counts;
  /** From the last healing until every process says that it is ready and every partner was dealt a spin. */
  readonly readyMs: number | undefined;
  readonly seconds: number;
  readonly findings: Findings;
  /** Undefined where none was run. */
  readonly isAuditClean: boolean | undefined;
}

export interface RoundSettings {
  readonly seed: string;
  readonly audit: boolean;
}

const ANSWERED_WITHIN_MS = 30_000;
const READY_WITHIN_MS = 60_000;
const READY_EVERY_MS = 50;
const PROBE_WITHIN_MS = 4000;
const RESOLVED_WITHIN_MS = 30_000;
const QUIET_WITHIN_MS = 20_000;
const AT_REST_WITHIN_MS = 45_000;
const AUDIT_WITHIN_MS = 180_000;
/** Of the spins whose fate is not known, those that are not asked again: the ledger alone tells. */
const LEFT_SHARE = 0.1;
const AUDIT_OUTPUT_MAX = 2000;

export async function runRound(
  arena: Arena,
  clients: Clients,
  books: Books,
  plan: RoundPlan,
  settings: RoundSettings,
): Promise<RoundResult> {
  const started = performance.now();
  const random = (purpose: string): Random => new Random(settings.seed, plan.round, purpose);
  const trouble: string[] = [];
  let readyMs: number | undefined;
  let findings: Findings | undefined;
  let isAuditClean: boolean | undefined;
  clients.beginRound(plan.round);
  try {
    readyMs = await underFaults(arena, clients, plan, random);
    await clients.more(plan.spinsAfter, ANSWERED_WITHIN_MS);
    await clients.stop();
    const unknown = clients.touched.filter(isOpenQuestion);
    const left = random('left');
    const asked = unknown.filter(() => !left.chance(LEFT_SHARE));
    const unresolved = await clients.resolve(asked, RESOLVED_WITHIN_MS);
    if (unresolved.length > 0) trouble.push(`${unresolved.length} unknown spins are never dealt`);
    await arena.fleet.quiet(QUIET_WITHIN_MS);
    try {
      await atRest(arena.stores);
    } finally {
      findings = await books.reconcile(clients.touched);
    }
    if (settings.audit) {
      const complaint = await audit(arena.stores);
      isAuditClean = complaint === undefined;
      if (complaint !== undefined) trouble.push(`the audit is not clean: ${complaint}`);
    }
  } catch (error) {
    trouble.push(error instanceof Error ? error.message : String(error));
    trouble.push(...(await haltedCells(arena.stores)));
    await clients.stop();
  }
  findings ??= { lost: [], twice: [], missing: [], other: [], unknowns: [0, 0, 0] };
  findings.other.push(...clients.breaches, ...trouble);
  for (const record of clients.touched) {
    const found = contradiction(record);
    if (found !== undefined) findings.other.push(found);
  }
  const seconds = (performance.now() - started) / 1000;
  return { plan, counts: clients.counts, readyMs, seconds, findings, isAuditClean };
}

/** The faults with the spins around them; gives the time from the last healing until all is ready. */
async function underFaults(
  arena: Arena,
  clients: Clients,
  plan: RoundPlan,
  random: (purpose: string) => Random,
): Promise<number> {
  for (const { name } of plan.faults) await faultKind(name).prepare?.(arena);
  clients.start(random('load'));
  await clients.more(plan.spinsBefore, ANSWERED_WITHIN_MS);
  if (plan.isQuiet) {
    await clients.stop();
    await arena.fleet.quiet(QUIET_WITHIN_MS);
    await atRest(arena.stores);
  }
  await Promise.all(
    plan.faults.map(async ({ name, afterMs }) => {
      await pause(afterMs);
      await faultKind(name).run(arena, random(name));
    }),
  );
  const healed = performance.now();
  const probes = random('probes');
  await until(
    async () => (await arena.fleet.isReady()) && (await clients.probe(probes, PROBE_WITHIN_MS)),
    'every process is ready and every partner is dealt spins',
    READY_WITHIN_MS,
    READY_EVERY_MS,
  );
  const readyMs = performance.now() - healed;
  if (plan.isQuiet) clients.start(random('load after'));
  return readyMs;
}

const isOpenQuestion = (record: SpinRecord): boolean =>
  record.requestId !== undefined && record.dealt === undefined && record.isUnknown;

/** Waits until the ledger has all that the outboxes have. */
export async function atRest(stores: OwnStores): Promise<void> {
  const sql = postgres(stores.postgres.url, { max: 1, onnotice: () => {}, connect_timeout: 10 });
  try {
    await withRedis(stores, async (redis) => {
      const isBooked = async (cell: number, cursor: bigint): Promise<boolean> => {
        const [newest] = await redis.xrevrange(outboxKey(cell), '+', '-', 'COUNT', 1);
        if (newest === undefined) return true;
        const [ms, sequence] = newest[0].split('-') as [string, string];
        return ((BigInt(ms) << 22n) | (BigInt(cell) << 14n) | BigInt(sequence)) <= cursor;
      };
      await until(
        async () => {
          const cells = await sql<{ cell: number; cursor_id: string }[]>`SELECT cell, cursor_id FROM cells`;
          const booked = cells.map(({ cell, cursor_id }) => isBooked(cell, BigInt(cursor_id)));
          return (await Promise.all(booked)).every(Boolean);
        },
        'the ledger has all that the outboxes have',
        AT_REST_WITHIN_MS,
      );
    });
  } finally {
    await sql.end();
  }
}

/** Cells whose ledger the service has stopped, with its reasons. */
async function haltedCells(stores: OwnStores): Promise<string[]> {
  const sql = postgres(stores.postgres.url, { max: 1, onnotice: () => {}, connect_timeout: 3 });
  try {
    const halted = await sql<{ cell: number; halted: string }[]>`
      SELECT cell, halted FROM cells WHERE halted IS NOT NULL`;
    return halted.map((row) => `cell ${row.cell} is halted: ${row.halted}`);
  } catch (error) {
    return [`the cells can't be read: ${String(error)}`];
  } finally {
    await sql.end();
  }
}

/** Runs `spindle audit`; gives what it says where it is not content. */
export async function audit(
  stores: { readonly redis: { readonly url: string }; readonly postgres: { readonly url: string } },
  args: readonly string[] = [],
): Promise<string | undefined> {
  const environment = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    REDIS_URL: stores.redis.url,
    DATABASE_URL: stores.postgres.url,
  };
  try {
    await promisify(execFile)(process.execPath, [join(ROOT, 'dist', 'src', 'cli.js'), 'audit', ...args], {
      env: environment,
      timeout: AUDIT_WITHIN_MS,
      maxBuffer: 64 << 20,
    });
    return undefined;
  } catch (error) {
    const { stdout = '', stderr = '', message } = error as Error & { stdout?: string; stderr?: string };
    return `${message}\n${stdout}${stderr}`.slice(0, AUDIT_OUTPUT_MAX);
  }
}
