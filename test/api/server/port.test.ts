import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../../src/app/embedded/index.js';
import { freshStores } from '../../setup/freshStores.js';
import { HTTP_SERVER } from '../../support/httpServer.js';
import { environment, spawnService, startService } from '../../support/service.js';
import type { TestStores } from '../../support/stores.js';

let ours: TestStores;
let others: TestStores;
let service: Awaited<ReturnType<typeof startService>>;
let port: string;

beforeAll(async () => {
  ours = await freshStores();
  others = await freshStores();
  service = await startService(ours);
  port = String(service.running.port);
});
afterAll(async () => {
  await service.stop();
  await ours.drop();
  await others.drop();
});

describe('a port that is in use', () => {
  test('refuses to start on a port of a service with another database, with an error message of one line', async () => {
    await expect(startService(others, { PORT: port })).rejects.toThrow(
      /^Port \d+ of 127\.0\.0\.1 is in use by a service with another database \(HOST, PORT\)$/,
    );
  });

  test('refuses to start on a port of another program, with an error message of one line', async () => {
    const holder: Server = createServer((socket) => socket.end('SSH-2.0-none\r\n'));
    await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
    const { port: held } = holder.address() as { port: number };
    await expect(startService(ours, { PORT: String(held), ROLES: 'http' })).rejects.toThrow(
      /^Port \d+ of 127\.0\.0\.1 is in use by another program \(HOST, PORT\)$/,
    );
    holder.close();
  });

  test.runIf(HTTP_SERVER === 'uws')(
    'a service process shares its port with another process on the same database',
    async () => {
      const env = environment(ours, { ROLES: 'http', PORT: String(await freePort()) });
      const first = await spawnService(env);
      const second = await spawnService(env);
      expect(second.base).toBe(first.base);
      for (const each of [first, second]) expect(await each.end()).toBe(0);
    },
  );
});
