/**
 * Tests `spindle api` and `operator`, and the commands for partners `spindle webhooks manage`, `listen` and
 * `sandbox`. The built program runs against a service.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { world } from '../setup/world.js';
import { OPERATOR_KEY } from '../support/client.js';
import { register } from '../support/receiver.js';
import { cliOf, ROOT } from '../support/root.js';
import { constants } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import { pause, until } from '../support/wait.js';

/** Equals EXIT_WITHIN_MS of the command. */
const HELD_UP_MS = 1000;

const { service, partner } = world(constants({ webhookRetryDelaysMs: [20] }));
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'spindle-cli-'));
  writeFileSync(join(folder, 'key'), `${partner.key}\n`);
  writeFileSync(join(folder, 'wrong'), 'operator');
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
});

function launch(...args: string[]) {
  const env = { PATH: process.env.PATH, SPINDLE_URL: service.base, OPERATOR_API_KEY: OPERATOR_KEY };
  return spawn(process.execPath, [cliOf(ROOT), ...args], { cwd: folder, env });
}

function begin(...args: string[]): { child: ChildProcess; output: { out: string; error: string } } {
  const child = launch(...args);
  const output = { out: '', error: '' };
  child.stdout.on('data', (chunk: Buffer) => {
    output.out += chunk;
  });
  child.stderr.on('data', (chunk: Buffer) => {
    output.error += chunk;
  });
  return { child, output };
}

async function cli(...args: string[]): Promise<{ status: number; out: string; error: string }> {
  const { child, output } = begin(...args);
  const [status] = (await once(child, 'close')) as [number];
  return { status, ...output };
}

test('spindle api lists API versions with their users, announces a sunset, and prints refusals', async () => {
  const wrong = await cli('api', 'deprecate', 'v1', '--sunset', '2099-02-30', '--yes');
  expect(wrong).toMatchObject({
    status: 1,
    out: '',
    error: expect.stringMatching(/^KS-4101 .*\n {2}\/sunsetAt /),
  });
  expect((await cli('api', 'deprecate', 'v1')).status).toBe(2);
  expect(await cli('api', 'deprecate', 'v9', '--sunset', '2099-01-01', '--yes')).toMatchObject({
    status: 1,
    error: expect.stringMatching(/^KS-4215 /),
  });
  const args = ['--sunset', '2099-01-01', '--successor', 'v2', '--migration-url', 'https://example.com/v2'];
  const announced = await cli('api', 'deprecate', 'v1', ...args, '--json', '--yes');
  expect([announced.status, announced.error]).toEqual([0, '']);
  expect(JSON.parse(announced.out)).toMatchObject({
    version: 'v1',
    status: 'DEPRECATED',
    sunsetAt: '2099-01-01T00:00:00.000Z',
    successor: 'v2',
    migrationUrl: 'https://example.com/v2',
  });
  const listed = await cli('api', 'list');
  expect([listed.status, listed.error]).toEqual([0, '']);
  expect(listed.out).toMatch(/^version +v1$/m);
  expect(listed.out).toMatch(/^sunsetAt +2099-01-01T00:00:00\.000Z$/m);
  expect(listed.out).toMatch(/^ *id {2}slug +last used +requests 24 h$/m);
});

