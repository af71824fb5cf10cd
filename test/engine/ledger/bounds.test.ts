/**
 * Tests the service at its limits: a full outbox, memory or disk, changed settings of Redis, and a killed
 * Redis. No answered spin may be lost.
 */
import { readdir, readFile, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readBooked, readOutbox, totalsOfLast } from '../../../src/engine/redis/cellRecords.js';
import { cellKey, outboxKey } from '../../../src/engine/redis/keys.js';
import type { Client, TestPartner } from '../../support/client.js';
import { smallDiskMissing } from '../../support/disk.js';
import { expectWithin } from '../../support/expectWithin.js';
import { ROOT } from '../../support/root.js';
import { constants, type LoggedService, startLogged } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { type OwnStores, ownStores, startRedisWith } from '../../support/stores.js';
import { until } from '../../support/wait.js';
import { codeOf, Witness } from '../../support/witness.js';

const SETTINGS = { CELLS: '1', SPIN_DEADLINE_MS: '8000' };
const BATCH_MAX = 128;
const ONE_BYTE_PER_ENTRY = constants({ outboxBytesPerEntry: 1 });
const LONG_NAMES = '-'.repeat(100);
/**
 * Longest time in ms that an immediate refusal takes on a busy machine. A request that waits takes the whole
 * deadline.
 */
const AT_ONCE_MS = 4000;

const ready = async (service: Client): Promise<boolean> =>
  (await service.request('GET', '/statusz')).status === 200;

function direct(redisUrl: string): Redis {
  const redis = new Redis(redisUrl, { protocol: 2, retryStrategy: () => 50 });
  redis.on('error', () => {});
  return redis;
}

const infoOf = async (redis: Redis, field: string): Promise<string> =>
  new RegExp(`^${field}:(.*)\r?$`, 'm').exec(await redis.info())?.[1]?.trim() ?? '';

let stores: OwnStores;
let redis: Redis;
let service: LoggedService;
let partner: TestPartner;
let gameId: number;
let witness: Witness;

/**
 * Starts a service with these settings for a group of tests, and a new witness of the public log for each
 * test.
 */
function serve(more: NodeJS.ProcessEnv, padding = ''): void {
  beforeAll(async () => {
    service = await startLogged(stores, { ...SETTINGS, ...more });
    partner = await service.newPartner();
    gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
    // Without Postgres no blocks are made, so the first blocks must suffice for the test.
    await until(async () => {
      const game = await service.operator<{ queue: { readyBlocks: number } }>('GET', `/games/${gameId}`);
      return game.body.queue.readyBlocks > 2;
    }, 'all first blocks are there');
  });
  beforeEach(() => {
    witness = new Witness(stores, partner, gameId, padding);
    return () => witness.close();
  });
  afterEach(async () => {
    await witness.resolve(service);
    await witness.flushed(service);
    const { answers, wrong } = await witness.judge();
    expect(wrong).toEqual([]);
    expect(answers['200']).toBeGreaterThan(0);
  });
  afterAll(() => service.running.stop());
}

const counted = (code: string): number => witness.asked.filter((asked) => codeOf(asked) === code).length;
const refusals = (): number => counted('KS-5002');

