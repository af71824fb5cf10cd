/**
 * Runs one round of a chaos run.
 *
 *   spins ──> faults, healed ──> ready again ──> more spins ──> stop ──> unknown spins asked again
 *         ──> outbox drained ──> ledger against what was answered ──> audit
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { Random } from '../support/random.js';
import { cliOf, ROOT } from '../support/root.js';
import type { OwnStores } from '../support/stores.js';
import { pause, until } from '../support/wait.js';
import { atRest } from './atRest.js';
import { type Books, type Findings, shownOutcomes } from './books.js';
import type { Clients, Counts } from './clients.js';
import type { Arena } from './faultKind.js';
import { faultKind } from './faults.js';
import type { RoundPlan } from './plan.js';
import { contradiction, type SpinRecord } from './records.js';
import { type BackedUp, backUp } from './restores.js';
import type { TablePlayers } from './tablePlayers.js';
import { replaceRaffles } from './targets.js';

export interface RoundResult {
  readonly plan: RoundPlan;
  readonly counts: Counts;
  /**
   * Time in ms from the end of the last fault until every process is ready and a spin was dealt to every
   * partner.
   */
  readonly readyMs: number | undefined;
  readonly seconds: number;
  readonly findings: Findings;
  /** Number of answered spins that a restore removed as expected. Undefined without a restore. */
  readonly cut: number | undefined;
  readonly isAuditClean: boolean | undefined;
}

const ANSWERED_WITHIN_MS = 30_000;
const READY_WITHIN_MS = 60_000;
const READY_EVERY_MS = 50;
const PROBE_WITHIN_MS = 4000;
const RESOLVED_WITHIN_MS = 30_000;
const QUIET_WITHIN_MS = 20_000;
const AUDIT_WITHIN_MS = 180_000;
/** Share of the spins in doubt that are not retried, so that only the ledger decides them. */
const LEFT_SHARE = 0.1;
const AUDIT_OUTPUT_MAX = 2000;

/** The players of a run and their records. */
export interface Cast {
  readonly clients: Clients;
  readonly tables: TablePlayers;
  readonly books: Books;
}

export async function runRound(
  arena: Arena,
  cast: Cast,
  plan: RoundPlan,
  settings: {
    readonly seed: string;
    readonly audit: boolean;
  },
): Promise<RoundResult> {
  const started = performance.now();
  const random = (purpose: string): Random => new Random(settings.seed, plan.round, purpose);
  const { clients, tables, books } = cast;
  const trouble: string[] = [];
  let cut: number | undefined;
  let readyMs: number | undefined;
  let findings: Findings | undefined;
  let isAuditClean: boolean | undefined;
  clients.beginRound(plan.round);
  try {
    const faults = await underFaults(arena, cast, plan, random);
    readyMs = faults.readyMs;
    cut = faults.cut;
    trouble.push(...faults.wrong);
    await clients.more(plan.spinsAfter, ANSWERED_WITHIN_MS);
    await Promise.all([clients.stop(), tables.stop()]);
    const unknown = clients.touched.filter((record) => isOpenQuestion(record) && !clients.isClosed(record));
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
    await Promise.all([clients.stop(), tables.stop()]);
  }
  findings ??= { lost: [], twice: [], missing: [], other: [], unknowns: [0, 0, 0] };
  findings.other.push(...clients.breaches, ...tables.breaches.splice(0), ...trouble);
  for (const record of clients.touched) {
    const found = contradiction(record);
    if (found !== undefined) findings.other.push(found);
  }
  const seconds = (performance.now() - started) / 1000;
  return { plan, counts: clients.counts, readyMs, seconds, findings, cut, isAuditClean };
}

interface Survived {
  readonly readyMs: number;
  readonly cut: number | undefined;
  readonly wrong: readonly string[];
}

/** Runs the faults of the round, with spins before, during and after them. */
async function underFaults(
  arena: Arena,
  { clients, tables, books }: Cast,
  plan: RoundPlan,
  random: (purpose: string) => Random,
): Promise<Survived> {
  const kinds = plan.faults.map(({ name }) => faultKind(name));
  const restores = kinds.find((kind) => kind.restores !== undefined)?.restores;
  for (const kind of kinds) await kind.prepare?.(arena);
  const backedUp = restores === undefined ? undefined : await backUp(arena);
  clients.start(random('load'));
  tables.start(random('tables'));
  await clients.more(plan.spinsBefore, ANSWERED_WITHIN_MS);
  if (plan.isQuiet) {
    await Promise.all([clients.stop(), tables.stop()]);
    await arena.fleet.quiet(QUIET_WITHIN_MS);
    await atRest(arena.stores);
  }
  const shown = restores === undefined ? [] : await shownOutcomes(arena.stores.postgres.url);
  await Promise.all(
    plan.faults.map(async ({ name, afterMs }) => {
      await pause(afterMs);
      await faultKind(name).run(arena, random(name));
    }),
  );
  const healed = performance.now();
  const kept = restores === 'all' ? undefined : backedUp;
  const restored = restores && (await afterRestore(arena, { clients, tables, books }, plan, shown, kept));
  const probes = random('probes');
  await until(
    async () => (await arena.fleet.isReady()) && (await clients.probe(probes, PROBE_WITHIN_MS)),
    'every process is ready and every partner is dealt spins',
    READY_WITHIN_MS,
    READY_EVERY_MS,
  );
  const readyMs = performance.now() - healed;
  if (plan.isQuiet) {
    clients.start(random('load after'));
    tables.start(random('tables after'));
  }
  return { readyMs, cut: restored?.cut, wrong: restored?.wrong ?? [] };
}

/** Compares the restored ledger with the answers, and replaces suspended raffles by new ones. */
async function afterRestore(
  { api, targets }: Arena,
  { clients, tables, books }: Cast,
  plan: RoundPlan,
  shown: readonly string[],
  kept: BackedUp | undefined,
): Promise<{ readonly cut: number; readonly wrong: readonly string[] }> {
  tables.restored();
  const { cut, lost, twice, missing, other } = await books.restored(
    { records: clients.all, touched: clients.touched, shown },
    kept,
  );
  clients.close(await replaceRaffles(api, targets, `raffle-${plan.round}`));
  return { cut, wrong: [...lost, ...twice, ...missing, ...other] };
}

const isOpenQuestion = (record: SpinRecord): boolean =>
  record.requestId !== undefined && record.dealt === undefined && record.isUnknown;

/** Returns the cells that the service has halted, with the reasons. */
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

/** Runs `spindle audit`. Returns its output if it finds a problem. */
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
    await promisify(execFile)(process.execPath, [cliOf(ROOT), 'audit', ...args], {
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
