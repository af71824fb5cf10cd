/**
 * `npm run bench -- [--seconds 10] [--warm-up 3] [--rounds 3] [--retries 2] [--only a,b,c,d] [--connections 64]
 *                   [--json FILE] [--profile DIR]`
 *
 * Measures four servers with the same load, in turn, one under load at a time:
 *   a  echo     a bare uWebSockets.js server that answers with the same bytes: the lower bound (peers/echo.ts)
 *   b  spindle  the service, whole: a process of its own, Redis with its log synced, Postgres as the ledger
 *   c  fastify  the plain design with the same guarantees (peers/fastify.ts)
 *   d  postgres the plain design without Redis: a transaction a spin (peers/postgres.ts)
 * Prints a table, and appends a line of JSON to bench/results/runs.jsonl or the given file. Ends with 1 where a number
 * is void: an answer that was not 2xx, a spin that is not in the ledger. Needs Linux.
 */
import { execFile } from 'node:child_process';
import { appendFile, mkdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { describeMachine } from './machine.js';
import { requireProc } from './measure.js';
import { Cleanup, ROOT } from './processes.js';
import { compare, isDisturbed, type Run, render, summarise } from './report.js';
import { PAR_SHEET, SERVERS, type ServerLetter } from './servers.js';
import { type LoadSettings, type Measurement, takeTurn } from './turn.js';

const PLAYERS = 1000;
const BLOCK_OUTCOMES = 1_000_000;
const BLOCK_SECONDS = 1;

interface Options extends LoadSettings {
  readonly rounds: number;
  /** How often a turn is taken again because the machine was busy with something else. */
  readonly retries: number;
  readonly letters: readonly ServerLetter[];
  readonly jsonFile: string;
  readonly profileDir: string | undefined;
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '10' },
      'warm-up': { type: 'string', default: '3' },
      rounds: { type: 'string', default: '3' },
      retries: { type: 'string', default: '2' },
      connections: { type: 'string', default: '64' },
      only: { type: 'string', default: Object.keys(SERVERS).join(',') },
      json: { type: 'string', default: join(ROOT, 'bench', 'results', 'runs.jsonl') },
      profile: { type: 'string' },
    },
  });
  const number = (name: 'seconds' | 'warm-up' | 'rounds' | 'connections' | 'retries', least = 1): number => {
    const value = Number(values[name]);
    if (!Number.isInteger(value) || value < least)
      throw new Error(`--${name} must be a whole number, ${least} or more`);
    return value;
  };
  const letters = values.only.split(',').map((letter) => {
    if (!Object.hasOwn(SERVERS, letter)) throw new Error('--only takes letters of a,b,c,d');
    return letter as ServerLetter;
  });
  return {
    seconds: number('seconds'),
    warmUpSeconds: number('warm-up'),
    rounds: number('rounds'),
    retries: number('retries', 0),
    connections: number('connections'),
    players: PLAYERS,
    letters,
    jsonFile: resolve(values.json),
    profileDir: values.profile === undefined ? undefined : resolve(values.profile),
  };
}

/**
 * The servers in turn, so that what drifts hits all of them. A turn in which the machine was busy with something else
 * is taken again, a few times; whether it is depends on that alone, never on what was measured.
 */
async function measureAll(options: Options): Promise<{ taken: Measurement[]; discarded: Measurement[] }> {
  const taken: Measurement[] = [];
  const discarded: Measurement[] = [];
  for (let round = 1; round <= options.rounds; round++) {
    for (const letter of options.letters) {
      for (let retriesLeft = options.retries; ; retriesLeft--) {
        const measurement = await measure(letter, round, options);
        const isLast = !isDisturbed(measurement) || retriesLeft === 0;
        console.log(progressLine(measurement) + (isLast ? '' : '; taken again'));
        (isLast ? taken : discarded).push(measurement);
        if (isLast) break;
      }
    }
  }
  return { taken, discarded };
}

/** One turn; what it started is ended, an interrupt by the user included. */
async function measure(letter: ServerLetter, round: number, options: Options): Promise<Measurement> {
  const cleanup = new Cleanup();
  const interrupted = (): void => {
    cleanup.run().finally(() => process.exit(130));
  };
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  try {
    return await takeTurn(letter, round, options, cleanup, options.profileDir);
  } finally {
    await cleanup.run();
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
  }
}

function progressLine(measurement: Measurement): string {
  const { round, server, spinsPerSecond, load, cpuPerSpin, shares, drainSeconds } = measurement;
  const percent = (share: number): string => `${Math.round(share * 100)} %`;
  return (
    `round ${round}  ${server.padEnd(8)} ${spinsPerSecond.toFixed(0).padStart(6)} spins/s, p99 ${load.p99Ms.toFixed(1)} ms, ` +
    `${cpuPerSpin.total!.toFixed(1)} µs CPU per spin, drained in ${drainSeconds.toFixed(2)} s; of the machine ` +
    `${percent(shares.idle)} idle, ${percent(shares.others)} used by others, ${percent(shares.stolen)} stolen`
  );
}

/** Outcomes per second of each sample PAR sheet (blockMaking.ts). */
async function measureBlockMaking(): Promise<Record<string, number>> {
  const program = join(ROOT, 'dist', 'bench', 'blockMaking.js');
  const args = [program, String(BLOCK_OUTCOMES), String(BLOCK_SECONDS)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return (JSON.parse(stdout) as { outcomesPerSecond: Record<string, number> }).outcomesPerSecond;
}

async function main(): Promise<void> {
  requireProc();
  const options = readOptions();
  const machine = describeMachine();
  const { taken, discarded } = await measureAll(options);
  const { seconds, warmUpSeconds, rounds, connections, players } = options;
  const run: Run = {
    at: new Date().toISOString(),
    machine,
    versions: taken.find(({ versions }) => versions !== undefined)?.versions,
    settings: { seconds, warmUpSeconds, rounds, connections, players, parSheet: PAR_SHEET },
    summaries: summarise(taken),
    ratios: compare(taken),
    blockMaking: await measureBlockMaking(),
    faults: [...taken, ...discarded].flatMap(({ server, round, faults }) =>
      faults.map((fault) => `${server}, round ${round}: ${fault}`),
    ),
    measurements: taken,
    discarded,
  };
  await mkdir(dirname(options.jsonFile), { recursive: true });
  await appendFile(options.jsonFile, `${JSON.stringify(run)}\n`);
  console.log(render(run));
  if (run.faults.length > 0) process.exitCode = 1;
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
