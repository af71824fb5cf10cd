/**
 * Tests witnesses of the public log: cosignatures collected after the publication or required as a quorum
 * before it, and witnesses that are down, hang or lie.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseCheckpoint } from '../../../src/domain/publicLog/checkpoints.js';
import {
  parseNote,
  parseVkey,
  signerKeyOf,
  signerOf,
  signersOf,
  vkeyOf,
} from '../../../src/domain/publicLog/notes.js';
import { Policy } from '../../../src/domain/publicLog/policy.js';
import { serveWitness } from '../../../src/publicLog/witness/serving.js';
import { WitnessState } from '../../../src/publicLog/witness/witnessState.js';
import { examine } from '../../../verifier/verify.mjs';
import { freshStores } from '../../setup/freshStores.js';
import { auditFindings } from '../../support/communal.js';
import { cliOf, ROOT } from '../../support/root.js';
import { constants, type LoggedService, startLogged } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const ORIGIN = 'spindle.example/witnessed';
const log = signerOf(ORIGIN, 'log', Buffer.alloc(32, 7));
const keys = [1, 2, 3].map((n) => signerOf(`witness.example/w${n}`, 'witness', Buffer.alloc(32, 50 + n)));

let stores: TestStores;
let sql: postgres.Sql;
let folder: string;
let ends: (() => unknown)[];
beforeEach(async () => {
  stores = await freshStores();
  sql = postgres(stores.databaseUrl, { max: 2, onnotice: () => {} });
  folder = await mkdtemp(join(tmpdir(), 'spindle-witnesses-'));
  ends = [];
});
afterEach(async () => {
  for (const end of ends.reverse()) await end();
  await sql.end();
  await stores.drop();
  await rm(folder, { recursive: true, force: true });
});

/** Starts a witness with the key `keys[n]` on the given port, or on a free port if none is given. */
async function witness(n: number, port = 0) {
  const state = new WitnessState(join(folder, `w${n}`), keys[n]!);
  const policy = new Policy(`log ${vkeyOf(log)}\nquorum none\n`);
  const server = await serveWitness({ policy, state, host: '127.0.0.1', port, say: () => {} });
  let isOpen = true;
  const close = async (): Promise<void> => {
    if (isOpen) await server.close();
    isOpen = false;
  };
  ends.push(close);
  return { port: server.port, state, close };
}

