/** Copies of the build with one fault put in, to see that the checks would find it. */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CheckName } from '../../src/books/audit/report.js';
import { ROOT } from '../support/root.js';

/** What is wrong in a copy: a text that stands exactly once in a file of lua/, dist/ or src/, and what stands there instead. */
export interface Fault {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** Faults that the audit must find. */
export interface Mutation {
  readonly name: string;
  readonly faults: readonly Fault[];
  /** The checks that must have found it. */
  readonly found: readonly CheckName[];
  /** Empty Redis in the middle of it. */
  readonly isWiped?: boolean;
  /** Ids are sent again once Redis has handed them over. */
  readonly isReleased?: boolean;
  /** The partner moves to another cell meanwhile, and what was sent before is sent again. */
  readonly isMoved?: boolean;
  /** The same, there and back, while a front end stands still, which is then sent what was dealt in the other cell. */
  readonly isStopped?: boolean;
}

/** What happens meanwhile. */
export type Going = Pick<Mutation, 'isWiped' | 'isReleased' | 'isMoved' | 'isStopped'>;

/** A fault of a script, by its path in lua/ without the ending. */
export const lua = (file: string, find: string, replace: string): Fault => ({
  file: `lua/${file}.lua`,
  find,
  replace,
});
/** A fault of a source, by its path in src/ without the ending. */
export const source = (file: string, find: string, replace: string): Fault => ({
  file: `src/${file}.ts`,
  find,
  replace,
});
/** A fault of the program, by its path in dist/src/. */
export const built = (file: string, find: string, replace: string): Fault => ({
  file: `dist/src/${file}`,
  find,
  replace,
});

export interface BrokenBuild {
  /** Its root: dist/src/main.js and dist/src/cli/cli.js are in there. */
  readonly root: string;
  remove(): Promise<void>;
}

export async function brokenBuild(faults: readonly Fault[]): Promise<BrokenBuild> {
  const root = await mkdtemp(join(tmpdir(), 'spindle-broken-'));
  for (const part of ['dist', 'lua', join('src', 'postgres', 'migrations'), 'package.json']) {
    await cp(join(ROOT, part), join(root, part), { recursive: true });
  }
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  for (const fault of faults) {
    const path = join(root, fault.file);
    await writeFile(path, withFault(await readFile(path, 'utf8'), fault));
  }
  return { root, remove: () => rm(root, { recursive: true, force: true }) };
}

/** The text of a file with a fault put in. @throws where what the fault replaces does not stand there exactly once */
export function withFault(text: string, { file, find, replace }: Fault): string {
  const parts = text.split(find);
  if (parts.length !== 2) throw new Error(`${file} has «${find}» ${parts.length - 1} times`);
  return parts.join(replace);
}
