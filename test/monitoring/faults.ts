/** The faults of the alert test: what is done, which alerts must fire, and how the fault is mended. */
import { rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { bodyOf } from '../../src/api/client/apiClients.js';
import { Api } from '../support/api.js';
import { OPERATOR_KEY } from '../support/client.js';
import { Wire } from '../support/load.js';
import { parSheet } from '../support/sheets.js';
import { pause } from '../support/wait.js';
import type { Arena, Receiver } from './arena.js';

export interface Fault {
  readonly what: string;
  readonly alerts: readonly string[];
  begin(): Promise<void>;
  mend(): Promise<void>;
}

export interface Cast {
  readonly arena: Arena;
  readonly partner: { readonly partnerId: number; readonly key: string };
  readonly gameId: number;
  /** Receives the events of the partner's large wins. */
  readonly receiver: Receiver;
  /** A partner for whom the day before yesterday can't be settled. */
  readonly unsettled: { readonly partnerId: number; readonly gameId: number };
}

const REDIS_FROZEN_MS = 900;
const REDIS_THAWED_MS = 100;
const DAY_MS = 86_400_000;

export function faultsOf({ arena, partner, gameId, receiver, unsettled }: Cast) {
  const { stores, redis, sql, workers, port } = arena;
  let slowing: ReturnType<typeof until> | undefined;
  let senders: ReturnType<typeof until>[] = [];
  let unlockBlocks: (() => Promise<void>) | undefined;
  let raised: { day: string; added: string } | undefined;
  const restartWorkers = async (): Promise<void> => {
    for (const worker of workers) await worker.stop();
    for (const worker of workers) await worker.start();
  };
  /** Locks a table until the returned function is called. */
  const lockTable = async (table: string): Promise<() => Promise<void>> => {
    const connection = await sql.reserve();
    await connection.unsafe(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
    return async () => {
      await connection.unsafe('ROLLBACK');
      connection.release();
    };
  };
  const faults = {
    volatile: {
      what: 'CONFIG SET appendfsync everysec: every spin is refused',
      alerts: ['SpindleRedisVolatile', 'SpindleErrorBudgetBurnsFast', 'SpindleErrorBudgetBurnsSlowly'],
      begin: async () => void (await redis.config('SET', 'appendfsync', 'everysec')),
      mend: async () => void (await redis.config('SET', 'appendfsync', 'always')),
    },
    slow: {
      what: `Redis is stopped for ${REDIS_FROZEN_MS} of each ${REDIS_FROZEN_MS + REDIS_THAWED_MS} ms`,
      alerts: ['SpindleLatencyBudgetBurnsFast', 'SpindleLatencyBudgetBurnsSlowly'],
      begin: async () => {
        slowing = until(async () => {
          await stores.redis.freeze();
          await pause(REDIS_FROZEN_MS);
          stores.redis.thaw();
          await pause(REDIS_THAWED_MS);
        });
      },
      mend: () => slowing!.end(),
    },
    memory: {
      what: 'CONFIG SET maxmemory to a little more than is used',
      alerts: ['SpindleRedisMemoryLow'],
      begin: async () => {
        const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
        await redis.config('SET', 'maxmemory', String(Math.round(used * 1.2)));
      },
      mend: async () => void (await redis.config('SET', 'maxmemory', String(2 ** 31))),
    },
    webhooks: {
      what: 'the receiver of a partner answers with 500, and five attempts of each delivery fail',
      alerts: ['SpindleWebhooksFailing', 'SpindleWebhooksGivenUp'],
      begin: async () => {
        receiver.mode = 'fail';
      },
      mend: async () => {
        receiver.mode = 'accept';
      },
    },
    late: {
      what: 'the receiver hangs, and what waits is dated back by ten minutes',
      alerts: ['SpindleWebhooksLate'],
      begin: async () => {
        receiver.mode = 'hang';
        // The pause lets four deliveries begin, so that later deliveries wait.
        await pause(1000);
        await sql`UPDATE deliveries SET next_attempt_at = next_attempt_at - interval '10 minutes' WHERE status = 'pending'`;
      },
      mend: async () => {
        receiver.mode = 'accept';
      },
    },
    queue: {
      what: 'nothing can be leased (a lock on `blocks`), and the partner is to have more blocks in reserve than there are',
      alerts: ['SpindleQueueLow'],
      begin: async () => {
        unlockBlocks = await lockTable('blocks');
        const params = { path: { id: partner.partnerId } };
        await bodyOf(arena.api.operator.PATCH('/partners/{id}', { params, body: { minReadyBlocks: 8 } }));
      },
      mend: () => unlockBlocks!(),
    },
    settlement: {
      what: 'the day before yesterday of a partner has an amount that no JSON number holds; the workers start anew',
      alerts: ['SpindleSettlementOverdue', 'SpindleSettlementFaults'],
      begin: async () => {
        await sql`INSERT INTO game_days (game_id, day, partner_id, spins, wagered_micros, paid_micros)
          VALUES (${unsettled.gameId}, (now() AT TIME ZONE 'UTC')::date - 2, ${unsettled.partnerId}, 1, 9000000000000000001, 0)`;
        // A worker that has settled all past days does not check them again, so the workers are restarted.
        await restartWorkers();
      },
      mend: async () =>
        void (await sql`UPDATE game_days SET wagered_micros = 250000 WHERE game_id = ${unsettled.gameId}`),
    },
    eventLoop: {
      what: 'prize tables that do not hold are sent without a pause',
      alerts: ['SpindleEventLoopSaturated'],
      begin: async () => {
        const prizes = Array.from({ length: 800 }, (_, i) => ({
          prizeName: `Prize ${i}`,
          prizeTier: 1,
          valueUsd: 1.25,
          count: 1000,
        }));
        const raffle = {
          displayName: 'Too many prizes',
          configName: 'TOO_MANY',
          ticketPriceUsd: 1,
          poolSize: 1000,
        };
        const body = JSON.stringify({ ...raffle, prizes });
        const path = `/api/operator/v1/partners/${partner.partnerId}/raffles`;
        const bytes = Buffer.from(
          `POST ${path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${OPERATOR_KEY}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        );
        const wires = await Promise.all(Array.from({ length: 32 }, () => Wire.open(port)));
        senders = wires.map((wire) => until(() => wire.ask(bytes)));
      },
      mend: async () => void (await Promise.all(senders.map((sender) => sender.end()))),
    },
    postgresAway: {
      what: 'Postgres is stopped',
      alerts: ['SpindleOutboxLag', 'SpindleOutboxNearBound'],
      begin: () => stores.postgres.stop(),
      mend: () => stores.postgres.start(),
    },
    workersAway: {
      what: 'every worker is killed',
      alerts: ['SpindleTargetDown', 'SpindleCellsNotServed'],
      begin: async () => void (await Promise.all(workers.map((worker) => worker.kill()))),
      mend: async () => void (await Promise.all(workers.map((worker) => worker.start()))),
    },
    books: {
      what: "a cell is marked as halted, and a game's payouts are raised in the books; the workers start anew",
      alerts: ['SpindleCellHalted', 'SpindleRtpOutsideBand'],
      begin: async () => {
        await sql`UPDATE cells SET halted = 'staged' WHERE cell = (SELECT max(cell) FROM cells
          WHERE cell NOT IN (SELECT cell FROM partners))`;
        const [day] = await sql<{ day: string; added: string }[]>`
          SELECT max(day)::text AS day, (9 * sum(wagered_micros))::bigint::text AS added FROM game_days WHERE game_id = ${gameId}`;
        raised = day;
        await sql`UPDATE game_days SET paid_micros = paid_micros + ${day!.added} WHERE game_id = ${gameId} AND day = ${day!.day}`;
        await restartWorkers();
      },
      mend: async () => {
        await sql`UPDATE cells SET halted = NULL`;
        await sql`UPDATE game_days SET paid_micros = paid_micros - ${raised!.added} WHERE game_id = ${gameId} AND day = ${raised!.day}`;
        await restartWorkers();
      },
    },
    redisEmptied: {
      what: 'FLUSHALL, while a lock on `recoveries` holds up the rebuild',
      alerts: ['SpindleRecoveryTakesLong', 'SpindleRedisLostData'],
      begin: async () => {
        const release = await lockTable('recoveries');
        await redis.flushall();
        await pause(7000);
        await release();
      },
      mend: async () => {},
    },
  } satisfies Record<string, Fault>;
  return { ...faults, ...moreFaults(arena, gameId) };
}

const moreFaults = ({ port, positionFile }: Arena, gameId: number) => ({
  versionEnding: versionEnding(port),
  bonusBudget: bonusBudget(port, gameId),
  positionFile: folderAway(dirname(positionFile)),
  positionFileGone: folderGone(dirname(positionFile)),
});

function folderGone(folder: string): Fault {
  return {
    what: 'the folder of the position file is removed',
    alerts: ['SpindleOutsideCopyVanished'],
    begin: () => rm(folder, { recursive: true }),
    mend: async () => {},
  };
}

function folderAway(folder: string): Fault {
  return {
    what: 'a file is where the folder of the position file was',
    alerts: ['SpindlePositionFileStale'],
    begin: async () => {
      await rename(folder, `${folder}-away`);
      await writeFile(folder, '');
    },
    mend: async () => {
      await rm(folder);
      await rename(`${folder}-away`, folder);
    },
  };
}

/**
 * Budget in USD that {@link newBonusGame} gives a communal progressive, and the budget that the fault leaves.
 */
const BONUS_BUDGET_USD = 100_000_000;
const BONUS_LEFT_USD = 100;

/**
 * Creates a slot game with a communal progressive that fires several times a second under load.
 * @returns its id
 */
export async function newBonusGame(api: Api, key: string): Promise<number> {
  const { operator } = api;
  const gameId = await api.newGame(key, 'slot', parSheet('classic-3-reel'));
  const params = { path: { id: gameId } };
  const body = {
    enabled: true,
    triggerInterval: 10,
    triggerSplitPct: 50,
    communitySplitPct: 50,
    tiers: [{ tierLevel: 1, tierName: 'Mini', triggerAtSpins: 50, amountUsd: '1.00' }],
    windowMinutes: 60,
    communitySize: 10,
    resetProgress: false,
  };
  await bodyOf(operator.PUT('/games/{id}/communal', { params, body }));
  await changeBudget(operator, gameId, BONUS_BUDGET_USD);
  return gameId;
}

async function changeBudget(operator: Api['operator'], gameId: number, usd: number): Promise<void> {
  const body = { amountUsd: usd.toFixed(2), reason: 'staged', requestId: `${Math.random()}` };
  await bodyOf(operator.POST('/games/{id}/communal/funding', { params: { path: { id: gameId } }, body }));
}

/** @param port the port of a front end */
function bonusBudget(port: number, gameId: number): Fault {
  const { operator } = new Api(`http://127.0.0.1:${port}`);
  let takenUsd = 0;
  return {
    what: 'the budget of a bonus is withdrawn but for little, which is soon paid out; then it is funded again',
    alerts: ['SpindleCommunalBudgetLow', 'SpindleCommunalBudgetExhausted', 'SpindleCommunalEventsSkipped'],
    begin: async () => {
      const params = { path: { id: gameId } };
      const pot = await bodyOf(operator.GET('/games/{id}/communal', { params }));
      takenUsd = Math.floor(Number(pot.budgetUsd)) - BONUS_LEFT_USD;
      await changeBudget(operator, gameId, -takenUsd);
    },
    mend: () => changeBudget(operator, gameId, takenUsd),
  };
}

/**
 * Lets the sunset of the API version that every client uses approach.
 * @param port the port of a front end
 */
function versionEnding(port: number): Fault {
  const endIn = async (days: number): Promise<void> => {
    const sunsetAt = new Date(Date.now() + days * DAY_MS).toISOString();
    const params = { path: { version: 'v1' } };
    const { operator } = new Api(`http://127.0.0.1:${port}`);
    await bodyOf(operator.POST('/api-versions/{version}/deprecate', { params, body: { sunsetAt } }));
  };
  return {
    what: 'the end of the API version is announced for 20 days from now, then moved to 60',
    alerts: ['SpindleApiVersionStillUsed'],
    begin: () => endIn(20),
    mend: () => endIn(60),
  };
}

/** Repeats an action until the returned `end` is called. */
function until(act: () => Promise<unknown>): { end(): Promise<void> } {
  let isOver = false;
  const loop = (async () => {
    while (!isOver) await act();
  })();
  loop.catch(() => {});
  return {
    end: () => {
      isOver = true;
      return loop;
    },
  };
}
