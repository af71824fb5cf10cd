/**
 * Runs the model: plays random scenarios against a running service, and shrinks and reports the first
 * violation.
 */
import fc from 'fast-check';
import postgres from 'postgres';
import { type StoreClock, storeClock } from '../support/storeClock.js';
import { until } from '../support/wait.js';
import { Violation } from './changing.js';
import { AuthFailures } from './exchange.js';
import { Front } from './front.js';
import { type Scenario, scenarios } from './operations.js';
import { Play, type World } from './play.js';
import { type Failure, shrink } from './shrink.js';

export interface ModelOptions {
  /** Base addresses of the service's front ends. Each is a separate process on the same stores. */
  readonly bases: readonly string[];
  readonly operatorKey: string;
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly runs: number;
  /** Time in ms after which no further scenario starts. Default is no limit. */
  readonly forMs?: number;
  readonly seed: number;
  /** Maximum number of operations of a scenario. Default 50. */
  readonly operations?: number;
  /**
   * True if each scenario continues into the next minute once. All scenarios are then played concurrently, so
   * that they wait only once, and none is shrunk.
   */
  readonly crossesMinute?: boolean;
  /** Cuts the connections between the service and Redis. If it is given, scenarios include such cuts. */
  readonly cutStore?: () => void;
  /** Maximum time in ms for shrinking a violation. Default 20,000; 0 disables shrinking. */
  readonly shrinkMs?: number;
}

/** Number of concurrent scenarios. They spend most of their time waiting for a disk. */
const AT_ONCE = 4;

export interface ModelSummary {
  readonly runs: number;
  /** Number of occurrences of each response to each request, such as `spin 409 KS-4111`. */
  readonly seen: ReadonlyMap<string, number>;
}

/** Thrown if the service does what the model does not allow. */
export class ModelFailure extends Error {
  constructor(
    message: string,
    readonly seed: number,
    /** Number of the first failing scenario, counted from 1. */
    readonly run: number,
    readonly scenario: Scenario,
  ) {
    super(message);
  }
}

/**
 * Plays random scenarios against a running service.
 * @throws ModelFailure on the first violation, with the seed and the shrunk scenario
 */
export async function runModel(options: ModelOptions): Promise<ModelSummary> {
  const { bases, operatorKey, databaseUrl, redisUrl, runs, seed } = options;
  const { operations = 50, crossesMinute = false, cutStore, shrinkMs = 20_000 } = options;
  const beginUntil = performance.now() + (options.forMs ?? Number.POSITIVE_INFINITY);
  const clock = storeClock(redisUrl);
  const sql = postgres(databaseUrl, { max: 4, types: { bigint: postgres.BigInt }, onnotice: () => {} });
  const fronts = bases.map((base) => new Front(base));
  try {
    const offset = await offsetOf(clock);
    const world: World = {
      fronts,
      operatorKey,
      sql,
      clock,
      secondsAt: (time) => offset + time / 1000,
      cutStore,
      auth: new AuthFailures(),
      seen: new Map(),
    };
    const hasCable = cutStore !== undefined;
    // fast-check only draws the scenarios. The seed does not determine the outcomes of spins, so a smaller
    // scenario must be tried several times, which the shrinking of fast-check does not do.
    const all = fc.sample(scenarios({ operations, hasCable, crossesMinute }), { seed, numRuns: runs });
    const { played, failed } = await playAll(
      world,
      all,
      crossesMinute ? runs : hasCable ? 1 : AT_ONCE,
      beginUntil,
    );
    if (failed !== undefined) {
      const { run, failure } = failed;
      const smallest = await shrink(failure, (smaller) => play(world, smaller), crossesMinute ? 0 : shrinkMs);
      const head = `run ${run} of ${runs}, ${smallest.tried} smaller ones tried`;
      const text = report(seed, head, smallest.failure, failure);
      throw new ModelFailure(text, seed, run, smallest.failure.scenario);
    }
    return { runs: played, seen: world.seen };
  } finally {
    clock.close();
    await sql.end();
  }
}

/** Maximum duration, in ms, of a read of the store's clock. The result of a longer read is not used. */
const SOON_MS = 200;

/**
 * Returns the offset in s that converts performance.now() to the store's clock, with an accuracy of about
 * half a second.
 */
async function offsetOf(clock: StoreClock): Promise<number> {
  let offset = 0;
  await until(async () => {
    const askedAt = performance.now();
    // The store's clock returns whole seconds, which are half a second too low on average, so half a second
    // is added.
    offset = (await clock.seconds()) + 0.5 - performance.now() / 1000;
    return performance.now() - askedAt < SOON_MS;
  }, 'the store tells its time at once');
  return offset;
}

async function play(world: World, scenario: Scenario): Promise<Failure | undefined> {
  const play = new Play(world);
  try {
    await play.run(scenario);
    return undefined;
  } catch (error) {
    // Operations after the failing one are irrelevant to the failure.
    const operations = scenario.operations.slice(0, play.begun);
    return { error, scenario: { ...scenario, operations }, trace: play.trace };
  }
}

/** Plays several scenarios at a time. Once one has failed, no further scenario starts. */
async function playAll(
  world: World,
  all: readonly Scenario[],
  atOnce: number,
  beginUntil: number,
): Promise<{ played: number; failed: { run: number; failure: Failure } | undefined }> {
  let next = 0;
  let failed: { run: number; failure: Failure } | undefined;
  const lane = async (): Promise<void> => {
    while (next < all.length && failed === undefined && performance.now() < beginUntil) {
      const run = ++next;
      const failure = await play(world, all[run - 1]!);
      if (failure !== undefined) failed ??= { run, failure };
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return { played: next, failed };
}

const TRACE_MAX = 60;

function report(seed: number, head: string, { error, scenario, trace }: Failure, first: Failure): string {
  const text = (cause: unknown): string =>
    cause instanceof Violation
      ? cause.message
      : cause instanceof Error
        ? (cause.stack ?? cause.message)
        : String(cause);
  return [
    `The service differs from the model (MODEL_SEED=${seed}, ${head}):`,
    text(error),
    ...(text(first.error) === text(error) ? [] : ['', 'Before it was shrunk:', text(first.error)]),
    '',
    'Partners:',
    ...scenario.partners.map((partner, i) => `  ${i}. ${JSON.stringify(partner)}`),
    'Operations:',
    ...scenario.operations.map((operation, i) => `  ${i + 1}. ${JSON.stringify(operation)}`),
    `What was asked and answered${trace.length > TRACE_MAX ? ', the end of it' : ''}:`,
    ...trace.slice(-TRACE_MAX).map((line) => `  ${line}`),
  ].join('\n');
}
