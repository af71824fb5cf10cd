/** The whole service on a Redis Cluster of three primaries and three replicas: where its cells are, and what it does when nodes go. */
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { seedsOf } from '../../src/domain/storeUrl.js';
import { keptPort } from '../../src/embedded/dataDir.js';
import { askRedis } from '../../src/embedded/redisQuestion.js';
import { requestSegments } from '../../src/redis/requestSegments.js';
import { slotOfCell } from '../../src/redis/slots.js';
import { freshStores } from '../setup/freshStores.js';
import { booksHold } from '../support/books.js';
import { makeCertificates, opensslMissing } from '../support/certificates.js';
import { Cleanup } from '../support/cleanup.js';
import type { Answer, TestPartner } from '../support/client.js';
import { ownCluster, replaceByReplica, type TestCluster } from '../support/cluster.js';
import { storesParent } from '../support/disk.js';
import { allIsBooked, auditIsClean, replicaWaits, wereRepaired } from '../support/failover.js';
import { openNodes, rawRedis } from '../support/redis.js';
import { REDIS_USER, REDIS_USERINFO, userRules } from '../support/redisUser.js';
import { endProcess } from '../support/serverProcess.js';
import { environment, spawnService, startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { StoreUrls } from '../support/stores.js';
import { pause, until } from '../support/wait.js';

type Service = Awaited<ReturnType<typeof startService>>;

interface Seat {
  readonly cell: number;
  readonly partner: TestPartner;
  readonly gameId: number;
}
interface Spun {
  readonly seat: Seat;
  readonly requestId: string;
  readonly text: string;
}

const CELLS = 6;
const WAGER = 0.25;
const cleanup = new Cleanup();
let cluster: TestCluster;
let stores: StoreUrls;
let sql: postgres.Sql<{ bigint: bigint }>;
/** Deals and writes the ledger; answers once Redis has a spin. */
let service: Service;
/** Answers once the ledger has a spin: what it has answered is never lost. Where openssl is there it goes over TLS, with few rights. */
let careful: Service;
/** A partner and a game in each cell. */
const seats: Seat[] = [];

beforeAll(async () => {
  const tls = opensslMissing() === undefined ? await tlsSettings() : undefined;
  cluster = await ownCluster(tls?.settings);
  cleanup.add(() => cluster.drop());
  const { databaseUrl, drop } = await freshStores();
  cleanup.add(drop);
  stores = { redisUrl: cluster.url, databaseUrl };
  sql = postgres(databaseUrl, { max: 2, types: { bigint: postgres.BigInt }, onnotice: () => {} });
  cleanup.add(() => sql.end());
  // Redis holds request ids for so short a time that all tests cross hand-overs.
  const settings = { CELLS: String(CELLS), SPIN_DEADLINE_MS: '10000', REQUEST_ID_WINDOW_S: '2' };
  service = await startService(stores, settings);
  cleanup.add(() => service.stop());
  const carefulStores = { ...stores, redisUrl: (await tls?.url()) ?? stores.redisUrl };
  careful = await startService(carefulStores, { ...settings, ROLES: 'http', ACK: 'ledger' });
  cleanup.add(() => careful.stop());
  for (let cell = 0; cell < CELLS; cell++) {
    const partner = await service.newPartner({ openingBalanceUsd: 1000 });
    seats.push({ cell, partner, gameId: await service.newGame(partner.key, parSheet('classic-3-reel')) });
  }
  await until(
    async () =>
      (await Promise.all(seats.map((seat) => spin(careful, seat, `first-${seat.cell}`)))).every(isOk),
    'both front ends deal',
  );
});
/** A second port of each server, for TLS, and the user that docs/production.md describes. */
async function tlsSettings() {
  const { ca, cert, key, drop } = await makeCertificates(import.meta.filename);
  cleanup.add(drop);
  const settings = async (folder: string): Promise<string> => `
tls-port ${await keptPort(join(folder, 'tls-port'))}
tls-cluster yes
tls-replication yes
tls-auth-clients no
tls-ca-cert-file ${ca}
tls-cert-file ${cert}
tls-key-file ${key}
user ${userRules().join(' ')}
`;
  const url = async (): Promise<string> => {
    const hosts = cluster.servers.map(async (server) => {
      const redis = rawRedis(server.url);
      const [, port] = (await redis.config('GET', 'tls-port')) as string[];
      redis.disconnect();
      return `127.0.0.1:${port}`;
    });
    return `rediss://${REDIS_USERINFO}@${(await Promise.all(hosts)).join(',')}/0?cacert=${ca}`;
  };
  return { settings, url };
}

/** End what keeps spinning, also where a test fails. */
const players: (() => void)[] = [];
afterEach(() => {
  for (const end of players.splice(0)) end();
});
afterAll(() => cleanup.run());

const cellsOf = (where: readonly Seat[]): number[] => where.map(({ cell }) => cell);
const isOk = ({ status }: Answer): boolean => status === 200;
const spin = (from: Service, { partner, gameId }: Seat, requestId: string): Promise<Answer> =>
  from.spin(partner.key, { gameId, playerId: 'p', wagerUsd: WAGER, requestId });

/** Spins in each cell, all of which are answered. */
async function spinAll(from: Service, where: readonly Seat[], name: string, each: number): Promise<Spun[]> {
  const wanted = where.flatMap((seat) => Array.from({ length: each }, (_, i) => ({ seat, i })));
  return Promise.all(
    wanted.map(async ({ seat, i }) => {
      const requestId = `${name}-${seat.cell}-${i}`;
      const answer = await spin(from, seat, requestId);
      expect(answer.status, answer.text).toBe(200);
      return { seat, requestId, text: answer.text };
    }),
  );
}

async function replaysHold(spun: readonly Spun[]): Promise<void> {
  for (const { seat, requestId, text } of spun) {
    const again = await spin(service, seat, requestId);
    expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([text, 'true']);
  }
}

/** Waits until Redis holds no request id any more of what the cells have dealt by now: the ledger's runs have them. */
async function areHandedOver(where: readonly Seat[]): Promise<void> {
  const { nodes, close } = await openNodes(stores.redisUrl);
  try {
    await Promise.all(
      where.map(async ({ cell }) => {
        const dealt = await requestSegments(nodes, cell);
        await until(async () => {
          const now = await requestSegments(nodes, cell);
          return now !== undefined && now.releasedId >= dealt!.newestEntryId;
        }, `the request ids of cell ${cell} are handed over`);
      }),
    );
  } finally {
    close();
  }
}

const isDealing = async (where: readonly Seat[], name: string): Promise<void> => {
  let tries = 0;
  await until(async () => {
    const answers = await Promise.all(where.map((seat) => spin(service, seat, `${name}-${tries}`)));
    tries++;
    return answers.every(isOk);
  }, `${name}: all cells deal`);
};

/** Nothing was dealt twice, skipped or lost, and both stores agree. */
async function allHolds(): Promise<void> {
  await auditIsClean(stores);
  await booksHold(sql);
}

/** Keeps spinning until it is stopped. @returns what ends it and gives what was answered, by its status. */
function keepSpinning(from: Service, where: readonly Seat[], name: string) {
  let isEnded = false;
  players.push(() => {
    isEnded = true;
  });
  const spun: Spun[] = [];
  const others: Answer[] = [];
  const playing = where.map(async (seat) => {
    for (let i = 0; !isEnded; i++) {
      const requestId = `${name}-${seat.cell}-${i}`;
      const answer = await spin(from, seat, requestId);
      if (isOk(answer)) spun.push({ seat, requestId, text: answer.text });
      else {
        others.push(answer);
        // One that is refused at once would only take the processor from those that are not.
        await pause(50);
      }
    }
  });
  return {
    spun,
    async end() {
      isEnded = true;
      await Promise.all(playing);
      return { spun, others };
    },
  };
}

const seatsOf = async (slot: number): Promise<[own: Seat[], others: Seat[]]> => {
  const server = await cluster.primaryOf(slot);
  const own: Seat[] = [];
  const others: Seat[] = [];
  for (const seat of seats)
    ((await cluster.primaryOf(slotOfCell(seat.cell))) === server ? own : others).push(seat);
  return [own, others];
};

test('a start with --cluster serves on six servers of its own, which end with it', async () => {
  const dataDir = await realpath(await mkdtemp(join(await storesParent(), 'spindle-embedded-')));
  cleanup.add(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }));
  const { REDIS_URL: _, ...env } = environment({
    redisUrl: '',
    databaseUrl: (await freshStores()).databaseUrl,
  });
  const server = await spawnService({ PATH: process.env.PATH, ...env, DATA_DIR: dataDir }, ['--cluster']);
  cleanup.add(() => endProcess(server.child));
  const { redisUrl } = JSON.parse(await readFile(join(dataDir, 'stores.json'), 'utf8')) as StoreUrls;
  const servers = seedsOf(redisUrl);
  expect(servers).toHaveLength(6);
  expect(await askRedis(servers[0]!, ['CLUSTER', 'INFO'])).toContain('cluster_size:3');
  await until(async () => (await fetch(`${server.base}/readyz`)).status === 200, 'it serves');
  await endProcess(server.child);
  for (const each of servers) await expect(askRedis(each, ['PING'])).rejects.toThrow('ECONNREFUSED');
});