test('spindle operator issues, lists, rotates and revokes keys, and names the role that an auditor lacks', async () => {
  const issued = await cli('operator', 'issue', 'jane.doe', '--role', 'auditor', '--json');
  expect([issued.status, issued.error]).toEqual([0, expect.stringMatching(/shown only once/)]);
  const { apiKey } = JSON.parse(issued.out);
  expect(apiKey).toMatch(/^kso_[\w-]{43}$/);
  writeFileSync(join(folder, 'jane'), `${apiKey}\n`);
  const asJane = ['--key-file', join(folder, 'jane')];
  const listed = await cli('operator', 'list', ...asJane);
  expect([listed.status, listed.error]).toEqual([0, '']);
  expect(listed.out).toMatch(/^name +role +begins with +status +key issued +expires$/m);
  expect(listed.out).toMatch(/^jane\.doe +auditor +kso_\S{6} +active +\S+Z +-$/m);
  expect(await cli('operator', 'revoke', 'jane.doe', ...asJane, '--yes')).toMatchObject({
    status: 1,
    error: expect.stringMatching(
      /^KS-4116 .*\n.*This operation needs the role admin, but jane\.doe has the role auditor/,
    ),
  });
  const rotated = await cli('operator', 'rotate', 'jane.doe', '--expires', '2099-01-01T00:00:00Z', '--yes');
  expect(rotated.out).toMatch(/^expiresAt +2099-01-01T00:00:00\.000Z$/m);
  expect(rotated.out).not.toContain(apiKey);
  expect((await cli('operator', 'list', ...asJane)).error).toMatch(/^KS-4002 /);
  expect((await cli('operator', 'revoke', 'jane.doe', '--yes')).out).toBe('The key is revoked.\n');
  expect((await cli('operator', 'issue', 'john')).status).toBe(2);
});

test('the commands of spindle accept partner slugs, and show games, spins, statements, reports and the audit log', async () => {
  const { partnerId, key } = await service.newPartner({ slug: 'acme', openingBalanceUsd: 10 });
  const gameId = await service.newGame(key, parSheet('classic-3-reel'));
  const { body: game } = await service.operator<{ configName: string }>('GET', `/games/${gameId}`);
  const body = { gameId, playerId: 'alice', wagerUsd: 0.25, requestId: 'spin-1' };
  const spinId = String((await service.spin(key, body)).body.spinId);
  const today = new Date().toISOString().slice(0, 10);
  const [games, shown, spin, statement, made, none, absent] = await Promise.all([
    cli('game', 'list', '--partner', 'acme'),
    cli('game', 'show', `acme/${game.configName}`, '--json'),
    cli('spin', 'show', spinId),
    cli('player', 'statement', 'acme', 'alice', '--limit', '1'),
    cli('settlement', 'make', 'acme', today, '--json'),
    cli('partner', 'show', 'nobody'),
    cli('game', 'show', 'acme/NONE'),
  ]);
  expect(games).toMatchObject({ status: 0, error: '' });
  expect(games.out).toMatch(/^ *id +game +system name +partner +kind +status +wager USD +spins /);
  expect(games.out).toMatch(
    new RegExp(`^ *${gameId} +\\S+ +${game.configName} +${partnerId} +slot +ACTIVE +0\\.25 +1 `, 'm'),
  );
  expect(games.out).toMatch(/^page 1 of 1, 1 games\n$/m);
  expect(JSON.parse(shown.out)).toMatchObject({ gameConfigId: gameId, partnerId });
  expect(spin.out).toMatch(/^entry\.outcomeIndex +0$/m);
  expect(spin.out).toMatch(/^requestId +spin-1$/m);
  expect(spin.out).toMatch(/^block\.commitment +[0-9a-f]{64}$/m);
  expect(statement.out).toMatch(new RegExp(`^\\S+Z +spin +${gameId} +0\\.25 .* spin-1 +${spinId}$`, 'm'));
  const cursor = /^next page: --cursor (\d+)$/m.exec(statement.out)![1]!;
  expect((await cli('player', 'statement', 'acme', 'alice', '--cursor', cursor)).out).toMatch(
    /^\S+Z +opening /m,
  );
  expect(made).toMatchObject({ status: 0, error: '' });
  expect(JSON.parse(made.out)).toMatchObject({ reportDate: today, revision: 1, reportStatus: 'PENDING' });
  expect(none).toEqual({ status: 1, out: '', error: 'spindle: No partner has the slug «nobody»\n' });
  expect(absent).toEqual({ status: 1, out: '', error: 'spindle: Partner acme has no game «NONE»\n' });

  const [reports, report, missing, log, overview, cells] = await Promise.all([
    cli('settlement', 'list', '--status', 'pending'),
    cli('settlement', 'show', String(partnerId), today, '--revision', '1'),
    cli('settlement', 'show', 'acme', today, '--revision', '9'),
    cli('audit-log', '--action', 'partner.', '--subject', `partner:${partnerId}`, '--actor', 'operator'),
    cli('overview'),
    cli('cells'),
  ]);
  expect(reports.out).toMatch(new RegExp(`^${today} +acme +PENDING +1 `, 'm'));
  expect(report.out).toMatch(/^reportStatus +PENDING$/m);
  expect(report.out).toMatch(new RegExp(`^${game.configName} +1 +0\\.25 `, 'm'));
  expect(missing).toMatchObject({ status: 1, out: '', error: expect.stringMatching(/^KS-4301 /) });
  expect(log.out.split('\n').slice(1, -2)).toEqual([
    expect.stringMatching(new RegExp(` operator +partner\\.create +partner:${partnerId} `)),
  ]);
  expect(overview.out).toMatch(/^attention\.failedDeliveries +\d+$/m);
  expect(cells.out).toMatch(/^isReady +true$/m);
});

