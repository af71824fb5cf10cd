/**
 * `npm run chaos -- machine [--rounds 20] [--seed S] [--faults kind,kind] [--seconds s] [--ack redis|ledger]
 *                   [--round n] [--rate 1200] [--connections 32] [--no-audit] [--keep-going] [--keep]`
 *
 * Causes seeded faults in the service under load. After each round it compares the answers of the clients
 * with the ledger: no acknowledged spin may be lost, no outcome may be dealt twice or be missing, every
 * balance must be exact, and every spin in doubt must have happened at most once. No share of a communal
 * progressive may be lost or notified twice.
 *
 * Two processes with both roles share a port, and a third is only a worker. Each has TCP proxies to a Redis
 * on a small RAM disk and to a Postgres; both stores belong to the run. The seed and the number of a round
 * determine its faults. `--round` runs a single round. Only the timing within a round depends on the machine.
 * The run ends at the first broken round, or continues on fresh stores with `--keep-going`. The data and logs
 * of a broken round are kept, and those of any run with `--keep`. Exit status 0 means that every promise
 * held. The run needs Linux (/proc, SO_REUSEPORT).
 */
import { randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { archivedPostgresMissing } from '../backup/archivedPostgres.js';
import { Cleanup } from '../support/cleanup.js';
import { type Arena, openArena } from './arena.js';
import { judgeBonuses, tellAll } from './bonuses.js';
import { Books } from './books.js';
import { Clients } from './clients.js';
import { type FaultName, faultKind } from './faults.js';
import { namesOf, type PlanSettings, planRound } from './plan.js';
import type { Target } from './records.js';
import { findingLines, isHeld, roundLine, summary } from './report.js';
import { type Cast, type RoundResult, runRound } from './round.js';
import type { Acknowledgement } from './services.js';
import { newTable, TablePlayers } from './tablePlayers.js';
import { makeTargets } from './targets.js';
import { Witnesses } from './witnesses.js';
import { wrongClockMissing } from './wrongClock.js';

const PARTNERS = 3;

interface Options extends PlanSettings {
  readonly rounds: readonly number[];
  readonly seconds: number;
  readonly rate: number;
  readonly connections: number;
  readonly audit: boolean;
  readonly keepGoing: boolean;
  readonly keep: boolean;
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '20' },
      round: { type: 'string' },
      seed: { type: 'string', default: randomBytes(4).toString('hex') },
      faults: { type: 'string' },
      seconds: { type: 'string', default: '86400' },
      ack: { type: 'string' },
      rate: { type: 'string', default: '1200' },
      connections: { type: 'string', default: '32' },
      'no-audit': { type: 'boolean', default: false },
      'keep-going': { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
    },
  });
  const whole = (name: 'rounds' | 'round' | 'seconds' | 'rate' | 'connections'): number => {
    const value = Number(values[name]);
    if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} must be a whole number, 1 or more`);
    return value;
  };
  if (values.ack !== undefined && values.ack !== 'redis' && values.ack !== 'ledger') {
    throw new Error('--ack must be redis or ledger');
  }
  return {
    seed: values.seed,
    names: namesOf(values.faults),
    acknowledgement: values.ack,
    rounds:
      values.round === undefined
        ? Array.from({ length: whole('rounds') }, (_, i) => i + 1)
        : [whole('round')],
    seconds: whole('seconds'),
    rate: whole('rate'),
    connections: whole('connections'),
    audit: !values['no-audit'],
    keepGoing: values['keep-going'],
    keep: values.keep,
  };
}

/**
 * The set-up of the newest stores and processes. Processes that are being started can be ended only after it
 * has resolved.
 */
let settingStage: Promise<unknown> = Promise.resolve();

interface Stage extends Arena, Cast {
  readonly targets: readonly Target[];
  acknowledgement: Acknowledgement;
  witnesses: Witnesses | undefined;
}

async function setStage(
  options: Options,
  acknowledgement: Acknowledgement,
  cleanup: Cleanup,
): Promise<Stage> {
  const isBackedUp = options.names.some((name) => faultKind(name).needsArchive === true);
  const arena = await openArena(cleanup, { keep: false, acknowledgement }, {}, isBackedUp);
  const { stores, fleet, api } = arena;
  const targets = await makeTargets(api, PARTNERS);
  const tables = new TablePlayers(fleet.port, await newTable(api, targets[0]!), options.seed);
  const clients = new Clients({
    port: fleet.port,
    targets,
    connections: options.connections,
    rate: options.rate,
    prefix: options.seed,
  });
  const books = new Books(stores.postgres.url);
  return { ...arena, targets, clients, tables, books, acknowledgement, witnesses: undefined };
}

async function playRound(stage: Stage, round: number, options: Options): Promise<RoundResult> {
  const plan = planRound(round, options);
  stage.crashes.length = 0;
  const isOther = plan.isWitnessed !== (stage.witnesses !== undefined);
  if (isOther || plan.acknowledgement !== stage.acknowledgement) {
    const log = await fetch(`http://127.0.0.1:${stage.fleet.port}/log/policy`);
    const policy = await log.text();
    await stage.fleet.stop();
    await stage.witnesses?.close();
    // The witnesses are new after each restore, because a witness that saw the newer log would report a fork.
    stage.witnesses = plan.isWitnessed ? await Witnesses.start(stage.folder, policy) : undefined;
    const more = stage.witnesses && { LOG_POLICY: stage.witnesses.policy };
    await stage.fleet.start(plan.acknowledgement, more);
    stage.acknowledgement = plan.acknowledgement;
  }
  const result = await runRound(stage, stage, plan, options);
  result.findings.other.push(...stage.crashes);
  return result;
}