test('cells of all nodes are dealt from, adjusted, raffled and replayed', async () => {
  const { nodes, close } = await openNodes(stores.redisUrl);
  expect(new Set(seats.map(({ cell }) => nodes.of(cell))).size).toBe(3);
  close();
  const quick = await spinAll(service, seats, 'quick', 20);
  await replaysHold(quick);
  const carefully = await spinAll(careful, seats, 'careful', 10);
  await replaysHold(carefully);
  for (const { partner } of seats) {
    const terms = {
      ticketPriceUsd: 1,
      poolSize: 2,
      prizes: [{ prizeName: 'Car', prizeTier: 6, valueUsd: 50, count: 1 }],
    };
    const gameId = await service.api.newRaffle(partner.partnerId, `raffle-${partner.partnerId}`, terms);
    for (const requestId of ['ticket-1', 'ticket-2']) {
      const ticket = { gameId, playerId: 'p', wagerUsd: 1, requestId };
      expect((await service.spin(partner.key, ticket)).status).toBe(200);
    }
    const path = `/partners/${partner.partnerId}/players/p/adjustments`;
    const body = { requestId: 'gift', amountUsd: 5, reason: 'a gift' };
    expect((await service.operator('POST', path, body)).status).toBe(200);
  }
  await areHandedOver(seats);
  await replaysHold([...quick, ...carefully]);
  await allHolds();
});