test('spindle requires --yes for an irreversible action without a terminal, and changes nothing without it', async () => {
  const prizes = join(folder, 'loss.csv');
  writeFileSync(prizes, 'prizeName,prizeTier,valueUsd,count\nCar,6,100.5,2\n');
  const raffle = ['raffle', 'create', String(partner.partnerId), '--name', 'R', '--prizes', prizes];
  const refused = await Promise.all([
    cli('key', 'revoke', String(partner.partnerId), '1'),
    cli('operator', 'rotate', 'nobody'),
    cli('operator', 'revoke', 'nobody'),
    cli('round', 'void', 'x', '--reason', 'r'),
    cli('round', 'close', 'x'),
    cli('sheet', 'retire', '1'),
    cli('api', 'deprecate', 'v2', '--sunset', '2099-01-01'),
    cli('recover', '--replace'),
    cli(...raffle, '--config', 'LOSS', '--price', '1', '--size', '200'),
  ]);
  for (const ended of refused) {
    expect(ended).toMatchObject({ status: 2, out: '' });
    expect(ended.error).toMatch(/^spindle: .+\. Nothing has changed yet; add --yes to confirm\.\n$/);
  }
  expect(refused.at(-1)!.error).toContain('the prizes are worth 201.00 USD, and all tickets cost 200.00 USD');
  const made = await Promise.all([
    cli(...raffle, '--config', 'LOSS', '--price', '1', '--size', '200', '--yes'),
    cli(...raffle, '--config', 'EVEN', '--price', '1.005', '--size', '200'),
  ]);
  expect(made.map(({ status, error }) => [status, error])).toEqual([
    [0, ''],
    [0, ''],
  ]);
});

test('spindle --watch prints a list repeatedly', async () => {
  const { child, output } = begin('game', 'list', '--watch', '1', '--json');
  onTestFinished(() => void child.kill('SIGKILL'));
  await until(() => output.out.split('\n').length > 2, 'it is printed twice');
  expect(JSON.parse(output.out.split('\n')[1]!)).toMatchObject({ games: expect.any(Array), page: 1 });
  expect(output.error).toBe('');
  for (const seconds of ['0', '3601', 'x']) expect((await cli('cells', '--watch', seconds)).status).toBe(2);
});

test('spindle prints its complete output to a slow reader', async () => {
  const { stdout } = launch('openapi');
  await once(stdout, 'readable');
  // Normally the command ends within this time after its work is done.
  await pause(2 * HELD_UP_MS);
  expect(JSON.parse(await text(stdout))).toHaveProperty('openapi');
});

