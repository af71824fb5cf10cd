/**
 * Reads the commands of docs/backup.md, so that the backup drill and the chaos runs execute exactly what the
 * page says.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../support/root.js';

/** Returns the lines of the shell blocks of docs/backup.md, without the comments that follow a command. */
function shellBlocks(): string[][] {
  const text = readFileSync(join(ROOT, 'docs', 'backup.md'), 'utf8');
  return [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block]) =>
    block!.split('\n').map((line) => line.replace(/ {2,}#.*$/, '').trim()),
  );
}

/**
 * Returns the line of docs/backup.md that begins with a text.
 * @throws Error if there is no such line, or several that differ
 */
function line(begin: string): string {
  const found = new Set(
    shellBlocks()
      .flat()
      .filter((each) => each.startsWith(begin)),
  );
  if (found.size !== 1) throw new Error(`docs/backup.md has ${found.size} commands that begin «${begin}»`);
  return [...found][0]!;
}

/**
 * Returns the lines below a comment in docs/backup.md, up to an empty line.
 * @throws Error if there is no such comment
 */
function below(comment: string): string {
  for (const block of shellBlocks()) {
    const at = block.findIndex((each) => each.startsWith(comment));
    if (at === -1) continue;
    const rest = block.slice(at + 1);
    const end = rest.indexOf('');
    return rest.slice(0, end === -1 ? rest.length : end).join('\n');
  }
  throw new Error(`docs/backup.md has no step «${comment}»`);
}

/** Returns the settings of a Postgres server whose WAL is archived. */
function archiveSettings(): string {
  const text = readFileSync(join(ROOT, 'docs', 'backup.md'), 'utf8');
  const [, settings] = /^```ini\n(.*?)^```/ms.exec(text) ?? [];
  if (settings === undefined) throw new Error('docs/backup.md has no settings of Postgres');
  return settings;
}

export const PAGE = {
  archiveSettings,
  baseBackup: () => line('pg_basebackup'),
  dump: () => line('pg_dump'),
  restoreBaseBackup: () => below('# From base backup and archive:'),
  restoreDump: () => below('# From a dump'),
  recoverRestored: () => line('npx spindle recover --restored'),
} as const;
