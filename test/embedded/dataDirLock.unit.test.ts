/** The lock of the data folder beside versions that name it in another way. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lockDataDir } from '../../src/embedded/index.js';

test.skipIf(process.platform !== 'linux')('is held where a version up to 1.4.0 holds it', async () => {
  const base = await mkdtemp(join(tmpdir(), 'spindle-lock-'));
  try {
    const { dataDir, release } = await lockDataDir(base);
    await release();
    const name = createHash('sha256').update(dataDir).digest('hex').slice(0, 32);
    const older = createServer((socket) => socket.destroy());
    older.listen(`\0spindle-${name}`.padEnd(108, '\0'));
    await once(older, 'listening');
    await expect(lockDataDir(base)).rejects.toThrow(/is in use by another Spindle/);
    older.close();
    await once(older, 'close');
    const lock = await lockDataDir(base);
    await lock.release();
  } finally {
    await rm(base, { recursive: true });
  }
});