test('spindle completes commands, options and choices in a shell', async () => {
  const offered = async (...words: string[]): Promise<string[]> =>
    (await cli('complete', '--', ...words)).out.split('\n').map((line) => line.split('\t')[0]!);
  const [commands, options, choices, script] = await Promise.all([
    offered('settlement', ''),
    offered('key', 'revoke', '--'),
    offered('settlement', 'list', '--status', ''),
    cli('completion', 'bash'),
  ]);
  expect(commands).toEqual(expect.arrayContaining(['list', 'show', 'make', 'verify']));
  expect(options).toEqual(expect.arrayContaining(['--yes', '--url', '--json']));
  expect(choices).toEqual(expect.arrayContaining(['pending', 'disputed']));
  expect(script).toMatchObject({ status: 0, error: '', out: expect.stringContaining('spindle complete --') });
});

test('spindle webhooks manages webhooks, and listen accepts signatures by both secrets of a rotation', async () => {
  const { id, secret } = await register(service, partner.key, 'http://localhost:9/');
  const manage = (...args: string[]) => cli('webhooks', 'manage', ...args, '--key-file', 'key');
  const listed = await manage('list');
  expect([listed.status, listed.error]).toEqual([0, '']);
  expect(listed.out).toMatch(
    new RegExp(`^ *${id} {2}http://localhost:9/ {2}spin\\.large_win {2}ok +- +- +0$`, 'm'),
  );
  expect(JSON.parse((await manage('deactivate', String(id), '--json')).out)).toMatchObject({
    id,
    isActive: false,
  });
  expect(await manage('test', String(id))).toMatchObject({
    status: 1,
    error: expect.stringMatching(/^KS-4101 /),
  });
  expect((await manage('activate', String(id))).status).toBe(0);
  const rotated = JSON.parse((await manage('rotate', String(id), '--json')).out) as { secret: string };

  for (const known of [secret, rotated.secret]) {
    writeFileSync(join(folder, 'secret'), `${known}\n`);
    const { child, output } = begin('webhooks', 'listen', '--port', '0', '--json', '--secret-file', 'secret');
    onTestFinished(() => void child.kill('SIGKILL'));
    await until(() => output.error.includes('listening on'), 'it listens');
    const url = /http:\/\/localhost:\d+\//.exec(output.error)![0];
    await service.partner('PATCH', `/webhooks/${id}`, partner.key, { url });
    const tested = await manage('test', String(id), '--event', 'api_key.expiring', '--json');
    expect([tested.status, tested.error]).toEqual([0, '']);
    await until(() => output.out.includes('\n'), 'the test arrives');
    const line = JSON.parse(output.out.split('\n')[0]!) as { isValid: boolean; body: string };
    expect(line.isValid).toBe(true);
    expect(JSON.parse(line.body)).toMatchObject({ event: 'api_key.expiring', test: true });
  }
});

