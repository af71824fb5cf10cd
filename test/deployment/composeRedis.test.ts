/** Runs the service on a Redis that is configured as in docker-compose.yml. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/app/config.js';
import { freePort } from '../../src/app/embedded/index.js';
import { findRedisProgram, redisEnvironment } from '../../src/app/embedded/redisServer.js';
import { openRedis } from '../../src/app/openStores.js';
import { closing } from '../../src/platform/runtime/service.js';
import { ServiceGroup } from '../../src/platform/runtime/serviceGroup.js';
import { ROOT } from '../support/root.js';
import { until } from '../support/wait.js';
import { compose } from './compose.js';

const { services } = compose;
/** Returns the configuration of the service in one role. */
const settings = (role: 'http' | 'worker') => readConfig(services[role]!.environment);

describe('the Redis of docker-compose.yml', () => {
  const opened = new ServiceGroup('test', pino({ level: 'silent' }));
  afterAll(() => opened.stop());

  test('the service accepts the Redis of docker-compose.yml, because this Redis keeps all data that it acknowledges', async () => {
    const { file, ...program } = await findRedisProgram(join(ROOT, '.cache'), () => {});
    const dir = await mkdtemp(join(tmpdir(), 'spindle-compose-'));
    await opened.add(closing('folder', () => rm(dir, { recursive: true })));
    const port = await freePort();
    const [name, ...args] = services.redis!.command!.split(/\s+/).map((word) => (word === '""' ? '' : word));
    expect(name).toBe('redis-server');
    const server = spawn(file, [...args, '--port', String(port), '--dir', dir, '--bind', '127.0.0.1'], {
      env: redisEnvironment({ file, ...program }),
      stdio: 'ignore',
    });
    const ended = once(server, 'exit');
    const end = (): Promise<unknown> => {
      server.kill('SIGTERM');
      return ended;
    };
    await opened.add(closing('Redis', end));
    const url = new URL(settings('http').REDIS_URL!);
    url.hostname = '127.0.0.1';
    url.port = String(port);
    await until(async () => {
      const attempt = new ServiceGroup('attempt', pino({ level: 'silent' }));
      try {
        await openRedis(url.href, settings('http'), pino({ level: 'silent' }), attempt);
        return true;
      } catch (error) {
        expect((error as Error).message).toMatch(/Cannot connect to Redis/);
        return false;
      } finally {
        await attempt.stop();
      }
    }, 'Redis answers');
  });
});