test('a node that lost everything is rebuilt, while the others go on', async () => {
  const [own, others] = await seatsOf(slotOfCell(3));
  const spun = await spinAll(careful, own, 'before', 5);
  const meanwhile = keepSpinning(service, others, 'meanwhile');
  await cluster.ask((await cluster.primaryOf(slotOfCell(3)))!, 'FLUSHALL');
  await isDealing(own, 'after');
  await replaysHold(spun);
  expect((await meanwhile.end()).others).toEqual([]);
  await allHolds();
});

test('the cells of a killed primary come back with its replica; the others go on without a pause', async () => {
  const [own, others] = await seatsOf(slotOfCell(0));
  const handedOver = await spinAll(careful, own, 'handed-over', 5);
  await areHandedOver(own);
  expect(own.length).toBeGreaterThan(0);
  expect(others.length).toBeGreaterThan(0);
  const lasting = keepSpinning(careful, own, 'lasting');
  const elsewhere = keepSpinning(service, others, 'elsewhere');
  await until(() => lasting.spun.length > 20, 'spins are dealt');
  const replaced = replaceByReplica(cluster, slotOfCell(0));
  const away = `Redis does not answer for cells ${own.map(({ cell }) => cell).join(', ')}`;
  await until(async () => {
    const { status, body } = await service.request<{ halted: string[] }>('GET', '/readyz');
    return status === 200 && body.halted.includes(away);
  }, 'the front end says which cells are away, and is ready for the others');
  const dealtBefore = elsewhere.spun.length;
  const old = await replaced;
  expect(elsewhere.spun.length).toBeGreaterThan(dealtBefore);
  await isDealing(own, 'promoted');
  const { spun, others: failed } = await lasting.end();
  const codes = failed.map(({ body }) => String(body.errorCode));
  // Nothing was done, it may have been done, or the queue is not filled again yet.
  expect(codes.filter((code) => !['KS-5002', 'KS-4110', 'KS-4203'].includes(code))).toEqual([]);
  expect(codes.length).toBeGreaterThan(0);
  // The newest of them were in no run when the primary was killed.
  await replaysHold([...handedOver, ...spun]);
  expect((await elsewhere.end()).others).toEqual([]);
  await old.start();
  await allHolds();
  await wereRepaired(sql, cellsOf(own));
});

test('a replica that takes over in an orderly way loses nothing that was answered', async () => {
  const slot = slotOfCell(1);
  const [own] = await seatsOf(slot);
  const before = await cluster.primaryOf(slot);
  const playing = keepSpinning(service, own, 'orderly');
  await until(() => playing.spun.length > 20, 'spins are dealt');
  const { servers } = cluster;
  await cluster.ask(servers[servers.indexOf(before!) + 3]!, 'CLUSTER', 'FAILOVER');
  await until(async () => (await cluster.primaryOf(slot)) !== before, 'the replica has taken over');
  await isDealing(own, 'taken over');
  await replaysHold((await playing.end()).spun);
  await allHolds();
  await wereRepaired(sql, cellsOf(own));
});

