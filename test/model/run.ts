/** Runs the model: random scenarios against a running service, the first that violates it shrunk and told. */
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
  /** Base addresses of the service's front ends, one process each, all on the same stores. */
  readonly bases: readonly string[];
  readonly operatorKey: string;
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** Scenarios to play. */
  readonly runs: number;
  /** How long scenarios are begun at the most, milliseconds; without end unless told. */
  readonly forMs?: number;
  /** The same seed makes the same scenarios. */
  readonly seed: number;
  /** Operations of a scenario at the most; 50 unless told. */
  readonly operations?: number;
  /** Each scenario goes on into the next minute, once; all are played at the same time, so that they wait once, and none is shrunk. */
  readonly crossesMinute?: boolean;
  /** Cuts the connections between the service and Redis, which then is part of the scenarios. */
  readonly cutStore?: () => void;
  /** How long a violation is shrunk at the most, milliseconds; 20,000 unless told, 0: not at all. */
  readonly shrinkMs?: number;
}

/** Scenarios that are played at a time: most of their time they wait for a disk. */
const AT_ONCE = 4;

export interface ModelSummary {
  /** Scenarios that were played. */
  readonly runs: number;
  /** How often each request had each outcome, such as `spin 409 KS-4111`. */
  readonly seen: ReadonlyMap<string, number>;
}

/** The service did what the model does not allow. */
export class ModelFailure extends Error {
  constructor(
    message: string,
    readonly seed: number,
    /** The scenario that was the first to fail, from 1. */
    readonly run: number,
    /** What it was shrunk to. */
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
    // fast-check draws them. What a spin wins is not the seed's to say, so a smaller scenario has to be tried more than
    // once, which its own shrinking does not.
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

/** How soon the store must have told its time for it to be taken, milliseconds. */
const SOON_MS = 200;

/** What is to be added to performance.now(), in seconds, to have the store's clock to half a second or so. */
async function offsetOf(clock: StoreClock): Promise<number> {
  let offset = 0;
  await until(async () => {
    const askedAt = performance.now();
    // Whole seconds: on average it is half of one later.
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
    // What comes after the operation that failed has no part in it.
    const operations = scenario.operations.slice(0, play.begun);
    return { error, scenario: { ...scenario, operations }, trace: play.trace };
  }
}

/** Plays some at a time, and none that are not begun once one has failed. */
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
