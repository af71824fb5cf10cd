/** Tests the commands of the operators' pages: each line says how to connect, and runs on real stores. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { expect, test } from 'vitest';
import { world } from '../setup/world.js';
import { rawRedis } from '../support/redis.js';
import { cliOf, ROOT } from '../support/root.js';

const page = (name: string): string => readFileSync(join(ROOT, 'docs', name), 'utf8');
/** The commands of a page: the text between backticks, and the lines of shell blocks. */
const commandsOf = (text: string): string[] => [
  ...[...text.matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block]) => block!.split('\n')),
  ...[...text.replace(/^```.*?^```/gms, '').matchAll(/`([^`]+)`/g)].map(([, command]) => command!),
];

const { stores } = world();

test('each command of the runbook and of the backup page for a store says how to connect', () => {
  const all = ['runbook.md', 'backup.md'].flatMap((name) => commandsOf(page(name)));
  const unconnected = all.filter(
    (command) =>
      /^redis-cli (?!-u "\$REDIS_(ADMIN_)?URL")/.test(command) ||
      /^(SELECT |SHOW |CHECKPOINT|CONFIG (GET|SET) [a-z]+ )/.test(command),
  );
  expect(unconnected).toEqual([]);
});

test('each statement of the runbook for the role of the service runs on a real Postgres', async () => {
  const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  try {
    const lines = commandsOf(page('runbook.md')).filter((line) => line.startsWith('psql "$DATABASE_URL"'));
    const statements = lines.flatMap((line) =>
      [...line.matchAll(/ -c (?:'([^']*)'|"([^"]*)")/g)].map(([, plain, quoted]) => plain ?? quoted!),
    );
    expect(statements.length).toBeGreaterThan(8);
    for (const statement of statements) await sql.unsafe(statement);
  } finally {
    await sql.end();
  }
});

test('each redis-cli line of the runbook that only reads runs on a real Redis', async () => {
  const redis = rawRedis(stores.redisUrl);
  try {
    const lines = commandsOf(page('runbook.md'))
      .filter((line) => line.startsWith('redis-cli -u "$REDIS_URL" '))
      .map((line) => line.split(' ').slice(3));
    expect(lines.length).toBeGreaterThan(1);
    for (const [command, ...words] of lines) await redis.call(command!, ...words);
  } finally {
    redis.disconnect();
  }
});

test('the backup page and the help of spindle recover say the same about running processes', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [cliOf(ROOT), 'recover', '--help']);
  const said =
    'Stop the front ends first. A worker that has stopped dealing because of the restore may run; stop one that deals.';
  expect(stdout.replace(/\s+/g, ' ')).toContain(said);
  expect(page('backup.md')).toContain(said);
});