test('a replica that lags behind the ledger is brought up to it when it takes over', async () => {
  const slot = slotOfCell(2);
  const [own] = await seatsOf(slot);
  const primary = (await cluster.primaryOf(slot))!;
  const replica = await cluster.replicaOf(primary);
  await replica.freeze();
  // What the system has taken for the replica would still come to it.
  await cluster.ask(primary, 'CLIENT', 'KILL', 'TYPE', 'replica');
  const spun = await spinAll(service, own, 'lacking', 12);
  const [{ partner }] = own as [Seat];
  const player = `/partners/${partner.partnerId}/players/p`;
  const gift = { requestId: 'late gift', amountUsd: 7, reason: 'a gift' };
  expect((await service.operator('POST', `${player}/adjustments`, gift)).status).toBe(200);
  await allIsBooked(stores.redisUrl, cellsOf(own));
  const block = { status: 'BLOCKED', reason: 'to be seen by the replica, too' };
  expect((await service.operator('PATCH', player, block)).status).toBe(200);
  await primary.killForGood();
  replica.thaw();
  await until(async () => (await cluster.primaryOf(slot)) === replica, 'the replica has taken over');
  const [blocked, ...others] = own as [Seat, ...Seat[]];
  await isDealing(others, 'lagging');
  await until(
    async () => (await spin(service, blocked, 'blocked')).body.errorCode === 'KS-4115',
    'is blocked',
  );
  await replaysHold(spun);
  expect((await service.operator('POST', `${player}/adjustments`, gift)).status).toBe(200);
  const unblock = { status: 'ACTIVE', reason: 'seen' };
  expect((await service.operator('PATCH', player, unblock)).status).toBe(200);
  await primary.start();
  await isDealing(own, 'level again');
  await allHolds();
  const written = await wereRepaired(sql, cellsOf(own));
  for (const { requests } of written) expect(Number(requests)).toBeGreaterThanOrEqual(12);
});

test('ACK=replica answers what every replica has, and else what the ledger has', async () => {
  const settings = { CELLS: String(CELLS), ROLES: 'http', ACK: 'replica', SPIN_DEADLINE_MS: '5000' };
  const replicated = await startService(stores, settings);
  cleanup.add(() => replicated.stop());
  const [seat] = seats as [Seat, ...Seat[]];
  const booked = (requestId: string) => sql`
    SELECT 1 FROM ledger WHERE partner_id = ${seat.partner.partnerId} AND request_id = ${requestId}`;
  const primary = (await cluster.primaryOf(slotOfCell(seat.cell)))!;
  const replica = await cluster.replicaOf(primary);
  let tries = 0;
  const isAcknowledged = async (): Promise<boolean> => {
    const before = await replicaWaits(replicated.running.metricsPort);
    const answer = await spin(replicated, seat, `acknowledged-${tries++}`);
    const { acknowledged } = await replicaWaits(replicated.running.metricsPort);
    return isOk(answer) && acknowledged > before.acknowledged;
  };
  await until(isAcknowledged, 'the replica acknowledges what is answered');

  await replica.freeze();
  const { late } = await replicaWaits(replicated.running.metricsPort);
  const alone = await spin(replicated, seat, 'alone');
  expect([alone.status, (await booked('alone')).length]).toEqual([200, 1]);
  expect((await replicaWaits(replicated.running.metricsPort)).late).toBeGreaterThan(late);
  // Neither a replica nor the ledger has it: a primary that is alone acknowledges nothing.
  await sql.begin(async (tx) => {
    await tx`LOCK TABLE ledger IN SHARE MODE`;
    const answer = await spin(replicated, seat, 'nowhere');
    expect([answer.status, answer.body.errorCode]).toEqual([409, 'KS-4110']);
  });
  replica.thaw();
  await until(isAcknowledged, 'the replica acknowledges again');
  expect((await spin(replicated, seat, 'nowhere')).status).toBe(200);
  await until(async () => (await booked('nowhere')).length === 1, 'it is booked');
  await replaysHold([{ seat, requestId: 'alone', text: alone.text }]);
});

test('over TLS and with the documented rights nothing was denied', async ({ skip }) => {
  const missing = opensslMissing();
  if (missing !== undefined) return skip(missing);
  const encrypted = new Set<string>();
  for (const server of cluster.servers) {
    const redis = rawRedis(server.url);
    const denied = (await redis.call('ACL', 'LOG')) as unknown[][];
    redis.disconnect();
    expect(denied.filter((entry) => entry.includes(REDIS_USER.name))).toEqual([]);
    const clients = await cluster.ask(server, 'CLIENT', 'LIST');
    if (clients.includes(`user=${REDIS_USER.name} `)) encrypted.add(server.url);
  }
  // All primaries.
  expect(encrypted.size).toBeGreaterThanOrEqual(3);
});
