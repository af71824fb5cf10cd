/** Tests in a real Chromium what the console, and `spindle overview`, say while a store is away. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openBrowser } from '../support/chromium.js';
import { OPERATOR_KEY } from '../support/client.js';
import { startService } from '../support/service.js';
import { type OwnStores, ownStores } from '../support/stores.js';
import { until } from '../support/wait.js';

const WAIT_MS = 60_000;

const browser = await openBrowser('The console during outages');

describe.skipIf(browser === undefined)('the console during outages', { timeout: 4 * WAIT_MS }, () => {
  let stores: OwnStores;
  let service: Awaited<ReturnType<typeof startService>>;
  let page: Page;

  beforeAll(async () => {
    stores = await ownStores();
    service = await startService(stores);
    page = await newPage();
    await signIn(page);
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  });
  afterAll(async () => {
    await browser?.close();
    await service?.stop();
    await stores?.drop();
  });

  async function newPage(): Promise<Page> {
    const made = await (await browser!.newContext()).newPage();
    made.setDefaultTimeout(WAIT_MS);
    return made;
  }
  async function signIn(on: Page): Promise<void> {
    await on.goto(`${service.base}/console`);
    await on.getByLabel('Operator key').fill(OPERATOR_KEY);
    await on.getByRole('button', { name: 'Sign in' }).click();
  }
  const go = async (path: string, heading: string): Promise<void> => {
    await page.goto(`${service.base}/console#/${path}`);
    await page.getByRole('heading', { level: 1, name: heading }).waitFor();
  };
  const isListed = async (name: string): Promise<boolean> =>
    (await service.request('GET', '/statusz')).text.includes(`"name":"${name}"`);
  const banner = () => page.getByRole('alert').filter({ hasText: 'Redis does not respond' });
  const quiet = () => page.getByText('Nothing needs attention');

  test('every page says in red that spins are refused while Redis is away, and the overview never that all is well', async () => {
    await quiet().waitFor();
    await stores.redis.stop();
    await banner().waitFor();
    expect(await banner().innerText()).toContain('All spins are refused');
    expect(await banner().getAttribute('class')).toBe('banner');
    const item = page.getByRole('main').getByRole('listitem').filter({ hasText: 'Redis does not respond' });
    await item.waitFor();
    expect(await quiet().count()).toBe(0);
    for (const [path, heading] of [
      ['partners', 'Partners'],
      ['audit', 'Audit log'],
    ] as const) {
      await go(path, heading);
      await banner().waitFor();
    }
    await stores.redis.start();
    await banner().waitFor({ state: 'detached' });
    await go('overview', 'Overview');
    await quiet().waitFor();
  });

  test('a reload while Postgres is away says that the session is kept, and opens the console once it is back', async () => {
    await stores.postgres.stop();
    await until(() => isListed('postgres-away'), 'the outage is known');
    await page.reload();
    await page.getByText('Postgres does not respond; your session is kept').waitFor();
    expect(await page.getByLabel('Operator key').count()).toBe(0);
    await stores.postgres.start();
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  });

  test('signing in while Postgres is away says that the key could not be checked', async () => {
    await stores.postgres.stop();
    await until(() => isListed('postgres-away'), 'the outage is known');
    const other = await newPage();
    await signIn(other);
    await other.getByText('Postgres does not respond; your key could not be checked').waitFor();
    await stores.postgres.start();
    await until(async () => !(await isListed('postgres-away')), 'Postgres is back');
  });
});