/** Starts a fake witness, whose responses the test determines. */
async function pretended(
  answer: (body: string) => { status: number; type?: string; body: string } | undefined,
) {
  const asked: string[] = [];
  const server: Server = createServer((request, response) => {
    let body = '';
    request.on('data', (part) => {
      body += part;
    });
    request.on('end', () => {
      asked.push(body);
      const given = answer(body);
      // A witness that hangs never answers.
      if (given !== undefined)
        response.writeHead(given.status, { 'Content-Type': given.type ?? 'text/plain' }).end(given.body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as { port: number }).port, asked };
}

let files = 0;
async function start(
  ports: readonly number[],
  rules: string,
  more: NodeJS.ProcessEnv = {},
): Promise<LoggedService> {
  const path = join(folder, `policy${files++}.txt`);
  const lines = ports.map((port, n) => `witness w${n} ${vkeyOf(keys[n]!)} http://127.0.0.1:${port}`);
  await writeFile(path, `${lines.join('\n')}\n${rules}\n`);
  const settings = {
    CELLS: '2',
    LOG_ORIGIN: ORIGIN,
    LOG_KEY: signerKeyOf(log),
    LOG_POLICY: path,
    ...constants({ logCosignMs: 100 }),
  };
  const service = await startLogged(stores, { ...settings, ...more });
  ends.push(() => service.running.stop());
  return service;
}

const checkpoint = async (service: LoggedService) => {
  const { text, status } = await service.request('GET', '/log/checkpoint');
  if (status !== 200) return { size: 0, by: [] as string[], text };
  const note = parseNote(text);
  expect(signersOf(note, [parseVkey(vkeyOf(log))])).toHaveLength(1);
  return {
    size: parseCheckpoint(note.text).size,
    by: signersOf(note, keys).map(({ name }) => name.at(-1)!),
    text,
  };
};
const isAppended = async (size: number): Promise<boolean> => {
  const [row] = await sql<{ size: string }[]>`SELECT size FROM logs`;
  return Number(row!.size) > size;
};
const outcomes = async (service: LoggedService, gameId: number): Promise<number> =>
  (await service.operator<{ queue: { outcomesReady: number } }>('GET', `/games/${gameId}`)).body.queue
    .outcomesReady;

describe('witnesses without a quorum', () => {
  test('adds cosignatures to a published checkpoint, and includes them in checkpoint, proof and policy', async () => {
    const [one, two] = [await witness(0), await witness(1)];
    const service = await start([one.port, two.port], 'group g 1 w0 w1\nquorum none');
    const partner = await service.newPartner({ openingBalanceUsd: 10 });
    const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
    await until(async () => (await checkpoint(service)).by.length === 2, 'both have cosigned');
    const { body } = await service.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25 });
    const { spinId } = body as { spinId: string };
    const path = `/api/partner/v1/spins/${spinId}/proof`;
    const policy = (await service.request('GET', '/log/policy')).text;
    expect(new Policy(policy).witnesses.map(({ label }) => label)).toEqual(['w0', 'w1']);
    expect(policy).toContain('\ngroup g 1 w0 w1\nquorum none\n');
    // A client that requires both cosignatures gets them in the next checkpoint.
    const stricter = policy.replace('group g 1 w0 w1\nquorum none', 'group g 2 w0 w1\nquorum g');
    const faults = async (): Promise<readonly string[]> => {
      const proof = await service.request<Record<string, unknown>>('GET', path, { key: partner.key });
      return (await examine(proof.body, { logKeys: [], policy: stricter })).faults;
    };
    await until(async () => (await faults()).length === 0, 'the proof has both');
    expect(await auditFindings(stores)).toEqual([]);
  });

  test('continues while a witness is down, reports the witness, and asks it again', async () => {
    const [one, two] = [await witness(0), await witness(1)];
    await two.close();
    const service = await start([one.port, two.port], 'quorum none');
    const partner = await service.newPartner();
    await service.newGame(partner.key, parSheet('classic-3-reel'));
    await until(async () => (await checkpoint(service)).by.join() === '1', 'one has cosigned');
    const told = (text: string): boolean =>
      service.lines.some(({ msg, witness: name }) => msg === text && name === 'w1');
    await until(() => told('witness did not cosign the public log, will retry'), 'it is told');
    await witness(1, two.port);
    await until(async () => (await checkpoint(service)).by.length === 2, 'it has cosigned, too');
    await until(() => told('witness cosigns the public log again'), 'it is told');
    await until(
      async () => (await service.metric('spindle_log_witness_age_seconds{witness="w1"}')) < 60,
      'it is young',
    );
  });

  test('does not believe a witness that lies about its newest checkpoint: neither halts the log nor counts a cosignature', async () => {
    const size = (body: string): string => body.split('\n')[body.split('\n').indexOf(ORIGIN) + 1]!;
    const above = await pretended(() => ({ status: 409, type: 'text/x.tlog.size', body: '999999\n' }));
    const same = await pretended((body) => ({
      status: 409,
      type: 'text/x.tlog.size',
      body: `${body.split(/[ \n]/)[1]}\n`,
    }));
    const foreign = await pretended((body) => ({
      status: 200,
      body: `— ${ORIGIN} ${Buffer.from(size(body).padEnd(80)).toString('base64')}\n`,
    }));
    const service = await start([above.port, same.port, foreign.port], 'quorum none');
    const refuses = (n: number) => service.metric(`spindle_log_witness_refuses{witness="w${n}"}`);
    await until(async () => (await refuses(0)) === 1 && (await refuses(1)) === 1, 'two refuse');
    await until(() => foreign.asked.length > 1, 'the third is asked again at once');
    // The first witness returns no checkpoint larger than the log, so its claim is no evidence.
    expect(await service.metric('spindle_log_halted')).toBe(0);
    expect(same.asked.filter((body) => body.startsWith('old '))).toHaveLength(1);
    expect((await checkpoint(service)).by).toEqual([]);
  });

  test("halts appending if a witness returns a larger tree with the log's signature", async () => {
    const text = `${ORIGIN}\n999999\n${Buffer.alloc(32, 1).toString('base64')}\n`;
    const { signatureLine } = await import('../../../src/domain/publicLog/notes.js');
    const forked = await pretended((body) =>
      body === ''
        ? { status: 200, body: `${text}\n${signatureLine(text, log)}` }
        : { status: 409, type: 'text/x.tlog.size', body: '999999\n' },
    );
    const service = await start([forked.port], 'quorum none');
    await until(async () => (await service.metric('spindle_log_halted')) === 1, 'it is halted');
  });
});

describe('witnesses with a quorum', () => {
  test('loads no new block without a quorum of cosignatures, but deals blocks that were published before', async () => {
    const [one, two, three] = [await witness(0), await witness(1), await witness(2)];
    const service = await start([one.port, two.port, three.port], 'group g 2 w0 w1 w2\nquorum g');
    const partner = await service.newPartner({ openingBalanceUsd: 100 });
    const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
    expect((await checkpoint(service)).by.length).toBeGreaterThanOrEqual(2);
    await two.close();
    await service.operator('POST', `/games/${gameId}/blocks`, { count: 1 });
    const isUp = async (): Promise<boolean> =>
      (await checkpoint(service)).size === Number((await sql`SELECT size FROM logs`)[0]!.size);
    await until(isUp, 'one may be away');
    await three.close();
    const before = await outcomes(service, gameId);
    const { size } = await checkpoint(service);
    await service.operator('POST', `/games/${gameId}/blocks`, { count: 1 });
    await until(() => isAppended(size), 'it is appended');
    // The test waits for several rounds. Each round gets one of the two cosignatures.
    const rounds = async () =>
      Number((await sql`SELECT max(cosignatures) AS n FROM log_checkpoints WHERE size > ${size}`)[0]!.n);
    await until(async () => (await rounds()) === 1, 'one has cosigned it');
    expect((await checkpoint(service)).size).toBe(size);
    expect(await outcomes(service, gameId)).toBe(before);
    const dealt = await service.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25 });
    expect(dealt.status).toBe(200);
    const proof = await service.request<Record<string, unknown>>(
      'GET',
      `/api/partner/v1/spins/${(dealt.body as { spinId: string }).spinId}/proof`,
      { key: partner.key },
    );
    const policy = (await service.request('GET', '/log/policy')).text;
    expect((await examine(proof.body, { logKeys: [], policy })).faults).toEqual([]);
    await witness(2, three.port);
    await until(async () => (await outcomes(service, gameId)) > before, 'it is loaded then');
    expect((await checkpoint(service)).size).toBeGreaterThan(size);
    expect(await auditFindings(stores)).toEqual([]);
  });

  test('neither publication nor shutdown waits for one of two witnesses that hangs', async () => {
    const one = await witness(0);
    const frozen = await pretended(() => undefined);
    const service = await start([one.port, frozen.port], 'group g any w0 w1\nquorum g');
    const partner = await service.newPartner();
    const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
    expect(await outcomes(service, gameId)).toBeGreaterThan(0);
    expect(frozen.asked.length).toBeGreaterThan(0);
    await one.close();
    const { size } = await checkpoint(service);
    await service.operator('POST', `/games/${gameId}/blocks`, { count: 1 });
    await until(() => isAppended(size), 'a block waits for a quorum');
  });

  test('two workers with a quorum publish one log and load each block', async () => {
    const [one, two] = [await witness(0), await witness(1)];
    const rules = 'group g all w0 w1\nquorum g';
    const services = [await start([one.port, two.port], rules), await start([one.port, two.port], rules)];
    const partners = await Promise.all([0, 1].map((cell) => services[cell]!.newPartner({ cell } as never)));
    const games = await Promise.all(
      [0, 1, 0, 1].map((at) => services[at]!.newGame(partners[at]!.key, parSheet('classic-3-reel'))),
    );
    expect(new Set(games).size).toBe(4);
    const whole = async (): Promise<boolean> => {
      const [row] = await sql<{ size: string; waiting: string }[]>`
        SELECT size, (SELECT count(*) FROM log_entries WHERE log_index IS NULL) AS waiting FROM logs`;
      return row!.waiting === '0' && (await checkpoint(services[0]!)).size === Number(row!.size);
    };
    await until(whole, 'all is published');
    expect((await checkpoint(services[1]!)).by).toEqual(['1', '2']);
    expect(await auditFindings(stores)).toEqual([]);
  });
});

