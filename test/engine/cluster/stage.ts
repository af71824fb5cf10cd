/**
 * Starts a service on a Redis Cluster with one partner in each cell, for the tests of this folder, and sends
 * spins to it.
 */
import { join } from 'node:path';
import postgres from 'postgres';
import { expect } from 'vitest';
import { keptPort } from '../../../src/app/embedded/dataDir.js';
import { requestSegments } from '../../../src/engine/redis/requestSegments.js';
import { slotOfCell } from '../../../src/engine/redis/slots.js';
import { freshStores } from '../../setup/freshStores.js';
import { booksHold } from '../../support/books.js';
import { makeCertificates, opensslMissing } from '../../support/certificates.js';
import type { Cleanup } from '../../support/cleanup.js';
import type { Answer, TestPartner } from '../../support/client.js';
import { ownCluster, type TestCluster } from '../../support/cluster.js';
import { auditIsClean } from '../../support/failover.js';
import { openNodes, rawRedis } from '../../support/redis.js';
import { REDIS_USERINFO, userRules } from '../../support/redisUser.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { StoreUrls } from '../../support/stores.js';
import { pause, until } from '../../support/wait.js';

type Service = Awaited<ReturnType<typeof startService>>;

export interface Seat {
  readonly cell: number;
  readonly partner: TestPartner;
  readonly gameId: number;
}
export interface Spun {
  readonly seat: Seat;
  readonly requestId: string;
  readonly text: string;
}

export const CELLS = 6;
const WAGER = 0.25;

interface StageParts {
  readonly cleanup: Cleanup;
  readonly cluster: TestCluster;
  readonly stores: StoreUrls;
  readonly sql: postgres.Sql<{ bigint: bigint }>;
  /**
   * Process that is both front end and worker, and that answers a spin as soon as Redis has it (ACK=redis).
   */
  readonly service: Service;
  /**
   * Front end that answers a spin only once the ledger has it, so that no answered spin is lost. If openssl
   * is installed, the front end connects over TLS with minimal permissions.
   */
  readonly careful: Service;
  /** The partners and games that the tests use: one partner with one game in each cell. */
  readonly seats: readonly Seat[];
}

export const cellsOf = (where: readonly Seat[]): number[] => where.map(({ cell }) => cell);
export const isOk = ({ status }: Answer): boolean => status === 200;
export const spin = (from: Service, { partner, gameId }: Seat, requestId: string): Promise<Answer> =>
  from.spin(partner.key, { gameId, playerId: 'p', wagerUsd: WAGER, requestId });

export class Stage implements StageParts {
  readonly cleanup: Cleanup;
  readonly cluster: TestCluster;
  readonly stores: StoreUrls;
  readonly sql: StageParts['sql'];
  readonly service: Service;
  readonly careful: Service;
  readonly seats: readonly Seat[];
  /** Functions that stop the spinning clients, also after a test has failed. */
  readonly #players: (() => void)[] = [];

  private constructor(parts: StageParts) {
    this.cleanup = parts.cleanup;
    this.cluster = parts.cluster;
    this.stores = parts.stores;
    this.sql = parts.sql;
    this.service = parts.service;
    this.careful = parts.careful;
    this.seats = parts.seats;
  }

  static async open(cleanup: Cleanup): Promise<Stage> {
    const tls = opensslMissing() === undefined ? await tlsSettings(cleanup) : undefined;
    const cluster = await ownCluster(tls?.settings);
    cleanup.add(() => cluster.drop());
    const { databaseUrl, drop } = await freshStores();
    cleanup.add(drop);
    const stores = { redisUrl: cluster.url, databaseUrl };
    const sql = postgres(databaseUrl, { max: 2, types: { bigint: postgres.BigInt }, onnotice: () => {} });
    cleanup.add(() => sql.end());
    // Redis holds request ids for only two seconds, so that all tests span several releases.
    const settings = { CELLS: String(CELLS), SPIN_DEADLINE_MS: '10000', REQUEST_ID_WINDOW_S: '2' };
    const service = await startService(stores, settings);
    cleanup.add(() => service.stop());
    const carefulStores = { ...stores, redisUrl: (await tls?.url(cluster)) ?? stores.redisUrl };
    const careful = await startService(carefulStores, { ...settings, ROLES: 'http', ACK: 'ledger' });
    cleanup.add(() => careful.stop());
    const seats: Seat[] = [];
    for (let cell = 0; cell < CELLS; cell++) {
      const partner = await service.newPartner({ openingBalanceUsd: 1000 });
      seats.push({ cell, partner, gameId: await service.newGame(partner.key, parSheet('classic-3-reel')) });
    }
    const areDealing = async (): Promise<boolean> =>
      (await Promise.all(seats.map((seat) => spin(careful, seat, `first-${seat.cell}`)))).every(isOk);
    await until(areDealing, 'both front ends deal');
    return new Stage({ cleanup, cluster, stores, sql, service, careful, seats });
  }

