/** Runs sequences of commands against a running service, and makes the first that fails smaller. */
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import type { Client } from '../../support/client.js';
import { fundBonus, setBonus } from './bonus.js';
import type { Command, Drawn } from './command.js';
import {
  adjust,
  blockPlayer,
  handOver,
  moveHas,
  movePartner,
  restart,
  rotateKey,
  suspendGame,
} from './operator.js';
import { compareAll, compareTouched } from './reads.js';
import { Difference, Session, type World } from './session.js';
import { newState, type Setting, settings } from './setting.js';
import { judgeReport, makeReport } from './settlement.js';
import { buyTicket, chooseOutcome, misnamedId, replay, spinMany, spinSlot } from './spins.js';
import { act, dealRound } from './tables.js';

// biome-ignore lint/suspicious/noExplicitAny: each command has choices of its own
const COMMANDS: readonly Command<any>[] = [
  ...[spinSlot, spinMany, buyTicket, replay, misnamedId, chooseOutcome],
  ...[dealRound, act],
  ...[setBonus, fundBonus],
  ...[adjust, blockPlayer, suspendGame, rotateKey, movePartner, restart, handOver],
  ...[makeReport, judgeReport],
];
const BY_NAME = new Map(COMMANDS.map((command) => [command.name, command]));

/** What one sequence is. */
export interface Sequence {
  readonly setting: Setting;
  readonly commands: readonly Drawn[];
}

export interface Bounds {
  readonly min: number;
  readonly max: number;
}

function sequences({ min, max }: Bounds, isAlone: boolean): fc.Arbitrary<Sequence> {
  const possible = COMMANDS.filter((command) => isAlone || (command !== restart && command !== handOver));
  const drawn = fc.oneof(
    ...possible.map(({ name, weight, arbitrary }) => ({
      weight,
      arbitrary: arbitrary().map((choice): Drawn => ({ name, choice })),
    })),
  );
  return fc.record({
    setting: settings,
    commands: fc.array(drawn, { minLength: min, maxLength: max, size: 'max' }),
  });
}

/** The service did not do what the reference does. */
export class EverythingFailure extends Error {}

interface Failed {
  readonly sequence: Sequence;
  readonly error: unknown;
  readonly trace: readonly string[];
}

/** Plays one sequence with a partner of its own. @returns how it failed, if it did */
async function play(world: World, sequence: Sequence): Promise<Failed | undefined> {
  const { setting, commands } = sequence;
  let session: Session | undefined;
  let done = 0;
  try {
    const client: Client = world.client();
    const names = new Set(commands.map(({ name }) => name));
    const hasRaffle = names.has(buyTicket.name);
    const hasTable = names.has(dealRound.name);
    const partner = await client.newPartner({ ...setting.partner });
    session = new Session(world, partner);
    const state = await newState(client, partner, setting, { hasRaffle, hasTable });
    for (const { name, choice } of commands) {
      done++;
      const command = BY_NAME.get(name)!;
      if (!command.applies(state, choice, session)) continue;
      session.trace.push(`— ${name} ${JSON.stringify(choice)}`);
      await compareTouched(session, state, await command.run(session, state, choice));
    }
    session.trace.push('— at the end');
    // An audit of all stores wants every move to be over.
    await moveHas(session, 'finishedAt');
    await compareAll(session, state);
    return undefined;
  } catch (error) {
    // What comes after the command that failed has no part in it.
    return {
      sequence: { setting, commands: commands.slice(0, done) },
      error,
      trace: session?.trace ?? [],
    };
  }
}

/** Leaves out commands, many at first and single ones in the end, as long as it fails. */
async function shrink(world: World, first: Failed, forMs: number): Promise<Failed> {
  const deadline = performance.now() + forMs;
  let smallest = first;
  let length = Math.ceil(first.sequence.commands.length / 2);
  while (length > 0 && performance.now() < deadline) {
    const { setting, commands } = smallest.sequence;
    for (let from = commands.length - length; from >= 0 && performance.now() < deadline; from -= length) {
      const fewer = smallest.sequence.commands.toSpliced(from, length);
      smallest = (await play(world, { setting, commands: fewer })) ?? smallest;
    }
    length = length === 1 ? 0 : Math.ceil(length / 2);
  }
  return smallest;
}

export interface RunOptions {
  readonly sequences: number;
  readonly seed: number;
  readonly bounds: Bounds;
  /** Sequences that are played side by side; 1 where the world is a sequence's alone. */
  readonly atOnce: number;
  readonly shrinkMs: number;
  readonly onProgress?: (done: number) => void;
  /** Takes each failure, unshrunk, and lets the run go on. */
  readonly onFailure?: (failure: string) => void;
}

/** @throws EverythingFailure on the first sequence that fails, with its seed, made as small as it gets. @returns how many were played */
export async function runEverything(world: World, options: RunOptions): Promise<number> {
  const { sequences: wanted, seed, bounds, atOnce, shrinkMs, onProgress = () => {}, onFailure } = options;
  const isAlone = world.restart !== undefined;
  const all = fc.sample(sequences(bounds, isAlone), { seed, numRuns: wanted });
  let begun = 0;
  let ended = 0;
  let failed: Failed | undefined;
  let failedAt = 0;
  const lane = async (): Promise<void> => {
    while (begun < all.length && failed === undefined) {
      const number = ++begun;
      const failure = await play(world, all[number - 1]!);
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

function report({ sequence, error, trace }: Failed, where: string): string {
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
  ].join('\n');
}

export const randomSeed = (): number => randomBytes(4).readUInt32LE() >>> 1;