test('spindle webhooks manage changes a webhook, shows deliveries and events, and resends a delivery', async () => {
  const { id } = await register(service, partner.key, 'http://localhost:9/');
  const manage = (...args: string[]) => cli('webhooks', 'manage', ...args, '--key-file', 'key');
  const asked = async <T>(...args: string[]): Promise<T> => {
    const { out, error } = await manage(...args, '--json');
    expect(error).toBe('');
    return JSON.parse(out) as T;
  };
  const registered = await asked<{ id: number; secret: string }>(
    ...['register', '--to', 'http://localhost:11/', '--events', 'spin.large_win'],
  );
  expect(registered.secret).toMatch(/^whsec_/);
  expect((await manage('delete', String(registered.id))).out).toBe(`Webhook ${registered.id} was deleted.\n`);
  expect((await manage('deliveries', String(registered.id))).error).toMatch(/^KS-4206 /);
  const wanted = ['--to', 'http://localhost:10/', '--events', 'api_key.expiring,block.low_reserve'];
  expect(await asked('change', String(id), ...wanted)).toMatchObject({
    id,
    url: 'http://localhost:10/',
    events: ['api_key.expiring', 'block.low_reserve'],
  });
  expect(await manage('change', String(id), '--events', 'nothing')).toMatchObject({
    status: 1,
    error: expect.stringMatching(/^KS-4107 /),
  });
  const { deliveryId, eventId } = await asked<{ deliveryId: string; eventId: string }>('test', String(id));
  const deliveries = async () =>
    (await asked<{ deliveries: { id: string; status: string }[] }>('deliveries', String(id))).deliveries;
  await until(async () => (await deliveries())[0]?.status === 'failed', 'the delivery has failed');
  const failed = await cli('webhooks', 'failed', '--partner', String(partner.partnerId));
  expect(failed.out).toMatch(
    new RegExp(`^${deliveryId} +${partner.partnerId} +${id} +spin\\.large_win +5 `, 'm'),
  );
  expect((await manage('deliveries', String(id))).out).toMatch(
    new RegExp(`^${deliveryId} +spin\\.large_win +${eventId} +failed`, 'm'),
  );
  expect(await asked('resend', String(id), deliveryId)).toEqual({ resent: 1 });
  expect(await manage('resend', String(id), 'dlv_0')).toMatchObject({
    status: 1,
    error: expect.stringMatching(/^KS-4215 /),
  });
  const events = (...args: string[]) => asked<{ events: { id: string }[] }>('events', ...args);
  const day = new Date().toISOString().slice(0, 10);
  const made = await service.operator('POST', `/partners/${partner.partnerId}/settlements/${day}`);
  expect(made.status).toBe(201);
  const all = (await events('--limit', '100')).events.map((event) => event.id);
  expect(all.length).toBeGreaterThan(0);
  expect(all).not.toContain(eventId);
  expect((await events('--after', all[0]!, '--limit', '1')).events.map((event) => event.id)).toEqual(
    all.slice(1, 2),
  );
});

test("spindle sandbox next-outcome forces a player's next outcome, and prints refusals", async () => {
  const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const choose = (...args: string[]) => cli('sandbox', 'next-outcome', ...args, '--key-file', 'key');
  const chosen = await choose(String(gameId), 'alice', '13');
  expect([chosen.status, chosen.error]).toEqual([0, '']);
  expect(chosen.out).toMatch(/^outcome\.payoutUsd +9\.625$/m);
  const body = { gameId, playerId: 'alice', wagerUsd: 0.25 };
  expect((await service.spin(partner.key, body)).body).toMatchObject({ sandbox: { forced: true } });
  expect(await choose(String(gameId), 'alice', '99')).toMatchObject({
    status: 1,
    error: expect.stringMatching(/^KS-4101 .*\n {2}\/combinationIndex /),
  });
  expect((await choose('x', 'alice', '1')).status).toBe(2);
});

test.each([
  [
    ['remove', '1', '--key-file', 'key'],
    'ACTION must be one of list, register, events, change, test, rotate, delete, activate, deactivate, deliveries, resend',
  ],
  [['register', '--key-file', 'key'], 'register needs --to and --events'],
  [['delete', '--key-file', 'key'], 'delete needs the id of a webhook'],
  [['test', '--key-file', 'key'], 'test needs the id of a webhook'],
  [['rotate', 'x', '--key-file', 'key'], 'rotate needs the id of a webhook'],
  [['change', '1', '--key-file', 'key'], 'change needs --to or --events'],
  [['resend', '1', '--key-file', 'key'], 'resend needs the id of a webhook and the id of a delivery'],
  [['events', '--limit', 'x', '--key-file', 'key'], '--limit must be 1 to 100'],
  [['list', '--key-file', 'none'], 'Cannot read none'],
  [['list', '--key-file', 'wrong'], 'wrong does not contain a partner key (ks_…)'],
  [['list'], "required option '--key-file <FILE>' not specified"],
])('spindle webhooks manage refuses %j as wrong usage', async (args, message) => {
  const ended = await cli('webhooks', 'manage', ...args);
  expect([ended.status, ended.out]).toEqual([2, '']);
  expect(ended.error).toContain(message);
});
