/** Plays sequences of commands against a running service and shrinks the first sequence that fails. */
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { fundBonus, setBonus } from './bonus.js';
import type { Command, Drawn } from './command.js';
import {
  adjust,
  blockPlayer,
  blockRefused,
  blocksAreInForce,
  everyone,
  moveHas,
  movePartner,
  refusal,
  restart,
  rotateKey,
  segmentRelease,
  suspendGame,
} from './operator.js';
import { voidRaffle } from './raffleVoid.js';
import { compareAll, compareTouched } from './reads.js';
import { Difference, Session, type World } from './session.js';
import { newState, type Setting, SIMPLEST, settings } from './setting.js';
import { judgeReport, makeReport } from './settlement.js';
import { Shared } from './shared.js';
import { buyTicket, chooseOutcome, misnamedId, replay, spinMany, spinSlot } from './spins.js';
import { act, dealRound } from './tables.js';

// biome-ignore lint/suspicious/noExplicitAny: each command has choices of its own
const COMMANDS: readonly Command<any>[] = [
  ...[spinSlot, spinMany, buyTicket, replay, misnamedId, chooseOutcome],
  ...[dealRound, act],
  ...[setBonus, fundBonus],
  ...[adjust, blockPlayer, suspendGame, rotateKey, movePartner, restart, segmentRelease, refusal],
  ...[makeReport, judgeReport, voidRaffle],
];
const BY_NAME = new Map(COMMANDS.map((command) => [command.name, command]));

export interface Sequence {
  readonly setting: Setting;
  readonly commands: readonly Drawn[];
}

export interface Bounds {
  readonly min: number;
  readonly max: number;
}

/**
 * Commands that affect all sequences that are played at the same time. While a failed sequence is shrunk,
 * these commands are part of that sequence.
 */
const SHARED = [restart.name, segmentRelease.name, refusal.name];

/**
 * Draws sequences. Each uses only a subset of the commands, so that the commands of the subset follow each
 * other more often.
 */
function sequences({ min, max }: Bounds): fc.Arbitrary<Sequence> {
  const possible = COMMANDS.filter(({ name }) => !SHARED.includes(name));
  const some = fc.subarray(possible, { minLength: Math.ceil(possible.length / 3) });
  return fc.record({
    setting: settings,
    commands: some.chain((chosen) =>
      fc.array(
        fc.oneof(
          ...chosen.map(({ name, weight, arbitrary }) => ({
            weight,
            arbitrary: arbitrary().map((choice): Drawn => ({ name, choice })),
          })),
        ),
        { minLength: min, maxLength: max, size: 'max' },
      ),
    ),
  });
}

export class EverythingFailure extends Error {}

interface Failed {
  readonly sequence: Sequence;
  readonly error: unknown;
  readonly trace: readonly string[];
  /** Output of the service up to the failure. */
  readonly log: string;
}

/**
 * Plays one sequence with a new partner.
 * @returns the failure, or undefined
 */
async function play(
  world: World,
  { setting, commands }: Sequence,
  events?: Shared,
): Promise<Failed | undefined> {
  const done: Drawn[] = [];
  let session: Session | undefined;
  await events?.enter();
  try {
    const names = new Set(commands.map(({ name }) => name));
    const has = { hasRaffle: names.has(buyTicket.name), hasTable: names.has(dealRound.name) };
    session = new Session(world, await world.client().newPartner({ ...setting.partner }));
    const state = await newState(session, setting, has);
    for (const drawn of commands) {
      const playing = session;
      const event = await events?.pass(async ({ name }) => {
        if (name === refusal.name) await blockRefused(playing, state);
      });
      if (event !== undefined) {
        if (event.name === refusal.name) await blocksAreInForce(session, state);
        done.push(event);
        session.saw(`${event.name}, met`);
        session.trace.push(`— ${event.name}, of all sequences`);
        await compareTouched(session, state, everyone(state));
      }
      done.push(drawn);
      const { name, choice } = drawn;
      const command = BY_NAME.get(name)!;
      if (!command.applies(state, choice, session)) continue;
      session.trace.push(`— ${name} ${JSON.stringify(choice)}`);
      await compareTouched(session, state, await command.run(session, state, choice));
    }
    session.trace.push('— at the end');
    // The audit of all stores requires that every move is finished.
    await moveHas(session, 'finishedAt');
    await compareAll(session, state);
    return undefined;
  } catch (error) {
    // Commands after the failing one are irrelevant to the failure.
    return { sequence: { setting, commands: done }, error, trace: session?.trace ?? [], log: world.log() };
  } finally {
    session?.close();
    events?.leave();
  }
}

/**
 * Yields simpler sequences: first with several successive commands removed (many at first), then with shorter
 * lists in commands, and finally with simpler settings.
 */
