/**
 * `spindle verify-round`: proves an ended blackjack round from data that the service has published. Contacts
 * no service.
 */
import { readFileSync } from 'node:fs';
import { Compile } from '#typebox/compile';
import { EndedRound, HEX_32, roundFaults } from '../domain/games/roundProof.js';
import { schemaFaults } from '../domain/validation.js';
import { lineOf } from '../platform/secretsInLogs.js';
import { UsageError } from './command.js';
import { printable } from './output.js';

const MESSAGES = { [HEX_32]: 'must be 32 bytes as 64 lowercase hexadecimal digits' };
const validator = Compile(EndedRound);

/**
 * An empty list means that the round is proven.
 * @param published commitment shown when the round was dealt
 */
export function verifyRound(value: unknown, published?: string): string[] {
  if ((value as { status?: unknown } | null)?.status === 'OPEN')
    return [
      'This round is still open. The seed that proves its cards is revealed after the round has ended.',
    ];
  const wrong = schemaFaults(validator, value, MESSAGES)?.faults ?? [];
  if (wrong.length > 0) return wrong.map(({ path, message }) => `${path || 'The file'} ${message}`);
  const round = value as EndedRound;
  const faults = roundFaults(round);
  if (published !== undefined && published !== round.shoe.commitment) {
    faults.unshift(exchanged(published, round.shoe.commitment));
  }
  return faults;
}

/** @returns the exit status: 0 if proven, 1 if not */
export function verifyRoundFile(
  file: string,
  options: { readonly commitment?: string; readonly json?: boolean },
): number {
  const published = publishedOf(options);
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file === '-' ? 0 : file, 'utf8'));
  } catch (error) {
    throw new UsageError(`Cannot read ${file}: ${lineOf(error)}`);
  }
  const faults = verifyRound(value, published);
  if (faults.length > 0) return told(faults, undefined, { json: options.json, published });
  const { roundId, gameId, shoe, actions } = value as EndedRound;
  const proven = { roundId, gameId, index: shoe.index, actions: actions.length, commitment: shoe.commitment };
  return told(faults, proven, { json: options.json, published });
}

interface ProvenRound {
  readonly roundId: string;
  readonly gameId: number;
  readonly index: number;
  readonly actions: number;
  readonly commitment: string;
}

/** Parses the option --commitment. */
export function publishedOf({ commitment }: { readonly commitment?: string }): string | undefined {
  const published = commitment?.toLowerCase();
  if (published !== undefined && !new RegExp(HEX_32).test(published))
    throw new UsageError('--commitment must be 64 hexadecimal digits');
  return published;
}

/**
 * Prints the result of the verification.
 * @returns the exit status
 */
export function told(
  faults: readonly string[],
  proven: ProvenRound | undefined,
  { json, published }: { readonly json: boolean | undefined; readonly published: string | undefined },
): number {
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  const isProven = faults.length === 0 && proven !== undefined;
  if (json === true) {
    say(JSON.stringify({ isProven, isAgainstPublished: published !== undefined, faults }));
  } else if (!isProven) {
    say('NOT PROVEN');
    for (const fault of faults) say(`  ${printable(fault)}`);
  } else {
    const { roundId, gameId, index, actions, commitment } = proven;
    say(`PROVEN: round ${roundId}, game ${gameId}, shoe ${index}, ${actions} actions`);
    say(`  commitment ${commitment}`);
    say('  The rules and seed match the commitment; the seed and actions give every card and the payout.');
    if (published === undefined) {
      say(
        '  Compare this commitment with the one in the response to the deal, or pass that one with --commitment.',
      );
      say('  Only this comparison proves that the shoe has not been replaced since.');
    }
  }
  return isProven ? 0 : 1;
}

/** Returns the fault of a round whose commitment differs from the one that was shown at the deal. */
export const exchanged = (published: string, found: string): string =>
  `this is not the dealt shoe: the commitment at the deal was ${published}, but the file has ${found}`;
