/**
 * `spindle program check`: compares the program's files with the list that its build made
 * (docs/operations.md, "The program check").
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { ProgramFound } from '../../workers/checkProgram.js';
import { PROJECT_ROOT } from '../platform/projectRoot.js';
import { lineOf } from '../platform/secretsInLogs.js';
import { UsageError } from './command.js';

const MANIFEST = 'manifest.sha256';
const SIGNS = { CHANGED: 'changed', MISSING: 'missing', ADDED: 'added' } as const;

/** Returns the SHA-256 of the list of the program's files in hexadecimal; null if there is no list. */
export function manifestHash(): string | null {
  try {
    return createHash('sha256')
      .update(readFileSync(join(PROJECT_ROOT, MANIFEST)))
      .digest('hex');
  } catch {
    return null;
  }
}

export function addProgramCommands(
  program: Command,
  { group, version }: { readonly group: string; readonly version: () => string },
): void {
  const command = program.command('program').description('files of the program').helpGroup(group);
  const check = command
    .command('check')
    .description('compare the files of the program with the list made by its build')
    .option(
      '--manifest <FILE>',
      `file with the list to compare with, such as an approved one (default: ${MANIFEST})`,
    )
    .option('--quiet', 'print nothing if all files match')
    .addHelpText(
      'after',
      `
Prints each changed, missing or added file of dist, lua, the migrations, package.json, package-lock.json and the packages
installed for production. To check without this program, run sha256sum -c ${MANIFEST}, which does not find added files.
Exit status: 0 if all files match, 1 if some differ, 2 without a list or for wrong usage.

Example:
  spindle program check --manifest approved-1.5.0.sha256`,
    )
    .action(async () => {
      process.exitCode = await programCheck({ ...check.optsWithGlobals(), version: version() });
    });
}

async function programCheck(options: {
  readonly manifest?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly version: string;
}): Promise<number> {
  const { manifest, version } = options;
  if (manifest === undefined && !existsSync(join(PROJECT_ROOT, MANIFEST)))
    throw new UsageError(
      `The file ${MANIFEST} does not exist, because this program was not built or runs from a checkout. Build it with npm run build, or use --manifest.`,
    );
  const { default: checkProgram } = await import('../../workers/checkProgram.js');
  let found: ProgramFound;
  try {
    found = checkProgram({
      root: PROJECT_ROOT,
      part: 'all',
      ...(manifest === undefined ? {} : { manifest }),
    });
  } catch (error) {
    throw new UsageError(`Cannot compare with ${manifest ?? MANIFEST}: ${lineOf(error)}`);
  }
  if (found.differing > 0 || options.quiet !== true) {
    const text =
      options.json === true ? `${JSON.stringify({ version, ...found })}\n` : textOf(version, found);
    process.stdout.write(text);
  }
  return found.differing === 0 ? 0 : 1;
}

function textOf(version: string, { manifest, files, differences, differing }: ProgramFound): string {
  const head = `spindle ${version}, manifest ${manifest}: ${files} files, `;
  if (differing === 0) return `${head}all match\n`;
  const lines = differences.map(({ path, what }) => `  ${SIGNS[what].padEnd(8)} ${path}`);
  if (differing > lines.length) lines.push(`  … and ${differing - lines.length} more`);
  return `${head}${differing} ${differing === 1 ? 'differs' : 'differ'}\n${lines.join('\n')}\n`;
}