  async spinAll(from: Service, where: readonly Seat[], name: string, each: number): Promise<Spun[]> {
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

  async replaysHold(spun: readonly Spun[]): Promise<void> {
    for (const { seat, requestId, text } of spun) {
      const again = await spin(this.service, seat, requestId);
      expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([text, 'true']);
    }
  }

  /**
   * Waits until Redis has released all request ids that were dealt in the cells so far. They are then in the
   * runs in Postgres.
   */
  async areReleased(where: readonly Seat[]): Promise<void> {
    const { nodes, close } = await openNodes(this.stores.redisUrl);
    try {
      await Promise.all(
        where.map(async ({ cell }) => {
          const dealt = await requestSegments(nodes, cell);
          await until(async () => {
            const now = await requestSegments(nodes, cell);
            return now !== undefined && now.releasedId >= dealt!.newestEntryId;
          }, `the request ids of cell ${cell} are released`);
        }),
      );
    } finally {
      close();
    }
  }

  async isDealing(where: readonly Seat[], name: string): Promise<void> {
    let tries = 0;
    await until(async () => {
      const answers = await Promise.all(where.map((seat) => spin(this.service, seat, `${name}-${tries}`)));
      tries++;
      return answers.every(isOk);
    }, `${name}: all cells deal`);
  }

  /** Checks that no spin was dealt twice, skipped or lost, and that both stores agree. */
  async allHolds(): Promise<void> {
    await auditIsClean(this.stores);
    await booksHold(this.sql);
  }

  /**
   * Sends spins until it is stopped.
   * @param restMs pause after each spin, in ms. With more spins, the later check of their replays takes
   * longer.
   * @returns an object whose end function stops the spins and returns the responses by status
   */
  keepSpinning(from: Service, where: readonly Seat[], name: string, restMs = 0) {
    let isEnded = false;
    this.#players.push(() => {
      isEnded = true;
    });
    const spun: Spun[] = [];
    const others: Answer[] = [];
    const playing = where.map(async (seat) => {
      for (let i = 0; !isEnded; i++) {
        const requestId = `${name}-${seat.cell}-${i}`;
        const answer = await spin(from, seat, requestId);
        if (isOk(answer)) {
          spun.push({ seat, requestId, text: answer.text });
          if (restMs > 0) await pause(restMs);
        } else {
          others.push(answer);
          // Without the pause, immediate refusals would take processor time away from other requests.
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

  /**
   * Returns the partners and games in the cells of the node that serves a slot, and those in the cells of all
   * other nodes.
   */
  async seatsOf(slot: number): Promise<[own: Seat[], others: Seat[]]> {
    const server = await this.cluster.primaryOf(slot);
    const own: Seat[] = [];
    const others: Seat[] = [];
    for (const seat of this.seats)
      ((await this.cluster.primaryOf(slotOfCell(seat.cell))) === server ? own : others).push(seat);
    return [own, others];
  }

  endPlayers(): void {
    for (const end of this.#players.splice(0)) end();
  }
}

/**
 * Returns the settings of each server for a second port with TLS, and for the user that docs/production.md
 * describes.
 */
async function tlsSettings(cleanup: Cleanup) {
  const { ca, cert, key, drop } = await makeCertificates(import.meta.filename);
  cleanup.add(drop);
  const settings = async (folder: string): Promise<string> => `
tls-port ${await keptPort(join(folder, 'tls-port'), join(folder, 'port'), join(folder, 'bus-port'))}
tls-cluster yes
tls-replication yes
tls-auth-clients no
tls-ca-cert-file ${ca}
tls-cert-file ${cert}
tls-key-file ${key}
user ${userRules().join(' ')}
`;
  const url = async (cluster: TestCluster): Promise<string> => {
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
