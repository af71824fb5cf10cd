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
  const command = program.command('program').description("the program's own files").helpGroup(group);
  const check = command
    .command('check')
    .description("compare the program's files with the list that its build made")
    .option('--manifest <FILE>', `another list than ${MANIFEST}, such as one that was approved`)
    .option('--quiet', 'print nothing where all is as listed')
    .addHelpText(
      'after',
      `
Names each file that is changed, missing or added: of dist, lua, the migrations, package.json, package-lock.json and the packages installed for
production. The same without this program, added files aside: sha256sum -c ${MANIFEST}.
Exit status: 0 all as listed, 1 something differs, 2 there is no list, or wrong usage.

Example:
  spindle program check --manifest approved-1.5.0.sha256`,
    )
    .action(async () => {
      process.exitCode = await programCheck({ ...check.optsWithGlobals(), version: version() });
    });
}

/** Checks the program's files. @returns the exit status @throws UsageError if there is no list */
async function programCheck(options: {
  readonly manifest?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly version: string;
}): Promise<number> {
  const { manifest, version } = options;
  if (manifest === undefined && !existsSync(join(PROJECT_ROOT, MANIFEST)))
    throw new UsageError(`There is no ${MANIFEST}: this program was not built, or runs from a checkout`);
  const { default: checkProgram } = await import('../../workers/checkProgram.js');
  let found: ProgramFound;
  try {
    found = checkProgram({
      root: PROJECT_ROOT,
      part: 'all',
      ...(manifest === undefined ? {} : { manifest }),
    });
  } catch (error) {
    throw new UsageError(`${manifest ?? MANIFEST} can't be compared with: ${lineOf(error)}`);
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
  if (differing === 0) return `${head}all as listed\n`;
  const lines = differences.map(({ path, what }) => `  ${SIGNS[what].padEnd(8)} ${path}`);
  if (differing > lines.length) lines.push(`  … and ${differing - lines.length} more`);
  return `${head}${differing} ${differing === 1 ? 'differs' : 'differ'}\n${lines.join('\n')}\n`;
}
