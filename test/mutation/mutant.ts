/** Copies of the build with one fault put in, to see that the checks would find it. */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../support/root.js';

/** What is wrong in a copy: a text that stands exactly once in a file of lua/ or dist/, and what stands there instead. */
export interface Fault {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface BrokenBuild {
  /** Its root: dist/src/main.js and dist/src/cli.js are in there. */
  readonly root: string;
  remove(): Promise<void>;
}

/** @throws where the text does not stand there exactly once: the fault must follow the code. */
export async function brokenBuild(faults: readonly Fault[]): Promise<BrokenBuild> {
  const root = await mkdtemp(join(tmpdir(), 'spindle-broken-'));
  for (const part of ['dist', 'lua', join('src', 'postgres', 'migrations'), 'package.json']) {
    await cp(join(ROOT, part), join(root, part), { recursive: true });
  }
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  for (const { file, find, replace } of faults) {
    const text = await readFile(join(root, file), 'utf8');
    const parts = text.split(find);
    if (parts.length !== 2) throw new Error(`${file} has «${find}» ${parts.length - 1} times`);
    await writeFile(join(root, file), parts.join(replace));
  }
  return { root, remove: () => rm(root, { recursive: true, force: true }) };
}
