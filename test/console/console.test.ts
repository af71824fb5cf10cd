/** The console in a real Chromium: what an operator does with it, that it is accessible, and that an auditor changes nothing. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import { OPERATOR_KEY } from '../support/client.js';
import { startReceiver } from '../support/receiver.js';
import { startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { TestStores } from '../support/stores.js';
import { until } from '../support/wait.js';

/** Where Debian and others put the browser; CHROMIUM names another. */
const PROGRAM = [
  process.env.CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]
  .filter((path) => path !== undefined)
  .find((path) => existsSync(path));
/** A folder for pictures of every page, light and dark; absent: none are taken. */
const PICTURES = process.env.CONSOLE_PICTURES;
const WAIT_MS = 60_000;
/** Every page, in light and dark: half a second each where nothing else runs. */
const ALL_PAGES_MS = 300_000;
const LAUNCH_MS = 60_000;
const NARROW = { width: 400, height: 800 };
const WIDE = { width: 1280, height: 800 };

/** Undefined where none is installed, or the one that is does not start here. */
async function openBrowser(): Promise<Browser | undefined> {
  try {
    if (PROGRAM === undefined) throw new Error('none is installed');
    const args = ['--no-sandbox', '--disable-dev-shm-usage'];
    return await chromium.launch({ executablePath: PROGRAM, args, timeout: LAUNCH_MS });
  } catch (error) {
    process.stderr.write(`The console is not tested in Chromium: ${(error as Error).message}\n`);
    return undefined;
  }
}

const browser = await openBrowser();

