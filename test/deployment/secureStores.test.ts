/** Tests stores that are reached over TLS by users with only the rights that they need. */
import type { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../src/app/embedded/index.js';
import { freshStores } from '../setup/freshStores.js';
import { type Certificates, makeCertificates, opensslMissing } from '../support/certificates.js';
import { Cleanup } from '../support/cleanup.js';
import { auditFindings } from '../support/communal.js';
import { rawRedis } from '../support/redis.js';
import { REDIS_USER, REDIS_USERINFO, userRules } from '../support/redisUser.js';
import { newTable } from '../support/rounds.js';
import { ServerProcess } from '../support/serverProcess.js';
import { constants, environment, startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { StoreUrls } from '../support/stores.js';
import { until } from '../support/wait.js';

const cleanup = new Cleanup();
/** The reason why these tests can't run on this machine. */
let missing = opensslMissing();
let redis: Redis;
let sql: postgres.Sql;
let certificates: Certificates;
/** URLs of the stores without TLS. */
let plain: StoreUrls;
let tlsPort: number;

beforeAll(async () => {
  if (missing !== undefined) return;
  const stores = await freshStores();
  cleanup.add(() => stores.drop());
  plain = stores;
  redis = rawRedis(stores.redisUrl);
  cleanup.add(() => redis.disconnect());
  sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  cleanup.add(() => sql.end());
  const [row] = await sql<{ data_directory: string }[]>`SHOW data_directory`;
  certificates = await makeCertificates(row!.data_directory);
  cleanup.add(() => certificates.drop());
  await encryptRedis();
  if (missing === undefined) await encryptPostgres();
});
afterAll(() => cleanup.run());

/** Opens a second port for TLS on the running server. */
async function encryptRedis(): Promise<void> {
  const { ca, cert, key } = certificates;
  const files = ['tls-ca-cert-file', ca, 'tls-cert-file', cert, 'tls-key-file', key];
  try {
    await redis.config('SET', ...files, 'tls-auth-clients', 'no');
  } catch (error) {
    missing = `this Redis server has no TLS: ${(error as Error).message}`;
    return;
  }
  cleanup.add(async () => void (await redis.config('SET', 'tls-port', '0')));
  // Another process may have taken the free port in the meantime, so the attempt is repeated.
  await until(async () => {
    tlsPort = await freePort();
    return redis.config('SET', 'tls-port', String(tlsPort)).then(
      () => true,
      () => false,
    );
  }, 'Redis has a TLS port');
}

async function encryptPostgres(): Promise<void> {
  const settings = { ssl: 'on', ssl_cert_file: certificates.cert, ssl_key_file: certificates.key };
  for (const [name, value] of Object.entries(settings))
    await sql.unsafe(`ALTER SYSTEM SET ${name} = '${value}'`);
  await sql`SELECT pg_reload_conf()`;
  cleanup.add(async () => {
    for (const name of Object.keys(settings)) await sql.unsafe(`ALTER SYSTEM RESET ${name}`);
    await sql`SELECT pg_reload_conf()`;
  });
  await until(async () => (await sql<{ ssl: string }[]>`SHOW ssl`)[0]!.ssl === 'on', 'Postgres has TLS');
}

/**
 * Returns REDIS_URL with TLS.
 * @param user `name:password`
 */
function secureRedis(user?: string, query = `cacert=${certificates.ca}`, port = tlsPort): string {
  const url = new URL(plain.redisUrl);
  return `rediss://${user ?? `:${url.password}`}@127.0.0.1:${port}${url.pathname}?${query}`;
}

/** Returns DATABASE_URL with parameters. */
const securePostgres = (query: string, host = '127.0.0.1'): string =>
  `${plain.databaseUrl.replace('127.0.0.1', host)}?${query}`;

const tryOnce = async (stores: Partial<StoreUrls>): Promise<string> => {
  const running = await startService({ ...plain, ...stores }, { CELLS: '1' }).catch((error: Error) => error);
  if (running instanceof Error) return running.message;
  await running.stop();
  return 'none';
};

/**
 * Returns the reason why a start is refused. A timeout is retried, because on a busy machine the handshake
 * may take longer than a start waits.
 */
const refusal = async (stores: Partial<StoreUrls>): Promise<string> => {
  let message = '';
  await until(async () => {
    message = await tryOnce(stores);
    return !/ETIMEDOUT|timeout/i.test(message);
  }, 'a start that has not waited in vain');
  return message;
};

test('a Redis user with only the documented rights, over TLS, can do all that the service does', async ({
  skip,
}) => {
  if (missing !== undefined) return skip(missing);
  const { name } = REDIS_USER;
  await redis.call('ACL', 'SETUSER', ...userRules());
  cleanup.add(async () => void (await redis.call('ACL', 'DELUSER', name)));
  const stores = {
    redisUrl: secureRedis(REDIS_USERINFO),
    databaseUrl: securePostgres(`sslmode=verify-full&sslrootcert=${certificates.ca}`),
  };
  const service = await startService(stores, {
    ...constants({ authFailureLimit: 1 }),
    CELLS: '1',
    ACK: 'ledger',
  });
  cleanup.add(() => service.stop());
  const partner = await service.newPartner({ openingBalanceUsd: 1000 });
  const games = {
    slot: await service.newGame(partner.key, parSheet('classic-3-reel')),
    table: await newTable(service, partner.partnerId),
  };
  const terms = {
    ticketPriceUsd: 1,
    poolSize: 1,
    prizes: [{ prizeName: 'Car', prizeTier: 6, valueUsd: 50, count: 1 }],
  };
  const raffle = await service.api.newRaffle(partner.partnerId, 'raffle', terms);
  const spin = (gameId: number, requestId: string, wagerUsd = 0.25) =>
    service.spin(partner.key, { gameId, playerId: 'p', wagerUsd, requestId });
  const first = await spin(games.slot, 'first');
  expect(first.status, first.text).toBe(200);
  expect((await spin(raffle, 'ticket', 1)).status).toBe(200);
  const gift = { requestId: 'gift', amountUsd: 5, reason: 'a gift' };
  const adjusted = await service.operator(
    'POST',
    `/partners/${partner.partnerId}/players/p/adjustments`,
    gift,
  );
  expect(adjusted.status, adjusted.text).toBe(200);
  for (const status of ['blocked', 'active'])
    await service.operator('PUT', `/partners/${partner.partnerId}/players/p/status`, { status });
  // The service counts failed authentications in Redis.
  await service.request('GET', '/api/partner/v1/games', { key: 'ks_nobodys' });
  await service.operator('POST', `/partners/${partner.partnerId}/keys`, { name: 'told', reason: 'told' });
  await until(async () => (await auditFindings(stores)).length === 0, 'the audit is clean');

  await redis.del('{c0}:cell');
  await until(
    async () => (await spin(games.slot, 'rebuilt')).status === 200,
    'the cell is rebuilt and dealt from',
  );
  expect((await spin(games.slot, 'first')).text).toBe(first.text);
  await until(async () => (await auditFindings(stores)).length === 0, 'the audit is clean');

  const ssl =
    await sql`SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'spindle'`;
  expect(ssl).toContainEqual({ ssl: true });
  const denied = (await redis.call('ACL', 'LOG')) as unknown[][];
  expect(denied.filter((entry) => entry.includes(name))).toEqual([]);
});

test('refuses to start on a Redis that has a wrong certificate or rejects the user, with an error message of one line', async ({
  skip,
}) => {
  if (missing !== undefined) return skip(missing);
  const at = `Cannot connect to Redis at rediss://127.0.0.1:${tlsPort}${new URL(plain.redisUrl).pathname}: `;
  const { ca, otherCa } = certificates;
  expect(await refusal({ redisUrl: secureRedis(undefined, `cacert=${otherCa}`) })).toMatch(
    new RegExp(`^${at}(unable to verify the first|self-signed) certificate[ \\w]*$`),
  );
  expect(await refusal({ redisUrl: secureRedis('nobody:nothing') })).toBe(
    `${at}WRONGPASS invalid username-password pair or user is disabled.`,
  );
  const plainPort = Number(new URL(plain.redisUrl).port);
  expect(await tryOnce({ redisUrl: secureRedis(undefined, `cacert=${ca}`, plainPort) })).toBe(
    `${at.replace(String(tlsPort), String(plainPort))}connect ETIMEDOUT. The port may not speak TLS.`,
  );
  expect(await refusal({ redisUrl: secureRedis().replace('rediss:', 'redis:').replace(/\?.*/, '') })).toMatch(
    new RegExp(`^${at.replace('rediss:', 'redis:')}.*\\. If the port speaks TLS, use rediss://\\.$`),
  );
  expect(await refusal({ redisUrl: secureRedis(undefined, 'cacert=/nowhere/ca.crt') })).toBe(
    `${at}The file of the parameter cacert in REDIS_URL can't be read: ENOENT: no such file or directory, open '/nowhere/ca.crt'`,
  );
  await redis.config('SET', 'tls-auth-clients', 'yes');
  const demanded = await refusal({ redisUrl: secureRedis() });
  const own = secureRedis(undefined, `cacert=${ca}&cert=${certificates.cert}&key=${certificates.key}`);
  const shown = await refusal({ redisUrl: own });
  await redis.config('SET', 'tls-auth-clients', 'no');
  // The client notices either the alert of TLS 1.3 or the end of the connection first.
  expect(demanded).toMatch(
    new RegExp(
      `^${at}(TLS: .*certificate required|.*\\. If the server has tls-auth-clients yes, add cert and key\\.)$`,
    ),
  );
  expect(shown).toBe('none');
});

test('handles sslmode as psql does', async ({ skip }) => {
  if (missing !== undefined) return skip(missing);
  const { ca, otherCa } = certificates;
  const outcome = async (query: string, host?: string): Promise<string> => {
    const message = await refusal({ databaseUrl: securePostgres(query, host) });
    return message.replace(/^Cannot connect to Postgres at \S+: /, '');
  };
  expect(await outcome('sslmode=require')).toBe('none');
  expect(await outcome(`sslmode=require&sslrootcert=${otherCa}`)).toMatch(/certificate/);
  expect(await outcome(`sslmode=verify-ca&sslrootcert=${ca}`, 'localhost')).toBe('none');
  expect(await outcome(`sslmode=verify-full&sslrootcert=${ca}`, 'localhost')).toMatch(/altnames/);
  expect(await outcome('sslmode=verify-full')).toMatch(/certificate/);
  expect(await outcome('sslmode=prefer')).toBe(
    'sslmode of DATABASE_URL must be one of disable, require, verify-ca, verify-full',
  );
  expect(await outcome('sslmode=verify-ca')).toMatch(/^sslmode=verify-ca of DATABASE_URL needs sslrootcert/);
  expect(await outcome(`sslmode=verify-full&sslrootcert=/nowhere/ca.crt`)).toMatch(
    /^DATABASE_URL can't be used: ENOENT/,
  );
  const wrong = new URL(securePostgres('sslmode=require'));
  wrong.password = 'nothing:1';
  const refused = await refusal({ databaseUrl: wrong.href });
  expect(refused).toMatch(
    /Cannot connect to Postgres at \S+: password authentication failed for user "\w+"$/,
  );
  expect(refused).not.toContain('nothing:1');
});

test('a start with --migrate creates the schema and then ends, as a job before the other processes', async ({
  skip,
}) => {
  if (missing !== undefined) return skip(missing);
  const empty = await freshStores({ hasSchema: false });
  cleanup.add(() => empty.drop());
  const url = `${empty.databaseUrl}?sslmode=verify-full&sslrootcert=${certificates.ca}`;
  const env = environment({ ...plain, databaseUrl: url });
  const { ended, output } = ServerProcess.launch({ env, args: ['--migrate'] });
  expect([await ended, output().trim()]).toEqual([0, 'The schema is up to date']);
  const migrated = postgres(empty.databaseUrl, { max: 1, onnotice: () => {} });
  cleanup.add(() => migrated.end());
  expect(await migrated`SELECT FROM schema_migrations`).not.toHaveLength(0);
});
