/**
 * `node dist/test/takeover/make.js DIR`
 *
 * Writes test/takeover/stores.json.gz and answers.json.gz: the data that the build in DIR, a checkout of
 * version 1.4.0, leaves in Redis and Postgres, and its responses. README.md describes the content of the
 * files.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { runToEnd } from '../support/cleanup.js';
import type { Client as ApiClient } from '../support/client.js';
import { setUp } from '../support/communal.js';
import { ROOT } from '../support/root.js';
import { deal, isPlaying, newTable, playOut } from '../support/rounds.js';
import { environment, spawnService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import { ownStores, type StoreUrls } from '../support/stores.js';
import { until } from '../support/wait.js';
import { type Answers, HELD_SETTINGS, type HeldStores, type Sent } from './held.js';

const SLOT_PLAYERS = 5;
const RAFFLE_PLAYERS = 3;
/** Number of committed spins. Each player has more than 64, so that the history has indexed entries. */
const BOOKED_SPINS = 400;
const UNBOOKED_SPINS = 40;
const COMMUNAL_SPINS = 60;
const DEALS = 12;
const POOL_TICKETS = 60;
const TICKET_USD = 0.5;
const PRIZES = [
  { prizeName: 'Car', prizeTier: 6, valueUsd: 50, count: 1 },
  { prizeName: 'Bicycle', prizeTier: 4, valueUsd: 5, count: 4 },
];
const PARTITION = /^ledger_\d{8}$/;

const outboxEntries = async (redis: Redis): Promise<number> => {
  const cells = Array.from({ length: Number(HELD_SETTINGS.CELLS) }, (_, cell) =>
    redis.xlen(`{c${cell}}:outbox`),
  );
  return (await Promise.all(cells)).reduce((sum, length) => sum + length, 0);
};

async function play(dir: string, stores: StoreUrls, redis: Redis): Promise<Answers> {
  const startBuild = (env: NodeJS.ProcessEnv = {}) =>
    spawnService(environment(stores, { ...HELD_SETTINGS, ...env }), [], dir);
  const whole = await startBuild();
  const made = await makePartner(whole.client);
  const { apiKey, partnerId, gameId, raffleId, communalId, tableId, wagerUsd } = made;
  const slot = (number: number) => ({
    gameId,
    playerId: `player-${number % SLOT_PLAYERS}`,
    wagerUsd,
    requestId: `slot-${number}`,
  });
  const ticket = (number: number) => ({
    gameId: raffleId,
    playerId: `player-${number % RAFFLE_PLAYERS}`,
    wagerUsd: TICKET_USD,
    requestId: `ticket-${number}`,
  });
  const communal = (number: number) => ({
    gameId: communalId,
    playerId: `communal-${number % SLOT_PLAYERS}`,
    wagerUsd,
    requestId: `communal-${number}`,
  });
  const sent: Sent[] = [];
  const deals: Answers['deals'][number][] = [];
  const send = async (client: ApiClient, body: Sent['body']): Promise<boolean> => {
    const { status, text } = await client.spin(apiKey, body);
    if (status === 200) sent.push({ body, text });
    return status === 200;
  };
  const adjustments: Answers['adjustments'][number][] = [];
  const adjust = async (client: ApiClient, requestId: string, amountUsd: number): Promise<void> => {
    const path = `/partners/${partnerId}/players/player-1/adjustments`;
    const body = { amountUsd, reason: 'goodwill', requestId };
    adjustments.push({ path, body, text: (await client.operator('POST', path, body)).text });
  };

  await until(() => send(whole.client, slot(0)), 'the game has outcomes');
  await until(() => send(whole.client, ticket(0)), 'the raffle is sealed');
  for (let number = 1; number < BOOKED_SPINS; number++) await send(whole.client, slot(number));
  for (let number = 1; number < POOL_TICKETS / 2; number++) await send(whole.client, ticket(number));
  for (let number = 0; number < COMMUNAL_SPINS; number++) await send(whole.client, communal(number));
  let open = 0;
  for (let number = 0; number < DEALS || open === 0; number++) {
    const [playerId, requestId] = [`dealt-${number}`, `deal-${number}`];
    const { body, status, text } = await deal(whole.client, apiKey, tableId, playerId, requestId);
    if (status !== 201) throw new Error(text);
    deals.push({ playerId, requestId, text });
    // Every second round in which the player can act is left open.
    if (isPlaying(body) && number % 2 === 0) open++;
    else await playOut(whole.client, apiKey, body);
  }
  await adjust(whole.client, 'adjustment-0', 12.5);
  await until(async () => (await outboxEntries(redis)) === 0, 'the ledger has everything');
  await whole.stop();

  // Without a worker no entry is committed, so later entries stay in the outbox and a ticket is not
  // confirmed.
  const frontEnd = await startBuild({ ROLES: 'http', SPIN_DEADLINE_MS: '500' });
  const { client } = frontEnd;
  for (let number = BOOKED_SPINS; number < BOOKED_SPINS + UNBOOKED_SPINS; number++)
    await send(client, slot(number));
  for (let number = COMMUNAL_SPINS; number < COMMUNAL_SPINS + UNBOOKED_SPINS; number++)
    await send(client, communal(number));
  await adjust(client, 'adjustment-1', -2.25);
  const unconfirmed = ticket(POOL_TICKETS / 2);
  if (await send(client, unconfirmed)) throw new Error('A ticket was confirmed without a worker');
  const get = async (path: string) => ({ path, text: (await client.partner('GET', path, apiKey)).text });
  const players = ['player', 'communal'].flatMap((name) =>
    Array.from({ length: SLOT_PLAYERS }, (_, number) => get(`/players/${name}-${number}`)),
  );
  const answers: Answers = {
    ...made,
    poolTickets: POOL_TICKETS,
    prizes: PRIZES,
    sent,
    deals,
    openRounds: open,
    unconfirmed,
    adjustments,
    players: await Promise.all(players),
    pool: (await get(`/games/${raffleId}/pool`)).text,
    webhooks: (await get('/webhooks')).text,
    outboxEntries: await outboxEntries(redis),
  };
  await frontEnd.stop();
  return answers;
}

