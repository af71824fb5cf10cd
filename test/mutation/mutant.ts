/**
 * Makes mutants: copies of the build with one deliberate fault each, to check that tests and audit would find
 * the fault.
 */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import type { CheckName } from '../../src/books/audit/report.js';
import { ROOT } from '../support/root.js';

/** A fault: a text that occurs exactly once in a file of lua/, dist/ or src/, and its replacement. */
export interface Fault {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface Mutation {
  readonly name: string;
  readonly faults: readonly Fault[];
  /** Names of the audit's checks that must report the fault. */
  readonly found: readonly CheckName[];
  /** True to empty Redis after half of the spins. */
  readonly isWiped?: boolean;
  /** True to send request ids again after Redis has released them. */
  readonly isReleased?: boolean;
  /** True to move the partner to another cell during the spins, and to repeat the earlier requests. */
  readonly isMoved?: boolean;
  /**
   * True to move the partner to another cell and back while a front end is paused. That front end then gets
   * the requests that the partner sent in the other cell.
   */
  readonly isStopped?: boolean;
}

/** Events that happen during the spins. */
export type Going = Pick<Mutation, 'isWiped' | 'isReleased' | 'isMoved' | 'isStopped'>;

/** Defines a deliberate fault in a Lua script, which is given by its path in lua/ without the extension. */
export const lua = (file: string, find: string, replace: string): Fault => ({
  file: `lua/${file}.lua`,
  find,
  replace,
});
/** Defines a deliberate fault in a source file, which is given by its path in src/ without the extension. */
export const source = (file: string, find: string, replace: string): Fault => ({
  file: `src/${file}.ts`,
  find,
  replace,
});
/**
 * Defines a deliberate fault in a file of the built program, which is given by its path in dist/src/. The
 * text to replace is that of the source without its types.
 */
export const built = (file: string, find: string, replace: string): Fault => ({
  file: `dist/src/${file}`,
  find,
  replace,
});

export interface BrokenBuild {
  /** Root folder of the copy with dist/src/main.js and dist/src/cli/cli.js. */
  readonly root: string;
  remove(): Promise<void>;
}

export async function brokenBuild(faults: readonly Fault[]): Promise<BrokenBuild> {
  const root = await mkdtemp(join(tmpdir(), 'spindle-broken-'));
  for (const part of ['dist', 'lua', join('src', 'postgres', 'migrations'), 'package.json']) {
    await cp(join(ROOT, part), join(root, part), { recursive: true });
  }
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  const texts = new Map<string, string>();
  for (const fault of faults) {
    texts.set(fault.file, withFault(texts.get(fault.file) ?? (await textOf(fault.file)), fault));
  }
  for (const [file, text] of texts) await writeFile(join(root, file), text);
  return { root, remove: () => rm(root, { recursive: true, force: true }) };
}

/** The target language version is arbitrary, because it does not change the text of a statement. */
const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };

/** Returns the text of a file that a fault names. For a file of dist this is the source without types. */
export async function textOf(file: string): Promise<string> {
  const source = file.replace(/^dist\/(.*)\.js$/, '$1.ts');
  const text = await readFile(join(ROOT, source), 'utf8');
  return source === file ? text : ts.transpileModule(text, { compilerOptions }).outputText;
}

/**
 * Returns the text of a file with a fault put into it.
 * @throws if the text to replace does not occur exactly once
 */
export function withFault(text: string, { file, find, replace }: Fault): string {
  const parts = text.split(find);
  if (parts.length !== 2) throw new Error(`${file} has «${find}» ${parts.length - 1} times`);
  return parts.join(replace);
}
