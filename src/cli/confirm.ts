/** Asks before a command does what can't be undone. `--yes` answers in advance; without a terminal nobody could answer. */
import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import type { Command } from 'commander';
import { DeclinedError, UsageError } from './command.js';

export interface Terminal {
  readonly input: Readable & { readonly isTTY?: boolean };
  /** Not the standard output: that is what another program may read. */
  readonly output: Writable;
}

const STANDARD: Terminal = { input: process.stdin, output: process.stderr };

/** A command that does what can't be undone. */
export const withYes = (command: Command): Command =>
  command.option('--yes', "do what can't be undone without a question");

/**
 * @param consequence what is done, as a sentence
 * @throws UsageError where nobody can be asked; DeclinedError where the answer is not yes
 */
export async function confirm(
  consequence: string,
  { yes }: { readonly yes?: unknown },
  { input, output }: Terminal = STANDARD,
): Promise<void> {
  if (yes === true) return;
  if (input.isTTY !== true) throw new UsageError(`${consequence} This can't be undone: use --yes to do it`);
  const lines = createInterface({ input, output });
  // The input may end in place of an answer.
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  try {
    const answer = await Promise.race([lines.question(`${consequence} Do it? [y/N] `), ended]);
    if (!/^y(es)?$/i.test(answer.trim())) throw new DeclinedError('Nothing is changed');
  } finally {
    lines.close();
  }
}
