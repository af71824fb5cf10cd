/** Tests that `npm run demo:history` creates an installation with a history and consistent books. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { wrongClockMissing } from '../chaos/wrongClock.js';
import { ROOT } from '../support/root.js';
import { spawnService } from '../support/service.js';

/** Time limit in ms. On an idle machine the run takes a minute. */
const MADE_WITHIN_MS = 900_000;
const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'spindle-history-test-'));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.skipIf(wrongClockMissing() !== undefined)(
  'makes a short demo history with consistent books, which the service can then serve',
  { timeout: MADE_WITHIN_MS },
  async () => {
    const data = join(folder, 'data');
    const main = join(ROOT, 'dist', 'test', 'history', 'main.js');
    const { stdout } = await run(process.execPath, [main, '--data', data, '--days', '1', '--share', '0.02']);
    expect(stdout).toMatch(/^CLEAN: [1-9]\d* ledger rows/m);
    const keys = JSON.parse(readFileSync(join(data, 'demo-keys.json'), 'utf8'));
    const service = await spawnService({ DATA_DIR: data, PORT: '0', METRICS_PORT: '0', LOG_LEVEL: 'error' });
    try {
      const read = async <T>(path: string): Promise<T> => {
        const headers = { 'X-API-Key': keys.operators['jane.doe'] };
        return (await fetch(`${service.base}/api/operator/v1${path}`, { headers })).json() as T;
      };
      const { days } = await read<{ days: { spins: number }[] }>('/traffic?days=2');
      expect(days[0]!.spins).toBeGreaterThan(0);
      const { hours } = await read<{ hours: { spins: number }[] }>('/traffic/hours?hours=48');
      expect(hours.filter(({ spins }) => spins > 0).length).toBeGreaterThan(1);
      const { entries } = await read<{ entries: unknown[] }>('/audit-log?action=partner.create');
      // Three partners belong to the history, and the first start creates one.
      expect(entries).toHaveLength(4);
    } finally {
      await service.stop();
    }
  },
);
