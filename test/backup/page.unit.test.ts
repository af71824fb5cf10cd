/** Tests that docs/backup.md contains the commands that the backup drill and the chaos runs read from it. */
import { expect, test } from 'vitest';
import { PAGE } from './page.js';

test('docs/backup.md has each step of a backup and a restore in a form that a shell can run', () => {
  expect(PAGE.archiveSettings()).toMatch(/^archive_command = '.*\/archive\/%f'$/m);
  expect(PAGE.baseBackup()).toMatch(/^pg_basebackup -D \/backup\/base /);
  expect(PAGE.dump()).toMatch(/^pg_dump .*\/backup\/spindle\.dump/);
  expect(PAGE.restoreBaseBackup().split('\n').length).toBe(3);
  expect(PAGE.restoreBaseBackup()).toMatch(/restore_command.*\/archive\/%f.*\n?pg_ctl start$/s);
  expect(PAGE.restoreDump()).toMatch(/^pg_restore --dbname "\$DATABASE_URL" .*\/backup\/spindle\.dump$/);
  expect(PAGE.recoverRestored()).toBe('npx spindle recover --restored');
});