async function makePartner(client: ApiClient) {
  const { partnerId, key: apiKey } = await client.newPartner({ largeWinThresholdUsd: 1 });
  const sheet = parSheet('classic-3-reel') as { denominationUsd: number };
  const gameId = await client.newGame(apiKey, sheet);
  const raffle = await client.operator<{ gameConfigId: number }>('POST', `/partners/${partnerId}/raffles`, {
    displayName: 'Raffle',
    configName: 'RAFFLE',
    ticketPriceUsd: TICKET_USD,
    poolSize: POOL_TICKETS,
    prizes: PRIZES,
  });
  const communalId = await client.newGame(apiKey, sheet);
  await setUp(client, communalId);
  const tableId = await newTable(client, partnerId);
  // No server listens on this port, so that the deliveries stay due.
  await client.partner('POST', '/webhooks', apiKey, {
    url: 'http://localhost:9/',
    events: ['spin.large_win', 'block.low_reserve'],
  });
  const raffleId = raffle.body.gameConfigId;
  return { apiKey, partnerId, gameId, raffleId, communalId, tableId, wagerUsd: sheet.denominationUsd };
}

async function dumpRedis(redis: Redis): Promise<HeldStores['redis']> {
  const keys = (await redis.keys('{c*')).sort();
  return Promise.all(
    keys.map(async (key) => [key, (await redis.dumpBuffer(key))!.toString('base64')] as const),
  );
}

async function dumpPostgres(dir: string, pg: Client): Promise<HeldStores['postgres']> {
  const folder = join(dir, 'src', 'postgres', 'migrations');
  const files = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  const schema = await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')));
  schema.push(
    'CREATE TABLE migrations (id serial PRIMARY KEY, name varchar(255) NOT NULL, run_on timestamp NOT NULL)',
  );
  const { rows: tables } = await pg.query<{ name: string; bounds: string | null; columns: string[] }>(`
    SELECT c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bounds,
           array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE a.attgenerated = '') AS columns
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
    GROUP BY c.oid, c.relname ORDER BY c.relname`);
  const held = [];
  for (const { name, bounds, columns } of tables) {
    if (bounds !== null && !PARTITION.test(name)) throw new Error(`${name} is no partition of the ledger`);
    if (bounds !== null)
      schema.push(
        `CREATE TABLE ${name} (LIKE ledger INCLUDING ALL); ALTER TABLE ledger ATTACH PARTITION ${name} ${bounds}`,
      );
    const list = columns.map((column) => `"${column}"`).join();
    held.push({ name, columns, rows: await text(pg.query(copyTo(`COPY ${name} (${list}) TO STDOUT`))) });
  }
  const { rows: sequences } = await pg.query<{ name: string; value: string }>(`
    SELECT sequencename AS name, last_value::text AS value FROM pg_sequences
    WHERE schemaname = 'public' AND last_value IS NOT NULL`);
  return { schema, tables: held, sequences };
}

await runToEnd(async (cleanup) => {
  const dir = resolve(process.argv[2] ?? '');
  const stores = await ownStores();
  cleanup.add(() => stores.drop());
  const redis = new Redis(stores.redisUrl, { protocol: 2 });
  cleanup.add(() => redis.disconnect());
  const pg = new Client({ connectionString: stores.databaseUrl });
  cleanup.add(() => pg.end());
  await pg.connect();
  const answers = await play(dir, stores, redis);
  const held: HeldStores = { redis: await dumpRedis(redis), postgres: await dumpPostgres(dir, pg) };
  const folder = join(ROOT, 'test', 'takeover');
  const write = (file: string, content: object): Promise<void> =>
    writeFile(join(folder, file), gzipSync(JSON.stringify(content), { level: 9 }));
  await write('stores.json.gz', held);
  await write('answers.json.gz', answers);
  return true;
});
