/**
 * `npm run test:model -- [--sequences 20000] [--seed S] [--only N] [--commands 15] [--at-once 8]
 *                      [--thorough] [--keep-going]`
 *
 * Plays random sequences of all commands against a real service that is restarted and releases request ids
 * meanwhile, and compares the reads with the reference; with `--thorough` it compares all reads after each
 * command. The run ends at the first difference and shrinks its sequence. With `--keep-going` it prints each
 * failing sequence unshrunk and continues. A seed repeats the same sequences, and `--only` plays one of them.
 * Exit status 0 means that nothing differed and the audit found nothing.
 */
import { parseArgs } from 'node:util';
import { runToEnd } from '../../support/cleanup.js';
import { auditFindings } from '../../support/communal.js';
import { ownStores } from '../../support/stores.js';
import { EverythingFailure, randomSeed, runEverything } from './run.js';
import { newWorld } from './world.js';

const SHRINK_MS = 300_000;
const SAY_EVERY = 100;
/** Number of commands between two restarts of the service or releases of request ids. */
const EVENT_EVERY = 400;

const { values } = parseArgs({
  options: {
    sequences: { type: 'string', default: '20000' },
    seed: { type: 'string', default: String(randomSeed()) },
    only: { type: 'string' },
    commands: { type: 'string', default: '15' },
    'at-once': { type: 'string', default: '8' },
    thorough: { type: 'boolean', default: false },
    'keep-going': { type: 'boolean', default: false },
  },
});
const whole = (name: 'sequences' | 'seed' | 'only' | 'commands' | 'at-once', least: number): number => {
  const value = Number(values[name]);
  if (!Number.isSafeInteger(value) || value < least) {
    throw new Error(`--${name} must be a whole number, ${least} or more`);
  }
  return value;
};

await runToEnd(async (cleanup) => {
  const seed = whole('seed', 0);
  const bounds = { min: 5, max: whole('commands', 5) };
  console.log(`seed ${seed}`);
  const stores = await ownStores();
  cleanup.add(() => stores.drop());
  let isHeld = true;
  const onFailure = (failure: string): void => {
    isHeld = false;
    console.log(`${failure}\n`);
  };
  const world = await newWorld(stores, { isThorough: values.thorough });
  cleanup.add(() => world.end());
  const only = values.only === undefined ? undefined : whole('only', 1);
  const sequences = Math.max(whole('sequences', 1), only ?? 1);
  const onProgress = (done: number): void => {
    if (done % SAY_EVERY === 0 || done === sequences) console.log(`${done} of ${sequences} sequences`);
  };
  const atOnce = whole('at-once', 1);
  const options = {
    sequences,
    seed,
    only,
    bounds,
    atOnce,
    eventEvery: EVENT_EVERY,
    shrinkMs: SHRINK_MS,
    onProgress,
  };
  try {
    await runEverything(world, values['keep-going'] ? { ...options, onFailure } : options);
  } catch (error) {
    if (!(error instanceof EverythingFailure)) throw error;
    onFailure(error.message);
  }
  for (const [what, times] of [...world.seen].sort()) console.log(`  ${what}: ${times}`);
  const findings = await auditFindings(stores);
  for (const finding of findings) console.log('audit:', finding);
  return isHeld && findings.length === 0;
});
