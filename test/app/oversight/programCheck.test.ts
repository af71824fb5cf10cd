/**
 * Tests the check of the program's own files: before the first deal, daily, and the consequences of a
 * difference.
 */
import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pino } from 'pino';
import postgres from 'postgres';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../../src/app/config.js';
import { start } from '../../../src/main.js';
import { nameServers } from '../../../src/webhooks/allowedAddresses.js';
import { MANIFEST, manifestOf } from '../../../workers/checkProgram.js';
import { freshStores } from '../../setup/freshStores.js';
import { Client } from '../../support/client.js';
import { copyProgram } from '../../support/programCopy.js';
import { mainOf } from '../../support/root.js';
import { ServerProcess } from '../../support/serverProcess.js';
import { constants, environment, spawnService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const DAY_MS = 86_400_000;
const MAIN = 'dist/src/main.js';
const PACKAGE = 'node_modules/one/index.js';
const FILES: Readonly<Record<string, string>> = {
  [MAIN]: 'run()',
  'lua/deal.lua': 'return 1',
  'src/postgres/migrations/0001_first.sql': 'SELECT 1',
  'package.json': '{}',
  'package-lock.json': JSON.stringify({ packages: { 'node_modules/one': {} } }),
  [PACKAGE]: '1',
};
/** The first check of the packages runs right after the start. */
const SOON = constants({ packagesCheckMs: 100 });
const EMAIL = 'duty@operator.example';

let stores: TestStores;
let books: postgres.Sql;
/** A program of six files, with the list of files that its build made. */
let root: string;

beforeEach(async () => {
  stores = await freshStores();
  books = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  root = mkdtempSync(join(tmpdir(), 'spindle-check-'));
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  list();
});
afterEach(async () => {
  await books.end();
  await stores.drop();
  rmSync(root, { recursive: true, force: true });
});

const list = (): void => writeFileSync(join(root, MANIFEST), manifestOf(root));
const manifest = (of = root): string =>
  createHash('sha256')
    .update(readFileSync(join(of, MANIFEST)))
    .digest('hex');

/** Runs the service in this process with the folder as its program. Its clock can be moved forward. */
async function served(more: NodeJS.ProcessEnv = {}) {
  const lines: { msg: string; level: number; differences?: { path: string }[] }[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  let ahead = 0;
  const settings = { OPERATOR_EMAIL: EMAIL, CLOCK_SKEW_MAX_S: '31536000', ...more };
  const config = { ...readConfig(environment(stores, settings)), root };
  const running = await start(config, log, () => {}, {
    resolve: nameServers(),
    now: () => Date.now() + ahead,
  });
  onTestFinished(() => running.stop());
  const metrics = async (name: string): Promise<string | undefined> => {
    const text = await (await fetch(`http://127.0.0.1:${running.metricsPort}/metrics`)).text();
    return text.split('\n').find((line) => line.startsWith(name));
  };
  return {
    client: new Client(`http://127.0.0.1:${running.port}`),
    lines,
    metrics,
    stop: () => running.stop(),
    nextDay: () => {
      ahead += DAY_MS;
    },
    verified: (value: number) =>
      until(
        async () => (await metrics('spindle_program_verified')) === `spindle_program_verified ${value}`,
        `spindle_program_verified is ${value}`,
      ),
  };
}

const actions = async (like: string) =>
  books<{ action: string; subject: string; before: unknown; after: Record<string, unknown> }[]>`
    SELECT action, subject, before, after FROM audit_log WHERE action LIKE ${like} ORDER BY audit_id`;
const emails = async (): Promise<{ recipient: string; body: { data: { paths: string[] } } }[]> =>
  (
    await books<{ recipient: string; body: string }[]>`
      SELECT recipient, body FROM deliveries JOIN events USING (event_id)
      WHERE event = 'program.check_failed' AND webhook_id IS NULL ORDER BY delivery_id`
  ).map(({ recipient, body }) => ({ recipient, body: JSON.parse(body) }));
const checks = () =>
  books<{ part: string; is_start: boolean; differing: number; files: number; scripts: number }[]>`
    SELECT part, is_start, differing, files, scripts FROM program_checks ORDER BY check_id`;

test('detects a changed byte of the program at the start, reports it everywhere, and continues to deal', async () => {
  appendFileSync(join(root, MAIN), ' ');
  const { client, lines, metrics, stop } = await served();
  expect(await metrics('spindle_program_verified')).toBe('spindle_program_verified 0');
  const line = lines.find(({ msg }) => msg === 'program files differ from the build manifest');
  expect(line).toMatchObject({ level: 60, differing: 1, differences: [{ path: MAIN, what: 'CHANGED' }] });
  expect(await actions('program.check-failed')).toMatchObject([
    { subject: /^process:./, after: { part: 'program', differing: 1, differences: [{ path: MAIN }] } },
  ]);
  expect(await emails()).toMatchObject([{ recipient: EMAIL, body: { data: { paths: [MAIN] } } }]);
  const { body } = await client.operator('GET', '/program-checks');
  expect(body).toMatchObject({
    checks: [{ part: 'program', isStart: true, manifest: manifest(), files: 5, differing: 1 }],
    total: 1,
  });
  const { key } = await client.newPartner();
  const gameId = await client.newGame(key, parSheet('classic-3-reel'));
  expect((await client.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25 })).status).toBe(200);
  // Repeated starts send no second e-mail about the same difference.
  await stop();
  await (await served()).stop();
  expect(await actions('program.check-failed')).toHaveLength(2);
  expect(await emails()).toHaveLength(1);
  appendFileSync(join(root, 'lua/deal.lua'), ' ');
  await (await served()).stop();
  expect((await emails()).map(({ body }) => body.data.paths)).toEqual([[MAIN], [MAIN, 'lua/deal.lua']]);
});