/**
 * Notifies every player of all bonuses. Then compares the whole ledger from its first row, and all bonuses,
 * with all answers of the run.
 */
async function reconcileWhole({ stores, clients, targets }: Stage): Promise<string[]> {
  const left = await tellAll(stores, clients, targets);
  if (left > 0) return [`${left} winners are never told of their shares`];
  const bonuses = await judgeBonuses(stores.postgres.url, targets, clients.all);
  console.log(bonuses.summary);
  const { lost, twice, missing, other } = await new Books(stores.postgres.url).reconcile(clients.all);
  return [...lost, ...twice, ...missing, ...other, ...bonuses.wrong];
}

/** Returns the faults that are possible on this machine. */
function possible(names: readonly FaultName[]): readonly FaultName[] {
  const missing = { needsArchive: archivedPostgresMissing(), needsCompiler: wrongClockMissing() };
  for (const why of Object.values(missing))
    if (why !== undefined) console.log(`${why}: faults that need it are left out`);
  return names.filter((name) => {
    const { needsArchive, needsCompiler } = faultKind(name);
    return (
      !(needsArchive && missing.needsArchive !== undefined) &&
      !(needsCompiler && missing.needsCompiler !== undefined)
    );
  });
}

async function play(options: Options, cleanup: Cleanup): Promise<boolean> {
  const results: RoundResult[] = [];
  const deadline = performance.now() + options.seconds * 1000;
  let stage: Stage | undefined;
  let isHolding = true;
  let names = possible(options.names);
  for (const round of options.rounds) {
    if (performance.now() > deadline) break;
    if (stage === undefined) {
      const setting = setStage(
        { ...options, names },
        planRound(round, { ...options, names }).acknowledgement,
        cleanup,
      );
      settingStage = setting;
      stage = await setting;
      const { noDisk } = stage;
      if (noDisk !== undefined) {
        console.log(`Redis has no disk of its own (${noDisk}): faults that fill it are left out`);
        names = names.filter((name) => faultKind(name).needsDisk !== true);
        if (names.length === 0) break;
      }
    }
    const result = await playRound(stage, round, { ...options, names });
    results.push(result);
    console.log(roundLine(result));
    appendFileSync(
      join(stage.folder, 'rounds.log'),
      `ended ${new Date().toISOString()} ${roundLine(result)}\n`,
    );
    if (isHeld(result)) continue;
    isHolding = false;
    for (const line of findingLines(result)) console.log(line);
    await stage.witnesses?.close();
    await stage.close(true);
    console.log(`  data and logs are in ${stage.folder}; again: ${replayOf(round, options)}`);
    stage = undefined;
    if (!options.keepGoing) break;
  }
  if (stage !== undefined) {
    const wrong = await reconcileWhole(stage);
    for (const line of wrong.slice(0, 20)) console.log(`the whole ledger: ${line}`);
    if (wrong.length > 0) isHolding = false;
    await stage.fleet.stop();
    for (const line of stage.crashes) console.log(line);
    if (stage.crashes.length > 0) isHolding = false;
    const isKept = wrong.length > 0 || stage.crashes.length > 0 || options.keep;
    await stage.witnesses?.close();
    await stage.close(isKept);
    if (isKept) console.log(`data and logs are in ${stage.folder}`);
  }
  console.log(`\n${summary(results)}`);
  return isHolding && results.length > 0;
}

function replayOf(round: number, { seed, names, acknowledgement }: Options): string {
  const faults = names.length < namesOf(undefined).length ? ` --faults ${names.join(',')}` : '';
  const ack = acknowledgement === undefined ? '' : ` --ack ${acknowledgement}`;
  const command = `npm run chaos -- machine --seed ${seed}${faults}${ack}`;
  return `${command} --round ${round} (or --rounds ${round}, with those before it)`;
}

async function main(): Promise<void> {
  const options = readOptions();
  console.log(`seed ${options.seed}`);
  const cleanup = new Cleanup();
  let isInterrupted = false;
  const interrupted = (signal: NodeJS.Signals): void => {
    if (isInterrupted) return;
    isInterrupted = true;
    console.log(`${signal}: ending what was started`);
    Promise.allSettled([settingStage])
      .then(() => cleanup.run())
      .finally(() => process.exit(130));
  };
  process.on('SIGINT', interrupted).on('SIGTERM', interrupted);
  let isHolding = false;
  try {
    isHolding = await play(options, cleanup);
  } catch (error) {
    if (!isInterrupted) console.error(error);
  }
  if (isInterrupted) return;
  await cleanup.run();
  process.exit(isHolding ? 0 : 1);
}

await main();