describe('the service at the limits of the outbox, of memory and of Redis', () => {
  beforeAll(async () => {
    stores = await ownStores();
    redis = direct(stores.redisUrl);
  });

  afterAll(async () => {
    redis.disconnect();
    await stores.drop();
  });

  const waiting = async (): Promise<{ entries: number; bytes: number }> => {
    const batches = (await redis.xrangeBuffer(outboxKey(0), '-', '+')) as [Buffer, Buffer[]][];
    return {
      entries: batches.reduce((sum, [, fields]) => sum + readOutbox(fields[1]!).length, 0),
      bytes: batches.reduce((sum, [, fields]) => sum + fields[1]!.length, 0),
    };
  };

  describe.each([
    ['of its entries', { OUTBOX_MAX_ENTRIES: '2000' }, '', 'entries', 2000, 2 * BATCH_MAX],
    // A spin writes two entries of 61 bytes plus their names. The default limit is high enough for the
    // longest names.
    ['of its bytes', ONE_BYTE_PER_ENTRY, LONG_NAMES, 'bytes', 1e6, BATCH_MAX * (2 * 61 + 3 * 130)],
  ] as const)('an outbox that reaches the limit %s', (name, settings, padding, unit, bound, oneBatch) => {
    serve(settings, padding);

    test('without Postgres, deals spins up to the limit of the outbox, then only replays, and commits all spins afterwards', async ({
      annotate,
    }) => {
      await stores.postgres.stop();
      await witness.keepSpinning(service, 64, () => refusals() >= 64 || counted('KS-4203') > 0);
      const codes = new Set(witness.asked.map(codeOf));
      expect(codes).toEqual(new Set(['200', 'KS-5002']));
      const full = await waiting();
      expect(full[unit]).toBeGreaterThanOrEqual(bound);
      expect(full[unit]).toBeLessThan(bound + oneBatch);
      for (const { answers } of witness.asked.filter((asked) => codeOf(asked) === 'KS-5002')) {
        expect(answers[0]!.status).toBe(503);
        expect(Number(answers[0]!.headers.get('retry-after'))).toBeGreaterThan(0);
      }

      const bound200 = witness.asked.filter(
        (asked) => codeOf(asked) === '200' && asked.requestId !== undefined,
      );
      for (let i = 0; i < bound200.length; i += Math.ceil(bound200.length / 20)) {
        const again = await witness.retry(service, bound200[i]!);
        expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
      }
      const enough = refusals() + 200;
      const started = performance.now();
      await witness.keepSpinning(service, 8, () => refusals() >= enough);
      expectWithin(performance.now() - started, 200 * AT_ONCE_MS);
      expect(await waiting()).toEqual(full);

      await stores.postgres.start();
      const back = performance.now();
      await until(async () => codeOf(await witness.spin(service, true)) === '200', 'spins go on');
      await annotate(
        `${name}: spins go on ${Math.round(performance.now() - back)} ms after Postgres is back`,
      );
      await witness.flushed(service);
      expect(await waiting()).toEqual({ entries: 0, bytes: 0 });
      await until(() => ready(service), 'the service is ready');
    });
  });

  describe('a Redis that runs out of memory', () => {
    serve({}, '-'.repeat(100));

    const usedMemory = async (): Promise<number> => Number(await infoOf(redis, 'used_memory'));
    const isSettled = async (): Promise<boolean> => {
      const [last, booked] = await redis.hmgetBuffer(cellKey(0), 'last', 'booked');
      return totalsOfLast(last!).entries === readBooked(booked!).totals.entries;
    };

    afterEach(async () => {
      await redis.config('SET', 'maxmemory', '0');
    });

    test('refuses spins at once while uncommitted entries fill the memory of Redis, and deals once they are trimmed', async () => {
      await stores.postgres.stop();
      await redis.config('SET', 'maxmemory', String((await usedMemory()) + 600_000));
      await witness.keepSpinning(service, 16, () => refusals() >= 16);
      expect(new Set(witness.asked.map(codeOf))).toEqual(new Set(['200', 'KS-5002']));
      // The memory in use varies slightly with the requests in flight.
      let inARow = 0;
      await until(async () => {
        const started = performance.now();
        const isRefused = codeOf(await witness.spin(service, witness.asked.length % 2 === 0)) === 'KS-5002';
        if (isRefused) expectWithin(performance.now() - started, AT_ONCE_MS);
        inARow = isRefused ? inARow + 1 : 0;
        return inARow === 10;
      }, 'every spin is refused');
      const last = witness.asked.at(-1)!.answers[0]!;
      expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(0);
      const { entries } = await waiting();
      expect(entries).toBeGreaterThan(100);
      await stores.postgres.start();
      await until(async () => codeOf(await witness.spin(service, true)) === '200', 'spins go on');
      expect(Number(((await redis.config('GET', 'maxmemory')) as string[])[1])).toBeGreaterThan(0);
      await until(isSettled, 'what is booked is noted');
    });

    test('a new worker commits and trims although Redis has no free memory, and deals once Redis has more memory', async () => {
      await stores.postgres.stop();
      await witness.keepSpinning(service, 8, () => witness.asked.length >= 100);
      expect(refusals()).toBe(0);
      expect((await waiting()).entries).toBeGreaterThan(100);
      // A maxmemory of 500 kB is less than an empty Redis uses.
      await redis.config('SET', 'maxmemory', '500kb');
      await witness.keepSpinning(service, 8, () => refusals() >= 20);
      expect(codeOf(await witness.spin(service, true))).toBe('KS-5002');
      // The stopped service can't release its cell, so the next service waits for the end of the lease and
      // then claims the cell.
      await service.running.stop();
      await stores.postgres.start();
      service = await startLogged(stores, SETTINGS);
      await until(async () => (await waiting()).entries === 0, 'the outbox is trimmed');
      expect(codeOf(await witness.spin(service, true))).toBe('KS-5002');
      await redis.config('SET', 'maxmemory', '0');
      await until(async () => codeOf(await witness.spin(service, true)) === '200', 'spins go on');
      await until(isSettled, 'what is booked is noted');
    });
  });

  describe('settings of Redis that change while the service runs', () => {
    serve({});
    let careless: LoggedService;

    beforeAll(async () => {
      careless = await startLogged(stores, { ...SETTINGS, ROLES: 'http', ALLOW_VOLATILE_REDIS: '1' });
    });
    afterAll(() => careless.running.stop());

    const missing = async (): Promise<string> => (await service.request('GET', '/statusz')).text;

    test.each([
      ['appendfsync', 'everysec', 'always'],
      ['appendonly', 'no', 'yes'],
      ['maxmemory-policy', 'allkeys-lru', 'noeviction'],
      ['no-appendfsync-on-rewrite', 'yes', 'no'],
    ])(
      'while Redis runs with %s %s, refuses spins until the setting is %s again',
      async (name, bad, good) => {
        expect(codeOf(await witness.spin(service, true))).toBe('200');
        await redis.config('SET', name, bad);
        const started = performance.now();
        await until(async () => codeOf(await witness.spin(service, true)) === 'KS-5002', 'spins are refused');
        expectWithin(performance.now() - started, 2500);
        expect(codeOf(await witness.spin(service, false))).toBe('KS-5002');
        expect(await service.metric('spindle_redis_volatile')).toBe(1);
        const response = await service.request('GET', '/statusz');
        expect(response.status).toBe(503);
        expect(response.text).toContain(`${name} ${bad}`);
        expect(await missing()).toContain('may lose');

        await until(
          async () => (await careless.metric('spindle_redis_volatile')) === 1,
          'the other one sees it, too',
        );
        const own = await witness.spin(careless, true);
        expect(codeOf(own)).toBe('200');
        expect(await ready(careless)).toBe(true);

        await redis.config('SET', name, good);
        await until(async () => codeOf(await witness.spin(service, true)) === '200', 'spins go on');
        expect(await service.metric('spindle_redis_volatile')).toBe(0);
        await until(() => ready(service), 'the service is ready');
      },
    );

    test('once appendonly is yes again, answered spins survive a restart of Redis', async () => {
      await witness.flushed(service);
      await redis.config('SET', 'appendonly', 'no');
      await until(
        async () => (await service.metric('spindle_redis_volatile')) === 1,
        'it is seen that nothing is logged',
      );
      // With this setting, Redis rewrites its append-only file slowly. If Redis restarts before the rewrite
      // ends, it loads the earlier file.
      await redis.config('SET', 'rdb-key-save-delay', '2000000');
      await stores.postgres.freeze();
      try {
        await redis.config('SET', 'appendonly', 'yes');
        const since = performance.now();
        await witness.keepSpinning(service, 4, () => performance.now() - since > 2500);
        expect(await infoOf(redis, 'aof_rewrite_in_progress')).toBe('1');
        const runId = await infoOf(redis, 'run_id');
        await stores.redis.kill();
        await until(
          async () => (await infoOf(redis, 'run_id').catch(() => runId)) !== runId,
          'another Redis has come up',
        );
      } finally {
        await stores.postgres.thaw();
      }
      await until(async () => codeOf(await witness.spin(service, true)) === '200', 'spins go on');
      await until(() => ready(service), 'the service is ready');
    });
  });

  describe('a Redis that restarts with other settings', () => {
    serve({});

    test.each([
      ['appendonly', 'no'],
      ['appendfsync', 'everysec'],
      ['maxmemory-policy', 'allkeys-lru'],
    ])(
      'after a restart of Redis with %s %s, deals no spin and rebuilds nothing until the setting is restored',
      async (name, value) => {
        await witness.keepSpinning(service, 4, () => counted('200') >= 20);
        const dealt = counted('200');
        await stores.redis.stop();
        const end = await startRedisWith(stores, [`--${name}`, value]);
        try {
          const since = performance.now();
          await witness.keepSpinning(service, 4, () => performance.now() - since > 2000);
          expect(counted('200')).toBe(dealt);
          expect(refusals()).toBeGreaterThan(0);
          await until(
            async () => (await service.request('GET', '/statusz')).text.includes(`${name} ${value}`),
            'the service says what is wrong',
          );
        } finally {
          await end();
          await stores.redis.start();
        }
        await until(async () => codeOf(await witness.spin(service, true)) === '200', 'spins go on');
        await until(() => ready(service), 'the service is ready');
        expect(service.lines.filter(({ msg }) => msg === 'cell rebuilt')).toEqual([]);
      },
    );
  });

  describe('a Redis that is killed', () => {
    serve({});

    test('after Redis is killed repeatedly, loses no answered spin and deals again without intervention', async ({
      annotate,
    }) => {
      await until(async () => (await infoOf(redis, 'aof_rewrite_in_progress')) === '0', 'the log is whole');
      let enough = false;
      const spinning = witness.keepSpinning(service, 6, () => enough);
      const gaps: number[] = [];
      for (let round = 0; round < 3; round++) {
        const before = counted('200');
        await until(() => counted('200') > before + 60, 'spins are dealt');
        const runId = await infoOf(redis, 'run_id');
        await stores.redis.kill();
        const killed = performance.now();
        await until(
          async () => (await infoOf(redis, 'run_id').catch(() => runId)) !== runId,
          'another Redis has come up',
        );
        await until(async () => codeOf(await witness.spin(service, true)) === '200', 'spins are dealt again');
        gaps.push(Math.round(performance.now() - killed));
      }
      enough = true;
      await spinning;
      await annotate(`from kill -9 to the next spin: ${gaps.join(', ')} ms`);
      expectWithin(Math.max(...gaps), 4000);
    });
  });
});

