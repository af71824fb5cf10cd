/**
 * Tests the pages of /docs in a real Chromium: search, tabs, copying, trying an operation, use on a phone,
 * and accessibility in light and dark mode.
 */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ERRORS } from '../../src/domain/errors.js';
import { addressOf, PAGES } from '../../tools/docs/pages.js';
import { freshStores } from '../setup/freshStores.js';
import { startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { TestStores } from '../support/stores.js';

/** Paths where Debian and other distributions install the browser. The variable CHROMIUM overrides them. */
const PROGRAM = [
  process.env.CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]
  .filter((path) => path !== undefined)
  .find((path) => existsSync(path));
/**
 * A folder for screenshots of the pages: in light mode, in dark mode and on a phone. No screenshots are taken
 * if it is not set.
 */
const PICTURES = process.env.DOCS_PICTURES;
const WAIT_MS = 60_000;
const PHONE = { width: 390, height: 800 };
const WIDE = { width: 1280, height: 800 };
/** Paths of one page of each kind. */
const LOOKED_AT = [
  '',
  '/quick-start',
  '/api',
  '/errors',
  '/webhooks',
  '/par-sheets',
  '/go-live',
  '/verify',
  '/nope',
];

async function openBrowser(): Promise<Browser | undefined> {
  try {
    if (PROGRAM === undefined) throw new Error('none is installed');
    const args = ['--no-sandbox', '--disable-dev-shm-usage'];
    return await chromium.launch({ executablePath: PROGRAM, args, timeout: WAIT_MS });
  } catch (error) {
    process.stderr.write(`The pages are not tested in Chromium: ${(error as Error).message}\n`);
    return undefined;
  }
}

const browser = await openBrowser();

describe.skipIf(browser === undefined)('the pages of /docs', { timeout: 5 * WAIT_MS }, () => {
  let stores: TestStores;
  let service: Awaited<ReturnType<typeof startService>>;
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  /** Errors of the browser, and requests to other hosts than the service. */
  const complaints: string[] = [];

  beforeAll(async () => {
    stores = await freshStores();
    service = await startService(stores, { CELLS: '1' });
  });
  afterAll(async () => {
    await browser?.close();
    await service?.stop();
    await stores?.drop();
  });

  async function opened(
    path: string,
    viewport = WIDE,
    colorScheme: 'light' | 'dark' = 'light',
  ): Promise<Page> {
    const context = await browser!.newContext({
      viewport,
      colorScheme,
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    const page = await context.newPage();
    page.setDefaultTimeout(WAIT_MS);
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('request', (request) => {
      if (!request.url().startsWith('data:') && !request.url().startsWith(service.base))
        complaints.push(`asked ${request.url()}`);
    });
    page.on('console', (message) => {
      // A refused request of "Try it" is a valid result.
      if (message.type() === 'error' && !message.text().includes('status of 4'))
        complaints.push(message.text());
    });
    await page.goto(`${service.base}/docs${path}`);
    return page;
  }

  test('the docs search finds an error, a section of the contract, and an operation', async () => {
    const page = await opened('');
    const field = page.getByRole('combobox', { name: 'Search the documentation' });
    await page.keyboard.press('/');
    await page.keyboard.type('KS-4103');
    await page.getByRole('option').first().getByText('The wager must equal').waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL('**/docs/errors#KS-4103');
    await field.fill('order of checks');
    await page.getByRole('option', { name: /8\.2 Order of checks/ }).waitFor();
    await field.fill('dealRo');
    await page.getByRole('option', { name: /deal/ }).first().waitFor();
    await field.fill('nothing-has-this');
    await page.getByText('Nothing has').waitFor();
    await page.context().close();
  });

  test('the table of errors breaks no code', async () => {
    const page = await opened('/errors');
    const lines = await page
      .locator('tr[id^=KS-] > td:first-child a')
      .evaluateAll((links) => links.map((link) => link.getClientRects().length));
    expect(lines.length).toBe(Object.keys(ERRORS).length);
    expect([...new Set(lines)]).toEqual([1]);
    await page.context().close();
  });

  test('the docs show examples with the address of the service in the chosen language, and copy them', async () => {
    const page = await opened('/api#spin');
    const spin = page.locator('section[aria-labelledby=spin]');
    expect(await spin.locator('pre').first().innerText()).toContain(`${service.base}/api/partner/v1/spin`);
    await spin.getByRole('tab', { name: 'Python' }).click();
    await spin.getByRole('tabpanel').getByText('once("/spin"').waitFor();
    await page.keyboard.press('ArrowLeft');
    await spin.getByRole('tabpanel').getByText('spindle.spin(').waitFor();
    await spin.getByRole('tabpanel').getByRole('button', { name: 'Copy' }).click();
    await spin.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(
      /^const answer = await spindle\.spin\(\{/,
    );
    await page.goto(`${service.base}/docs/quick-start`);
    await page.getByRole('tabpanel').getByText('await spindle.spin(').waitFor();
    expect(await page.locator('body').innerText()).not.toContain('spindle.example.com');
    await page.context().close();
  });

  test('the docs try an operation with a sandbox key without storing the key, and refuse a production key', async () => {
    const { key } = await service.newPartner();
    const gameId = await service.newGame(key, parSheet('classic-3-reel'));
    const page = await opened('/api#spin');
    const section = page.locator('section[aria-labelledby=spin]');
    await section.getByRole('button', { name: 'Try it: spin' }).click();
    const form = page.getByRole('form', { name: 'Try spin' });
    const production = await service.newPartner({ environment: 'production' });
    await form.getByLabel('Sandbox key').fill(production.key);
    await form.getByRole('button', { name: 'Send POST' }).click();
    await form.getByText('Nothing was sent, because this is a production key').waitFor();
    await form.getByLabel('Sandbox key').fill(key);
    const body = JSON.stringify({ gameId, playerId: 'tried', wagerUsd: 0.25, requestId: 'tried-1' });
    await form.getByLabel('Body').fill(body);
    await form.getByRole('button', { name: 'Send POST' }).click();
    await form.getByText('200 in').waitFor();
    const { body: player } = await service.partner<{ totalSpins: number }>('GET', '/players/tried', key);
    expect(player).toMatchObject({ playerId: 'tried' });
    expect(
      await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])'),
    ).not.toContain(key);
    await page.reload();
    await section.getByRole('button', { name: 'Try it: spin' }).click();
    expect(await page.getByRole('form', { name: 'Try spin' }).getByLabel('Sandbox key').inputValue()).toBe(
      '',
    );
    await page.context().close();
  });

  test('the docs fit a phone: no content is wider, errors become cards, and the menu opens', async () => {
    for (const path of LOOKED_AT) {
      const page = await opened(path, PHONE);
      expect(await page.evaluate('document.documentElement.scrollWidth'), path).toBeLessThanOrEqual(
        PHONE.width,
      );
      await picture(page, `${path.slice(1) || 'index'}-phone`);
      await page.context().close();
    }
    const page = await opened('/errors#KS-4103', PHONE);
    const cell = page.locator('#KS-4103 td').nth(4);
    const box = (await cell.boundingBox())!;
    expect(box.x + box.width).toBeLessThanOrEqual(PHONE.width);
    await picture(page, 'errors-row-phone', false);
    await page.getByRole('button', { name: 'Menu' }).click();
    await picture(page, 'menu-phone', false);
    await page.getByRole('navigation').getByRole('link', { name: 'Requests' }).click();
    await page.waitForURL('**/docs/requests');
    await page.context().close();
  });

  // Each page has its own test, because axe takes tens of seconds for the largest page on a busy machine.
  test.each(PAGES.flatMap((page) => [WIDE, PHONE].map((viewport) => ({ path: addressOf(page), viewport }))))(
    'axe finds no fault in the docs page $path at $viewport.width px, in light and dark mode',
    async ({ path, viewport }) => {
      const page = await opened(path.slice('/docs'.length), viewport);
      expect(await foundByAxe(page)).toEqual([]);
      // The layout is the same in dark mode, so only the colours are checked.
      await page.emulateMedia({ colorScheme: 'dark' });
      expect(await foundByAxe(page, 'color-contrast'), 'in the dark').toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(viewport.width);
      await page.context().close();
    },
  );

  test.each([WIDE, PHONE])(
    'axe finds no fault in the docs with search, menu and the try form open at $width px',
    async (viewport) => {
      const page = await opened('/play-api', viewport);
      await page
        .getByRole('button', { name: /^Try it/ })
        .first()
        .click();
      await page.getByRole('combobox', { name: 'Search the documentation' }).fill('balance');
      await page.getByRole('option').first().waitFor();
      await expectNothing(page, 'search');
      if (viewport === PHONE) {
        await page.getByRole('button', { name: 'Menu' }).click();
        await expectNothing(page, 'menu');
      }
      await page.context().close();
    },
  );

  test('the docs show the fields of a request beside its samples on a wide screen, and no sample hides text', async () => {
    const page = await opened('/api#spin');
    const [fields, samples] = await page.locator('section[aria-labelledby=spin] .request > div').all();
    const [left, right] = [(await fields!.boundingBox())!, (await samples!.boundingBox())!];
    expect(left.x + left.width).toBeLessThanOrEqual(right.x);
    expect(right.y).toBe(left.y);
    await page.context().close();
    for (const path of ['/quick-start', '/reconcile', '/webhooks', '/api'])
      for (const viewport of [WIDE, PHONE]) {
        const wrapped = await opened(path, viewport);
        const hidden = await wrapped.evaluate(
          `[...document.querySelectorAll('main pre:not(.drawing)')].filter((block) => block.scrollWidth > block.clientWidth).length`,
        );
        expect(hidden, `${path} at ${viewport.width}`).toBe(0);
        await wrapped.context().close();
      }
  });

  test('the docs keep the sidebar in view and contact no other host', async () => {
    const page = await opened('/contract#14-errors');
    await page.getByRole('navigation').getByRole('link', { name: 'Contract' }).waitFor();
    expect((await page.getByRole('navigation').boundingBox())!.y).toBeGreaterThanOrEqual(0);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  /** @param rule the only rule to check, or all rules if absent */
  async function foundByAxe(page: Page, rule?: string): Promise<string[]> {
    await page.evaluate(axe);
    const only = rule === undefined ? '' : `, runOnly: ['${rule}']`;
    const options = `{ resultTypes: ['violations']${only} }`;
    return page.evaluate(
      `axe.run(${options}).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 3).map(({ html }) => html.slice(0, 120)).join(' ')))`,
    );
  }

  async function expectNothing(page: Page, what: string): Promise<void> {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await foundByAxe(page), `${what}, ${colorScheme}`).toEqual([]);
      await picture(page, `${what}-${page.viewportSize()!.width}-${colorScheme}`, false);
    }
  }

  async function picture(page: Page, name: string, isWhole = false): Promise<void> {
    if (PICTURES === undefined) return;
    mkdirSync(PICTURES, { recursive: true });
    await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: isWhole });
  }
});
