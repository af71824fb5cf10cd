/** Finds Prometheus and promtool in PATH, or else unpacks the Debian package into the project's cache. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fetchPackages, hasApt } from '../../src/app/embedded/debianPackages.js';

const run = promisify(execFile);

export interface Programs {
  readonly prometheus: string;
  readonly promtool: string;
  /** Version number, such as 2.42.0. */
  readonly version: string;
}

const fetchedFolder = (root: string): string =>
  join(root, '.cache', `prometheus-${process.platform}-${process.arch}`);
const ADVICE = 'install prometheus 2.42 or later, with promtool, and have both on the PATH';

/**
 * Returns the installed programs, or undefined if there are none.
 * @param root the project's folder
 */
export async function findPrometheus(root: string): Promise<Programs | undefined> {
  return (await runnable('prometheus', 'promtool')) ?? (await inFolder(fetchedFolder(root)));
}

/**
 * Returns the installed programs, or fetches them.
 * @throws Error if they can't be fetched
 */
export async function prometheus(root: string, progress: (line: string) => void): Promise<Programs> {
  const found = await findPrometheus(root);
  if (found !== undefined) return found;
  if (!(await hasApt())) throw new Error(`No Prometheus found: ${ADVICE}`);
  progress('Fetching prometheus …');
  const folder = fetchedFolder(root);
  await fetchPackages(join(root, '.cache'), folder, {
    packages: ['prometheus'],
    runs: async (unpacked) => (await inFolder(unpacked)) !== undefined,
    complaint: `the prometheus of this system's packages does not run: ${ADVICE}`,
  });
  const fetched = await inFolder(folder);
  if (fetched === undefined) throw new Error(`The prometheus in ${folder} does not run: ${ADVICE}`);
  return fetched;
}

const inFolder = (folder: string): Promise<Programs | undefined> =>
  runnable(join(folder, 'usr/bin/prometheus'), join(folder, 'usr/bin/promtool'));

async function runnable(prometheus: string, promtool: string): Promise<Programs | undefined> {
  try {
    await run(promtool, ['--version']);
    const { stdout } = await run(prometheus, ['--version']);
    return { prometheus, promtool, version: /version (\S+?)(?:\+\S*)? /.exec(stdout)?.[1] ?? 'unknown' };
  } catch {
    return undefined;
  }
}

/**
 * Runs promtool in a folder.
 * @throws Error with the output of promtool if it finds a fault
 */
export async function promtool(
  { promtool: file }: Programs,
  cwd: string,
  ...args: string[]
): Promise<string> {
  try {
    const { stdout } = await run(file, args, { cwd });
    return stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`promtool ${args.join(' ')}\n${stdout}${stderr}`);
  }
}