const noDisk = smallDiskMissing();

describe.skipIf(noDisk !== undefined)(
  `a full disk of Redis${noDisk === undefined ? '' : ` (${noDisk})`}`,
  () => {
    let stores: OwnStores;
    let folder: string;
    let service: LoggedService;
    let partner: TestPartner;
    let witness: Witness;

    beforeAll(async () => {
      stores = await ownStores({ redisDiskMegabytes: 16 });
      folder = stores.redisFolder;
      service = await startLogged(stores, SETTINGS);
      partner = await service.newPartner();
      witness = new Witness(stores, partner, await service.newGame(partner.key, parSheet('classic-3-reel')));
    });

    afterAll(async () => {
      try {
        await witness.close();
        await service.running.stop();
      } finally {
        await stores.drop();
      }
    });

    test('refuses spins while the disk of Redis is full, and recovers with all answered spins once there is room', async ({
      annotate,
    }) => {
      await witness.keepSpinning(service, 4, () => witness.asked.length >= 40);
      const { bavail, bsize } = await statfs(folder);
      const filler = join(folder, 'filler');
      await writeFile(filler, Buffer.alloc(bavail * bsize - 96_000));
      const first = stores.redis.pid();
      const pids = new Set<number | undefined>();
      let enough = false;
      const spinning = witness.keepSpinning(service, 4, () => enough);
      const counted = (code: string): number =>
        witness.asked.filter((asked) => codeOf(asked) === code).length;
      await until(() => {
        pids.add(stores.redis.pid());
        return pids.size > 1 && !(pids.size === 2 && pids.has(undefined) && stores.redis.pid() === first);
      }, 'Redis has ended and comes again');
      await until(() => counted('KS-5002') > 20, 'spins are refused');
      const { bavail: left } = await statfs(folder);
      expect(left * bsize).toBeLessThan(96_000);

      await rm(filler);
      const freed = performance.now();
      await until(async () => codeOf(await witness.spin(service, true)) === '200', 'spins go on');
      const gap = Math.round(performance.now() - freed);
      enough = true;
      await spinning;
      await annotate(`spins go on ${gap} ms after there is room again`);
      expectWithin(gap, 10_000);
      await witness.resolve(service);
      await witness.flushed(service);
      const { answers, wrong } = await witness.judge();
      expect(wrong).toEqual([]);
      expect(answers['200']).toBeGreaterThan(40);
      expect(await readdir(folder)).not.toContain('filler');
    });

    test.each(['operations.md', 'runbook.md', 'production.md'])(
      '%s says that a full disk ends Redis and that Redis must be started again',
      async (page) => {
        const text = await readFile(join(ROOT, 'docs', page), 'utf8');
        expect(text).toMatch(/disk[^|]*\bends\b|ends when its disk is full/);
        expect(text).toMatch(/then start Redis|then a start|must restart it/);
      },
    );
  },
);