test('with PROGRAM_CHANGED=stop, a start ends before the first deal and names the changed files', async () => {
  appendFileSync(join(root, MAIN), ' ');
  await expect(served({ PROGRAM_CHANGED: 'stop' })).rejects.toThrow(
    `Files of the program differ from its build, and PROGRAM_CHANGED is stop: ${MAIN}`,
  );
  expect(await actions('program.check-failed')).toHaveLength(1);
  expect(await emails()).toHaveLength(1);
  expect(await actions('service.%')).toMatchObject([{ action: 'service.start' }, { action: 'service.stop' }]);
});

test('with PROGRAM_CHANGED=stop, a changed file stops new spins, but no replays, until it is restored', async () => {
  const { client, nextDay, verified } = await served({ ...SOON, PROGRAM_CHANGED: 'stop' });
  const { key } = await client.newPartner();
  const gameId = await client.newGame(key, parSheet('classic-3-reel'));
  const spin = (requestId: string) => client.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25, requestId });
  const first = await spin('first');
  expect(first.status).toBe(200);
  await verified(1);
  writeFileSync(join(root, MAIN), 'rum()');
  nextDay();
  await verified(0);
  expect(await spin('second')).toMatchObject({ status: 503, body: { errorCode: 'KS-5002' } });
  expect(await spin('first')).toMatchObject({ status: 200, text: first.text });
  const ready = await client.request<{ missing: string[] }>('GET', '/statusz');
  expect(ready).toMatchObject({ status: 503, body: { missing: [expect.stringContaining(MAIN)] } });
  writeFileSync(join(root, MAIN), FILES[MAIN]!);
  nextDay();
  await verified(1);
  expect((await spin('second')).status).toBe(200);
  await until(async () => (await client.request('GET', '/statusz')).status === 200, 'it is ready again');
  await until(async () => (await checks()).some(({ scripts }) => scripts > 5), 'scripts were checked, too');
});

test('detects at the next check that the list of files was rewritten to match changed files', async () => {
  const { nextDay, verified } = await served(SOON);
  writeFileSync(join(root, MAIN), 'rum()');
  list();
  nextDay();
  await verified(0);
  await until(async () => (await actions('program.check-failed')).length > 0, 'it is in the audit log');
  const failed = await actions('program.check-failed');
  expect(failed[0]?.after.differences).toEqual([{ path: MANIFEST, what: 'CHANGED' }]);
});

