/**
 * `npm run sizes [-- ROOT]`: the longest file and function of a project, and how many are over the limits.
 * `npm run sizes -- --shrink` takes out of allowed.json what is within the limits, and lowers what has shrunk.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../support/root.js';
import { FILE_LINES_MAX, FUNCTION_LINES_MAX, type Length, lengths, MEASURED } from './lengths.js';

type Allowed = Record<'files' | 'functions', Record<string, number>>;

function print(root: string): void {
  for (const folders of [...MEASURED.map((folder) => [folder]), MEASURED]) {
    const { files, functions } = lengths(root, folders);
    const [file] = files;
    const [longest] = functions;
    console.log(`${folders.join(', ')}: ${files.length} files`);
    console.log(`  longest file       ${file?.name ?? 'none'} (${file?.lines ?? 0} lines)`);
    console.log(`  longest function   ${longest?.name ?? 'none'} (${longest?.lines ?? 0} lines)`);
    console.log(`  files over ${FILE_LINES_MAX}     ${over(files, FILE_LINES_MAX)}`);
    console.log(`  functions over ${FUNCTION_LINES_MAX}  ${over(functions, FUNCTION_LINES_MAX)}`);
  }
}

const over = (measured: readonly Length[], limit: number): number =>
  measured.filter(({ lines }) => lines > limit).length;

function shrink(): void {
  const path = join(ROOT, 'test', 'tidy', 'allowed.json');
  const allowed = JSON.parse(readFileSync(path, 'utf8')) as Allowed;
  const { files, functions } = lengths(ROOT);
  const still = (list: Record<string, number>, measured: readonly Length[], limit: number) => {
    const longest = new Map([...measured].reverse().map(({ name, lines }) => [name, lines]));
    return Object.fromEntries(
      Object.entries(list)
        .map(([name, lines]) => [name, Math.min(lines, longest.get(name) ?? 0)] as const)
        .filter(([, lines]) => lines > limit),
    );
  };
  const shrunk: Allowed = {
    files: still(allowed.files, files, FILE_LINES_MAX),
    functions: still(allowed.functions, functions, FUNCTION_LINES_MAX),
  };
  writeFileSync(path, `${JSON.stringify(shrunk, undefined, 2)}\n`);
}

const [argument] = process.argv.slice(2);
if (argument === '--shrink') shrink();
else print(argument ?? ROOT);