/** Runs `spindle log show` on the stores of the test. */
async function logShow(): Promise<string> {
  const child = spawn(process.execPath, [cliOf(ROOT), 'log', 'show'], {
    env: { PATH: process.env.PATH, REDIS_URL: stores.redisUrl, DATABASE_URL: stores.databaseUrl },
  });
  let said = '';
  child.stdout.on('data', (text) => (said += text));
  await once(child, 'close');
  return said;
}
const overview = async (service: LoggedService) =>
  (
    await service.operator<{ attention: { missingWitnesses: string[]; dryGames: number } }>(
      'GET',
      '/overview',
    )
  ).body.attention;
const attention = async (service: LoggedService): Promise<string[]> =>
  (await overview(service)).missingWitnesses;

describe('a witness that was never reached', () => {
  test('shows operators which witness the quorum lacks, and spindle log show says that this witness has never cosigned', async () => {
    const [one, two] = [await witness(0), await witness(1)];
    await two.close();
    const service = await start([one.port, two.port], 'group g all w0 w1\nquorum g');
    await until(async () => (await attention(service)).join() === 'w1', 'it is named');
    // The blocks of a new game are not published, so the game has nothing to deal.
    const { partnerId, key } = await service.newPartner();
    const sheetId = await service.api.addSheet(key, parSheet('classic-3-reel'));
    await service.api.addGame(key, sheetId, `waiting-${partnerId}`);
    expect((await overview(service)).dryGames).toBe(1);
    const said = await logShow();
    expect(said).toMatch(/^witness {4}witness\.example\/w1\S+: cosigned \d+ s ago$/m);
    expect(said).toMatch(/^witness {4}witness\.example\/w2\S+: has never cosigned, configured \d+ s ago$/m);

    await witness(1, two.port);
    await until(async () => (await attention(service)).length === 0, 'the quorum is there');
    await until(async () => (await overview(service)).dryGames === 0, 'the game has outcomes');
    expect(await logShow()).not.toContain('never');
  });

  test('reports no problem if a witness is unreachable and the policy has no quorum', async () => {
    const one = await witness(0);
    await one.close();
    const service = await start([one.port], 'quorum none');
    await until(
      async () =>
        (await sql`SELECT 1 FROM log_checkpoints WHERE signed_at < now() - interval '11 seconds'`).length > 0,
      'a checkpoint is older than a quorum may take',
    );
    expect(await attention(service)).toEqual([]);
  });
});

test.each([
  ['witness w0 x http://127.0.0.1:1', 'Line 1 of the policy has an invalid key'],
  [`witness w0 ${vkeyOf(keys[0]!)}`, 'the witness in line 1 has no address'],
  [`witness w0 ${vkeyOf(log)} http://127.0.0.1:1`, 'Line 1 of the policy has the key of a log'],
])('refuses to start with a witness policy that has %s', async (line, message) => {
  const path = join(folder, 'wrong.txt');
  await writeFile(path, `${line}\nquorum none\n`);
  await expect(startLogged(stores, { LOG_POLICY: path })).rejects.toThrow(message);
});