function* simpler({ setting, commands }: Sequence): Generator<Sequence> {
  for (let length = Math.ceil(commands.length / 2); length > 0; length = Math.floor(length / 2)) {
    for (let from = commands.length - length; from > -length; from -= length) {
      yield { setting, commands: commands.toSpliced(Math.max(from, 0), length) };
    }
  }
  for (const [place, { name, choice }] of commands.entries()) {
    if (!Array.isArray(choice) || choice.length < 2) continue;
    for (const shorter of [choice.slice(0, choice.length / 2), choice.slice(1)]) {
      yield { setting, commands: commands.with(place, { name, choice: shorter }) };
    }
  }
  for (const [name, value] of Object.entries(SIMPLEST)) {
    if (JSON.stringify(setting[name as keyof Setting]) === JSON.stringify(value)) continue;
    yield { setting: { ...setting, [name]: value }, commands };
  }
}

/**
 * Number of attempts with a smaller sequence. Several are needed, because the seed does not determine the
 * outcomes of spins.
 */
const TRIES = 3;

/** Shrinks a failed sequence as long as it still fails. */
async function shrink(world: World, first: Failed, forMs: number): Promise<Failed> {
  const deadline = performance.now() + forMs;
  let smallest = first;
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const each of simpler(smallest.sequence)) {
      for (let tried = 0; tried < TRIES && !isSmaller && performance.now() < deadline; tried++) {
        const failed = await play(world, each);
        if (failed === undefined) continue;
        smallest = failed;
        isSmaller = true;
      }
      if (isSmaller) break;
    }
  }
  return smallest;
}

export interface RunOptions {
  readonly sequences: number;
  readonly seed: number;
  /** Plays only the sequence with this number, counted from 1. */
  readonly only?: number | undefined;
  readonly bounds: Bounds;
  /** Number of sequences that are played concurrently. */
  readonly atOnce: number;
  /**
   * Number of commands, counted over all sequences, between two events that affect all sequences. A release
   * of request ids, a restart and a Redis that refuses writes take turns. If undefined, there are no such
   * events.
   */
  readonly eventEvery?: number;
  readonly shrinkMs: number;
  readonly onProgress?: (done: number) => void;
  /**
   * Called with each failure. If the function is given, the failed sequence is not shrunk, and the run
   * continues with further sequences.
   */
  readonly onFailure?: (failure: string) => void;
}

/**
 * Runs sequences.
 * @throws EverythingFailure with the seed and the shrunk sequence on the first failure.
 * @returns the number of sequences that were played
 */
export async function runEverything(world: World, options: RunOptions): Promise<number> {
  const { sequences: wanted, seed, bounds, atOnce, shrinkMs, onProgress = () => {}, onFailure } = options;
  const all = fc.sample(sequences(bounds), { seed, numRuns: wanted });
  const events =
    options.eventEvery === undefined
      ? undefined
      : new Shared(options.eventEvery, [
          { drawn: { name: segmentRelease.name, choice: null }, happen: () => world.requestIds() },
          { drawn: { name: restart.name, choice: null }, happen: () => world.restart() },
          { drawn: { name: refusal.name, choice: null }, happen: (inside) => world.refusing(inside) },
        ]);
  const { only } = options;
  const last = only ?? all.length;
  let begun = last - (only === undefined ? all.length : 1);
  let ended = 0;
  let failed: Failed | undefined;
  let failedAt = 0;
  const lane = async (): Promise<void> => {
    while (begun < last && failed === undefined) {
      const number = ++begun;
      const failure = await play(world, all[number - 1]!, events);
      const where = `--seed ${seed}, sequence ${number} of ${wanted}`;
      if (failure !== undefined && onFailure !== undefined) onFailure(report(failure, where));
      else if (failure !== undefined && failed === undefined) [failed, failedAt] = [failure, number];
      onProgress(++ended);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  if (failed !== undefined) {
    const smallest = await shrink(world, failed, shrinkMs);
    throw new EverythingFailure(report(smallest, `--seed ${seed}, sequence ${failedAt} of ${wanted}`));
  }
  return ended;
}

const TRACE_MAX = 80;
const LOG_LINES_MAX = 40;

function report({ sequence, error, trace, log }: Failed, where: string): string {
  const text =
    error instanceof Difference ? error.message : error instanceof Error ? error.stack : String(error);
  return [
    `The service differs from the reference (${where}):`,
    text,
    `Setting: ${JSON.stringify(sequence.setting)}`,
    'Commands:',
    ...sequence.commands.map(({ name, choice }, i) => `  ${i + 1}. ${name} ${JSON.stringify(choice)}`),
    `Asked and answered${trace.length > TRACE_MAX ? ', the end of it' : ''}:`,
    ...trace.slice(-TRACE_MAX).map((line) => `  ${line}`),
    'What the service printed, the end of it:',
    ...logLines(log).map((line) => `  ${line}`),
  ].join('\n');
}

/** Selects the log lines among the output. They are JSON, unlike the banner. */
const logLines = (log: string): string[] =>
  log
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .slice(-LOG_LINES_MAX);

export const randomSeed = (): number => randomBytes(4).readUInt32LE() >>> 1;
