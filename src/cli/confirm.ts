/**
 * Asks for confirmation before a command does harm: something that can't be undone, stops play, or moves much
 * money. `--yes` confirms in advance and is required without a terminal.
 */
import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import type { Command } from 'commander';
import { DeclinedError, UsageError } from './command.js';

export interface Terminal {
  readonly input: Readable & { readonly isTTY?: boolean };
  /** Output for the question. It is not standard output, which another program may read. */
  readonly output: Writable;
}

const STANDARD: Terminal = { input: process.stdin, output: process.stderr };

export const withYes = (command: Command): Command =>
  command.option('--yes', 'skip the confirmation; required without a terminal');

/**
 * @param consequence effect of the command, as sentences; a table may come before them
 * @throws UsageError without a terminal and without --yes; DeclinedError if the answer is not yes
 */
export async function confirm(
  consequence: string,
  { yes }: { readonly yes?: unknown },
  { input, output }: Terminal = STANDARD,
): Promise<void> {
  if (yes === true) return;
  if (input.isTTY !== true)
    throw new UsageError(`${consequence} Nothing has changed yet; add --yes to confirm.`);
  const lines = createInterface({ input, output });
  // The input may end before the person answers.
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  try {
    const answer = await Promise.race([lines.question(`${consequence} Continue? [y/N] `), ended]);
    if (!/^y(es)?$/i.test(answer.trim())) throw new DeclinedError('Nothing has changed');
  } finally {
    lines.close();
  }
}