describe.skipIf(browser === undefined)('the console', { timeout: 4 * WAIT_MS }, () => {
  let stores: TestStores;
  let service: Awaited<ReturnType<typeof startService>>;
  let page: Page;
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  /** What the browser complained of, and what was asked of others than the service. */
  const complaints: string[] = [];
  let partnerId: number;
  let gameId: number;
  let spinId: string;
  let key: string;
  const day = new Date().toISOString().slice(0, 10);

  beforeAll(async () => {
    stores = await freshStores();
    service = await startService(stores, { WEBHOOK_RETRY_DELAYS_MS: '20' });
    page = await openPage();
  });
  afterAll(async () => {
    await browser?.close();
    await service?.stop();
    await stores?.drop();
  });

  async function openPage(): Promise<Page> {
    const context = await browser!.newContext({ viewport: WIDE, colorScheme: 'light' });
    const opened = await context.newPage();
    opened.setDefaultTimeout(WAIT_MS);
    opened.on('pageerror', (error) => complaints.push(error.message));
    opened.on('console', (message) => {
      // The first look for a session, and a wrong key, are refused.
      if (message.type() === 'error' && !message.text().includes('401')) complaints.push(message.text());
    });
    opened.on('request', (request) => {
      if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(service.base))
        complaints.push(`asked ${request.url()}`);
    });
    opened.on('dialog', (dialog) => void dialog.accept());
    return opened;
  }

  async function signIn(on: Page, operatorKey: string): Promise<void> {
    await on.goto(`${service.base}/console`);
    await on.getByLabel('Operator key').fill(operatorKey);
    await on.getByRole('button', { name: 'Sign in' }).click();
  }

  /** In the suite each page is looked at in one of both, by turns. */
  let looks = 0;
  const schemesOf = (): ('light' | 'dark')[] =>
    process.env.CONSOLE === 'whole' ? ['light', 'dark'] : [looks++ % 2 === 0 ? 'light' : 'dark'];

  const go = async (path: string, heading: string, on = page): Promise<void> => {
    await on.goto(`${service.base}/console#/${path}`);
    await on.getByRole('heading', { level: 1, name: heading }).waitFor();
    await on.getByText('Loading…').first().waitFor({ state: 'detached' });
  };
  const form = (name: string) => page.getByRole('form', { name, exact: true });

  test('refuses a wrong key, and signs in with a right one', async () => {
    await signIn(page, 'no-such-operator-key');
    await page.getByRole('alert').getByText('The API key is not valid').waitFor();
    await signIn(page, OPERATOR_KEY);
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    await page.getByText('operator (admin)').waitFor();
    const cookie = (await page.context().cookies(`${service.base}/api/operator/v1/session`))[0];
    expect(cookie).toMatchObject({ name: 'spindle_session', httpOnly: true, sameSite: 'Strict' });
    expect(await page.evaluate('document.cookie')).toBe('');
  });

  test('makes a partner, a key, and a raffle from a CSV file after a look at its return', async () => {
    await go('partners', 'Partners');
    await form('New partner').getByLabel('Slug').fill('acme');
    await form('New partner').getByLabel('Name').fill('Acme Games');
    await form('New partner').getByRole('button').click();
    await page.getByRole('heading', { level: 1, name: /^Partner \d+$/ }).waitFor();
    partnerId = Number((await page.getByRole('heading', { level: 1 }).innerText()).split(' ')[1]);
    await form('New key').getByRole('button').click();
    key = await page.locator('.secret code').innerText();
    expect((await service.partner('GET', '/version', key)).status).toBe(200);

    await go(`raffles?partner=${partnerId}`, 'Raffles');
    const raffle = form('New raffle');
    await raffle.getByLabel('Name', { exact: false }).first().fill('Spring Raffle');
    await raffle.getByLabel('System name').fill('SPRING');
    await raffle.getByLabel('Tickets', { exact: true }).fill('100');
    await raffle.getByLabel('Prizes from a CSV file').setInputFiles({
      ...{ name: 'prizes.csv', mimeType: 'text/csv' },
      buffer: Buffer.from('prizeName,prizeTier,valueUsd,count\n"Car, ""red""",6,60,1\r\nPen,1,1.5,20\n'),
    });
    await page.getByText('90.00 %').waitFor();
    await raffle.getByRole('button', { name: 'Make raffle' }).click();
    await page.getByText('Its pool is being sealed').waitFor();
    const { body } = await service.operator<{ games: { gameConfigId: number; poolSize: number }[] }>(
      'GET',
      `/games?partnerId=${partnerId}`,
    );
    expect(body.games).toMatchObject([{ displayName: 'Spring Raffle', poolSize: 100 }]);
  });

  test('shows a spin in the overview, in the statement of its player, and with all that is known', async () => {
    gameId = await service.newGame(key, parSheet('classic-3-reel'));
    await go('overview', 'Overview');
    const spun = await service.spin(key, { gameId, playerId: 'alice', wagerUsd: 0.25, requestId: 'r-1' });
    expect(spun.status).toBe(200);
    spinId = spun.body.spinId as string;
    await page.getByRole('row').filter({ hasText: 'acme' }).getByText('$0.25').first().waitFor();
    await go('players', 'Players');
    await form('Find a player').getByLabel('Partner id').fill(String(partnerId));
    await form('Find a player').getByLabel('Player', { exact: false }).last().fill('alice');
    await form('Find a player').getByRole('button').click();
    await page.getByRole('link', { name: spinId.slice(0, 8) }).click();
    await page.getByText('Commitment').waitFor();
    await page.getByRole('definition').getByText('r-1').waitFor();
  });

  test('adjusts a player, whose statement shows it', async () => {
    await go(`players/${partnerId}/alice`, 'Player alice');
    await form('Adjustment').getByLabel('Amount in USD').fill('12.5');
    await form('Adjustment').getByLabel('Reason').fill('goodwill');
    await form('Adjustment').getByRole('button').click();
    await page.getByRole('cell', { name: 'adjustment' }).waitFor();
    await page.getByRole('cell', { name: '$12.50' }).waitFor();
  });

  test('suspends a game, whose spins are refused then', async () => {
    await go(`games/${gameId}`, `Game ${gameId}`);
    await page.getByRole('button', { name: 'Suspend the game' }).click();
    await page.getByText('The game is suspended.').waitFor();
    const spun = await service.spin(key, { gameId, playerId: 'alice', wagerUsd: 0.25 });
    expect(spun.body.errorCode).toBe('KS-4202');
    await page.getByRole('button', { name: 'Resume the game' }).click();
    await page.getByText('The game is active.').waitFor();
  });

  test('sends a failed delivery again, which arrives', async () => {
    let status = 503;
    const receiver = await startReceiver((_request, response) => void response.writeHead(status).end());
    const events = ['spin.large_win'];
    const registered = await service.partner('POST', '/webhooks', key, {
      ...{ url: receiver.url(), events },
    });
    await service.partner('POST', `/webhooks/${registered.body.id}/test`, key, { event: events[0] });
    const failed = async () => (await service.operator('GET', '/deliveries')).body.total;
    await until(async () => (await failed()) === 1, 'the delivery has failed', WAIT_MS);
    await go('webhooks', 'Webhooks');
    await page.getByRole('cell', { name: receiver.url() }).waitFor();
    status = 200;
    const before = receiver.received.length;
    await page.getByRole('button', { name: 'Send again' }).click();
    await page.getByText('No delivery is failed.').waitFor();
    await until(() => receiver.received.length > before, 'the delivery arrives', WAIT_MS);
    await receiver.close();
  });

  test(
    'has no page with a fault of accessibility, and none that is wider than 400 pixels',
    async () => {
      expect((await service.operator('POST', `/partners/${partnerId}/settlements/${day}`)).status).toBe(201);
      const pages: readonly (readonly [string, string])[] = [
        ['overview', 'Overview'],
        ['partners', 'Partners'],
        [`partners/${partnerId}`, `Partner ${partnerId}`],
        ['games', 'Games'],
        [`games/${gameId}`, `Game ${gameId}`],
        ['raffles', 'Raffles'],
        ['players', 'Players'],
        [`players/${partnerId}/alice`, 'Player alice'],
        [`lookup?id=${spinId}`, 'Look up'],
        ['webhooks?status=delivered', 'Webhooks'],
        ['settlements', 'Settlements'],
        [`settlements/${partnerId}/${day}`, `Report of ${day}`],
        ['audit', 'Audit log'],
        ['ledger', 'Ledger days'],
        ['cells', 'Cells'],
        ['operators', 'Operators'],
      ];
      await page.goto('about:blank');
      await page.goto(`${service.base}/console`);
      for (const [path, heading] of pages) {
        await go(path, heading);
        for (const colorScheme of schemesOf()) {
          await page.emulateMedia({ colorScheme });
          await page.evaluate(axe);
          const { violations } = await page.evaluate<{
            violations: { id: string; nodes: { html: string }[] }[];
          }>('axe.run()');
          const found = violations.map(
            ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`,
          );
          expect(found, `${path} ${colorScheme}`).toEqual([]);
          await picture(
            `${path.replace(/[/?=].*$/, '')}${path.includes('/') ? '-detail' : ''}-${colorScheme}`,
          );
        }
        await page.setViewportSize(NARROW);
        expect(await page.evaluate('document.documentElement.scrollWidth'), path).toBeLessThanOrEqual(
          NARROW.width,
        );
        await page.setViewportSize(WIDE);
      }
      await page.emulateMedia({ colorScheme: 'light' });
    },
    ALL_PAGES_MS,
  );

  test(
    'lets an auditor read every page and change nothing',
    async () => {
      const made = await service.operator('POST', '/operators', { name: 'audrey', role: 'auditor' });
      const auditor = await openPage();
      await signIn(auditor, made.body.apiKey as string);
      await auditor.getByText('audrey (auditor)').waitFor();
      const paths = [
        ['partners', 'Partners'],
        [`partners/${partnerId}`, `Partner ${partnerId}`],
        [`games/${gameId}`, `Game ${gameId}`],
        ['raffles', 'Raffles'],
        [`players/${partnerId}/alice`, 'Player alice'],
        ['webhooks?status=delivered', 'Webhooks'],
        ['settlements', 'Settlements'],
        ['operators', 'Operators'],
      ] as const;
      for (const [path, heading] of paths) {
        await go(path, heading, auditor);
        const buttons = await auditor.getByRole('button').allInnerTexts();
        expect(
          buttons.filter((name) => !['Skip to the content', 'Sign out', 'Show', 'Look up'].includes(name)),
          path,
        ).toEqual([]);
      }
      // What the pages leave out, the service refuses.
      const status = await auditor.evaluate<number>(`(async () => {
      const { csrfToken } = await (await fetch('/api/operator/v1/session')).json();
      const headers = { 'X-CSRF-Token': csrfToken };
      const body = JSON.stringify({ status: 'SUSPENDED' });
      return (await fetch('/api/operator/v1/games/${gameId}', { method: 'PATCH', headers, body })).status;
    })()`);
      expect(status).toBe(403);
      await auditor.getByRole('button', { name: 'Sign out' }).click();
      await auditor.getByLabel('Operator key').waitFor();
      await auditor.context().close();
    },
    ALL_PAGES_MS,
  );

  test('asks nobody but the service, and breaks no rule of its own', () => {
    expect(complaints.filter((complaint) => !complaint.includes('403'))).toEqual([]);
  });

  async function picture(name: string): Promise<void> {
    if (PICTURES === undefined) return;
    mkdirSync(PICTURES, { recursive: true });
    await page.screenshot({ path: join(PICTURES, `${name}.png`) });
  }
});