test('checks the installed packages soon after the start, separately from the program', async () => {
  writeFileSync(join(root, PACKAGE), '2');
  const { verified } = await served(SOON);
  await verified(0);
  await until(async () => (await checks()).length === 2, 'both checks are written down');
  expect(await actions('program.check-failed')).toMatchObject([
    { after: { part: 'packages', differences: [{ path: PACKAGE, what: 'CHANGED' }] } },
  ]);
  expect(await checks()).toMatchObject([
    { part: 'program', is_start: true, differing: 0, files: 5 },
    { part: 'packages', is_start: false, differing: 1, files: 1 },
  ]);
});

test('records each new build once in the audit log and the public log, with the previous build', async () => {
  const version = readConfig(environment(stores)).version;
  const [one, other] = await (async () => {
    const hashes: string[] = [];
    for (const text of ['run()', 'run(2)']) {
      writeFileSync(join(root, MAIN), text);
      list();
      hashes.push(manifest());
      for (let i = 0; i < 2; i++) {
        const { client, metrics, stop } = await served();
        const { key } = await client.newPartner();
        expect((await client.partner('GET', '/version', key)).body.manifest).toBe(manifest());
        expect(await metrics('spindle_program_info')).toBe(
          `spindle_program_info{version="${version}",manifest="${manifest()}"} 1`,
        );
        await stop();
      }
    }
    return hashes;
  })();
  const [first, second] = [one, other].map((hash) => ({ version, manifest: hash }));
  expect((await actions('program.%')).map(({ before, after }) => ({ before, after }))).toEqual([
    { before: null, after: first },
    { before: first, after: second },
  ]);
  const logged = () => books<{ body: object }[]>`
    SELECT body FROM log_notices WHERE name LIKE 'program %' AND log_index IS NOT NULL ORDER BY notice_id`;
  // A worker that is stopping appends nothing more to the public log, so the next worker appends the record.
  await served();
  await until(async () => (await logged()).length === 2, 'the public log has both');
  expect((await logged()).map(({ body }) => body)).toMatchObject([
    { type: 'program', at: expect.any(String), ...first },
    { type: 'program', at: expect.any(String), ...second },
  ]);
});

test('reports a program without a list of files as unverified, and warns if the stores are external', async () => {
  rmSync(join(root, MANIFEST));
  const { client, lines, metrics } = await served({ PROGRAM_CHANGED: 'stop' });
  expect(await metrics('spindle_program_verified')).toBe('spindle_program_verified -1');
  expect(lines.map(({ msg }) => msg)).toContain(
    'program files are not verified because there is no manifest.sha256',
  );
  const { key } = await client.newPartner();
  expect((await client.partner('GET', '/version', key)).body.manifest).toBeNull();
  expect(await checks()).toMatchObject([{ differing: 0, files: 0 }]);
});

test('forbids changing or removing a program check', async () => {
  await (await served()).stop();
  for (const change of ["UPDATE program_checks SET version = ''", 'DELETE FROM program_checks'])
    await expect(books.unsafe(change)).rejects.toThrow('are kept as they were written');
  await expect(books.unsafe('TRUNCATE program_checks')).rejects.toThrow('are kept as they were written');
});

test('verifies a release that was unpacked elsewhere, and with PROGRAM_CHANGED=stop ends the start if a file differs', async () => {
  const release = copyProgram();
  onTestFinished(() => rmSync(release, { recursive: true, force: true }));
  const settings = { ...SOON, PROGRAM_CHANGED: 'stop' };
  const service = await spawnService(environment(stores, settings), [], release);
  onTestFinished(() => service.stop());
  expect(await service.scrape()).toContain('\nspindle_program_verified 1\n');
  await until(async () => (await checks()).length === 2, 'the packages are checked');
  for (const { differing, files } of await checks()) {
    expect(differing).toBe(0);
    expect(files).toBeGreaterThan(100);
  }
  await service.end();
  const changed = 'dist/src/app/program/banner.js';
  appendFileSync(join(release, changed), ' ');
  const stopped = ServerProcess.launch({ env: environment(stores, settings), program: mainOf(release) });
  expect(await stopped.ended).toBe(1);
  expect(stopped.output()).toContain(
    `spindle: Files of the program differ from its build, and PROGRAM_CHANGED is stop: ${changed}\n`,
  );
});
