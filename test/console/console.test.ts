/**
 * Tests the console in a real Chromium: the tasks of an operator, accessibility, and that an auditor can
 * change nothing.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import { openBrowser } from '../support/chromium.js';
import { OPERATOR_KEY } from '../support/client.js';
import { startReceiver } from '../support/receiver.js';
import { dealUntil, newTable } from '../support/rounds.js';
import { constants, startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { TestStores } from '../support/stores.js';
import { until } from '../support/wait.js';

/**
 * A folder for screenshots of every page in light and dark mode. No screenshots are taken if it is not set.
 */
const PICTURES = process.env.CONSOLE_PICTURES;
const WAIT_MS = 60_000;
/**
 * Time limit in ms for all pages in light and dark mode, at half a second for each page on an idle machine.
 */
const ALL_PAGES_MS = 300_000;
const GAME = 'classic-three';
/** Buttons that an auditor may see, because they change nothing. */
const READING =
  /^(Skip to the content|Sign out|Show( this time)?|Look up|Find the request|Download (everything|these rows) as CSV|Search( Ctrl K)?|Go on)$/;
const NARROW = { width: 400, height: 800 };
const WIDE = { width: 1280, height: 800 };

const browser = await openBrowser('The console');

describe.skipIf(browser === undefined)("the operators' console", { timeout: 4 * WAIT_MS }, () => {
  let stores: TestStores;
  let service: Awaited<ReturnType<typeof startService>>;
  let page: Page;
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  /** Errors of the browser, and requests to other hosts than the service. */
  const complaints: string[] = [];
  let partnerId: number;
  let gameId: number;
  let spinId: string;
  let roundId: string;
  let parSheetId: number;
  let key: string;
  const day = new Date().toISOString().slice(0, 10);

  beforeAll(async () => {
    stores = await freshStores();
    service = await startService(stores, constants({ webhookRetryDelaysMs: [20] }));
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
      // The first check for a session, and a wrong key, are refused. These errors are expected.
      if (message.type() === 'error' && !message.text().includes('401')) complaints.push(message.text());
    });
    opened.on('request', (request) => {
      if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(service.base))
        complaints.push(`asked ${request.url()}`);
    });
    return opened;
  }

  async function signIn(on: Page, operatorKey: string): Promise<void> {
    await on.goto(`${service.base}/console`);
    await on.getByLabel('Operator key').fill(operatorKey);
    await on.getByRole('button', { name: 'Sign in' }).click();
  }

  /** The normal run opens each page in only one of the two colour schemes, alternately. */
  let looks = 0;
  const schemesOf = (): ('light' | 'dark')[] =>
    process.env.CONSOLE === 'whole' ? ['light', 'dark'] : [looks++ % 2 === 0 ? 'light' : 'dark'];

  const go = async (path: string, heading: string, on = page): Promise<void> => {
    await on.goto(`${service.base}/console#/${path}`);
    await on.getByRole('heading', { level: 1, name: heading }).waitFor();
    await on.getByText('Loading…').first().waitFor({ state: 'detached' });
  };
  /** The dialog with a question or the search; a form in a dialog may be open behind it. */
  const dialog = () => page.locator('dialog:not(.holds-form)');
  /** Presses a button that opens a form. */
  const open = (name: string) => page.getByRole('button', { name, exact: true }).click();
  const form = (name: string) => page.getByRole('form', { name, exact: true });

  test('the console refuses a wrong operator key and accepts the right one', async () => {
    await page.goto(`${service.base}/console`);
    await page.getByLabel('Operator key').waitFor();
    await until(
      () => page.evaluate<boolean>("document.activeElement?.getAttribute('name') === 'key'"),
      'the field has the focus',
      WAIT_MS,
    );
    await signIn(page, 'no-such-operator-key');
    await page.getByRole('alert').getByText('The API key is not valid').waitFor();
    await signIn(page, OPERATOR_KEY);
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    await page.getByText('operator (admin)').waitFor();
    const cookie = (await page.context().cookies(`${service.base}/api/operator/v1/session`))[0];
    expect(cookie).toMatchObject({ name: 'spindle_session', httpOnly: true, sameSite: 'Strict' });
    expect(await page.evaluate('document.cookie')).toBe('');
  });

  test('the console creates a partner, a key, and a raffle from a CSV file after a preview of its return', async () => {
    await go('partners', 'Partners');
    await open('New partner');
    await form('New partner').getByLabel('Slug').fill('acme');
    await form('New partner').getByLabel('Name').fill('Acme Games');
    await form('New partner').getByRole('button').click();
    await page.getByRole('heading', { level: 1, name: 'Acme Games' }).waitFor();
    partnerId = Number(new URL(page.url()).hash.split('/')[2]);
    await open('New key');
    await form('New key').getByRole('button').click();
    key = await page.locator('.secret code').innerText();
    expect((await service.partner('GET', '/version', key)).status).toBe(200);

    // The replaced key stays valid for its overlap.
    await go('partners/acme', 'Acme Games');
    const [first] = (
      await service.operator<{ keys: { keyId: number }[] }>('GET', `/partners/${partnerId}/keys`)
    ).body.keys;
    await open(`Rotate key ${first!.keyId}`);
    await form('Rotation').getByLabel('Overlap in hours').fill('2');
    await form('Rotation').getByRole('button').click();
    const rotated = await page.locator('.secret code').innerText();
    expect(rotated).not.toBe(key);
    for (const each of [key, rotated])
      expect((await service.partner('GET', '/version', each)).status).toBe(200);

    await go('partners/acme', 'Acme Games');
    await go('raffles?partner=acme', 'Raffles');
    await open('New raffle');
    const raffle = form('New raffle');
    await raffle.getByLabel('Name', { exact: false }).first().fill('Spring Raffle');
    await raffle.getByLabel('System name').fill('SPRING');
    await raffle.getByLabel('Tickets', { exact: true }).fill('100');
    await raffle.getByLabel('Prizes from a CSV file').setInputFiles({
      name: 'prizes.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from('prizeName,prizeTier,valueUsd,count\n"Car, ""red""",6,60,1\r\nPen,1,1.5,20\n'),
    });
    await page.getByText('90.00 %').waitFor();
    await raffle.getByRole('button', { name: 'Create raffle' }).click();
    await dialog().getByRole('heading', { name: 'Create Spring Raffle?' }).waitFor();
    await dialog().getByRole('button', { name: 'Create the raffle' }).click();
    await page.getByText('Its pool is being sealed').waitFor();
    const { body } = await service.operator<{ games: { gameConfigId: number; poolSize: number }[] }>(
      'GET',
      `/games?partnerId=${partnerId}`,
    );
    expect(body.games).toMatchObject([{ displayName: 'Spring Raffle', poolSize: 100 }]);
  });

  test('the console changes the expiry of a key from its row, and asks before the key never expires', async () => {
    const made = await service.operator<{ keyId: number }>('POST', `/partners/${partnerId}/keys`, {
      name: 'old back end',
      expiresAt: '2098-05-06T07:08:09Z',
    });
    const { keyId } = made.body;
    const expiry = async () =>
      (
        await service.operator<{ keys: { keyId: number; expiresAt: string | null }[] }>(
          'GET',
          `/partners/${partnerId}/keys`,
        )
      ).body.keys.find((row) => row.keyId === keyId)!.expiresAt;
    const row = page.getByRole('row').filter({ hasText: 'old back end' });
    const field = form('Expiry').getByLabel('Expires (UTC)');
    const change = async (): Promise<void> => {
      await open(`Change expiry of key ${keyId}`);
      await field.waitFor();
    };
    await go('partners/acme', 'Acme Games');

    // The field has the present expiry, so the form changes nothing if it is sent as it is.
    await change();
    expect(await field.inputValue()).toBe('2098-05-06T07:08');
    await form('Expiry').getByRole('button').click();
    await row.getByText('Nothing was changed.').waitFor();
    expect(await expiry()).toBe('2098-05-06T07:08:09.000Z');

    await change();
    await field.fill('');
    await form('Expiry').getByRole('button').click();
    await dialog().getByText('This key will never expire.').waitFor();
    expect(await expiry()).toBe('2098-05-06T07:08:09.000Z');
    await dialog().getByLabel('Reason').fill('no end was agreed');
    await dialog().getByRole('button', { name: 'Let it never expire' }).click();
    await row.getByRole('cell', { name: 'never', exact: true }).waitFor();
    expect(await expiry()).toBeNull();

    await change();
    await field.fill('2099-01-01T18:00');
    await form('Expiry').getByRole('button').click();
    await dialog().getByText('refused from 2099-01-01 18:00 UTC on').waitFor();
    await dialog().getByLabel('Reason').fill('the back end is replaced');
    await dialog().getByRole('button', { name: 'Change the expiry' }).click();
    await row.getByText('2099-01-01 18:00').first().waitFor();
    expect(await expiry()).toBe('2099-01-01T18:00:00.000Z');
  });

  test("the console shows a spin in the overview, in the player's statement, and with all its details", async () => {
    gameId = await service.api.newGame(key, GAME, parSheet('classic-3-reel'));
    const { body: sheets } = await service.operator<{ parSheets: { parSheetId: number }[] }>(
      'GET',
      '/par-sheets',
    );
    parSheetId = sheets.parSheets[0]!.parSheetId;
    await go('overview', 'Overview');
    const spun = await service.spin(key, { gameId, playerId: 'alice', wagerUsd: 0.25, requestId: 'r-1' });
    expect(spun.status).toBe(200);
    spinId = spun.body.spinId as string;
    await page.getByRole('row').filter({ hasText: 'Acme Games' }).getByText('$0.25').first().waitFor();
    await go('players', 'Players');
    await form('Find a player').getByRole('combobox').fill('acme');
    await form('Find a player').getByLabel('Player', { exact: false }).last().fill('alice');
    await form('Find a player').getByRole('button').click();
    // The link to the spin appears once in the player's view and once in the statement.
    await page
      .getByRole('link', { name: spinId.slice(0, 8) })
      .nth(1)
      .click();
    await page.getByText('Commitment').waitFor();
    await page.getByRole('definition').getByText('r-1').waitFor();

    // A complaint has the request id, or a time.
    await go('lookup', 'Look up');
    await form('Find a request').getByRole('combobox').fill('acme');
    await form('Find a request').getByLabel('Request id').fill('r-1');
    await form('Find a request').getByRole('button').click();
    await page.getByText('Commitment').waitFor();
    await go(`players/${partnerId}/alice?from=2020-01-01T00:00&to=2020-01-02T00:00`, 'Player alice');
    await page.getByText('No entries in this time.').waitFor();
  });

  test('each part of the page of a game says from how many spins on its return can be judged', async () => {
    const { body } = await service.operator<{ expected: { normalFromSpins: number } }>(
      'GET',
      `/games/${gameId}`,
    );
    const from = body.expected.normalFromSpins.toLocaleString('en-US');
    const verdict = `This return can't be judged before ${from} spins`;
    await go(`games/${gameId}`, GAME);
    await page.getByRole('definition').getByText(verdict).waitFor();
    await page.getByText(`${verdict}. It has 1; the table has the figures.`).waitFor();
    expect(await page.getByText('±').count()).toBe(0);
    await go('games', 'Games');
    await page.getByRole('row').filter({ hasText: GAME }).getByText(verdict).waitFor();
  });

  test("the console adjusts a player's balance, and the statement shows the adjustment", async () => {
    await go(`players/${partnerId}/alice`, 'Player alice');
    await open('Adjust the balance');
    await form('Adjustment').getByLabel('Amount in USD').fill('12.5');
    await form('Adjustment').getByLabel('Reason').fill('goodwill');
    await form('Adjustment').getByRole('button').click();
    await dialog().getByRole('heading', { name: 'Give $12.50 to alice?' }).waitFor();
    await dialog().getByRole('button', { name: 'Adjust' }).click();
    await page.getByRole('cell', { name: 'adjustment' }).waitFor();
    await page.getByRole('cell', { name: '$12.50' }).waitFor();
  });

  test("the console asks twice before a large adjustment, and requires the player's name to be typed", async () => {
    await go(`players/${partnerId}/alice`, 'Player alice');
    await open('Adjust the balance');
    await form('Adjustment').getByLabel('Amount in USD').fill('-1000.01');
    await form('Adjustment').getByLabel('Reason').fill('a mistake');
    await form('Adjustment').getByRole('button').click();
    await dialog().getByText('Adjustments are rarely this large').waitFor();
    await dialog().getByRole('button', { name: 'The amount is correct' }).click();
    const adjust = dialog().getByRole('button', { name: 'Adjust' });
    await adjust.waitFor();
    expect(await adjust.isDisabled()).toBe(true);
    await dialog().getByLabel('Type alice to confirm').fill('alic');
    expect(await adjust.isDisabled()).toBe(true);
    await dialog().getByLabel('Type alice to confirm').fill('alice');
    expect(await adjust.isDisabled()).toBe(false);
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    const statement = await service.operator<{ entries: { kind: string }[] }>(
      'GET',
      `/partners/${partnerId}/players/alice/statement`,
    );
    expect(statement.body.entries.filter(({ kind }) => kind === 'adjustment')).toHaveLength(1);
  });

  const sessionPath = '/api/operator/v1/session';
  const ENDED = 'Your session ended. Sign in again to go on.';
  const signInAgain = async (on: Page, operatorKey: string): Promise<void> => {
    await on.getByLabel('Operator key').fill(operatorKey);
    await on.getByRole('button', { name: 'Sign in' }).click();
  };

  test('a form keeps its text when the session ends, and is sent again only by the operator', async () => {
    const sent: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/adjustments') && request.method() === 'POST') sent.push(request.url());
    });
    await go(`players/${partnerId}/alice`, 'Player alice');
    await open('Adjust the balance');
    await form('Adjustment').getByLabel('Amount in USD').fill('7.25');
    await form('Adjustment').getByLabel('Reason').fill('kept over a sign-in');
    const csrfToken = await page.evaluate<string>(
      `fetch('${sessionPath}').then((answer) => answer.json()).then(({ csrfToken }) => csrfToken)`,
    );
    // The page's periodic reads wait, so that the form is what finds out that the session has ended.
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const isRead = (url: URL): boolean => url.pathname.startsWith('/api/operator/');
    await page.route(isRead, async (route) => {
      if (route.request().method() === 'GET') await released;
      await route.continue();
    });
    await page.evaluate(
      `fetch('${sessionPath}', { method: 'DELETE', headers: { 'X-CSRF-Token': '${csrfToken}' } })`,
    );
    const adjust = async (): Promise<void> => {
      await form('Adjustment').getByRole('button').click();
      await dialog().getByRole('button', { name: 'Adjust' }).click();
    };
    await adjust();
    await page.getByRole('dialog', { name: ENDED }).waitFor();
    release();
    await page.unrouteAll({ behavior: 'wait' });
    for (let times = 0; times < 3; times++) await page.keyboard.press('Escape');
    await signInAgain(page, 'no-such-operator-key');
    await page.getByRole('alert').getByText('The API key is not valid').waitFor();
    expect(await page.getByText(ENDED).isVisible()).toBe(true);

    await signInAgain(page, OPERATOR_KEY);
    await page.getByText(ENDED).waitFor({ state: 'detached' });
    expect(await form('Adjustment').getByLabel('Amount in USD').inputValue()).toBe('7.25');
    expect(await form('Adjustment').getByLabel('Reason').inputValue()).toBe('kept over a sign-in');
    expect(sent).toHaveLength(1);
    await adjust();
    await page.getByRole('cell', { name: '$7.25' }).waitFor();
    expect(sent).toHaveLength(2);
  });

  test('another operator who signs in on a page whose session ended gets a fresh page', async () => {
    const made = await service.operator('POST', '/operators', { name: 'olga', role: 'auditor' });
    const shared = await openPage();
    await signIn(shared, OPERATOR_KEY);
    await shared.getByText('operator (admin)').waitFor();
    await go(`players/${partnerId}/alice`, 'Player alice', shared);
    await shared.getByRole('button', { name: 'Adjust the balance' }).click();
    await shared.getByRole('form', { name: 'Adjustment' }).getByLabel('Amount in USD').fill('7.25');
    await shared.context().clearCookies();
    await shared.getByText(ENDED).waitFor();
    await signInAgain(shared, made.body.apiKey as string);
    await shared.getByText('olga (auditor)').waitFor();
    await shared.getByRole('heading', { level: 1, name: 'Player alice' }).waitFor();
    expect(await shared.getByRole('dialog').count()).toBe(0);
    await shared.context().close();
  });

  test('an open dialog closes when its page is left, and its action is not performed', async () => {
    const adjustments = async (): Promise<number> => {
      const path = `/partners/${partnerId}/players/alice/statement`;
      const statement = await service.operator<{ entries: { kind: string }[] }>('GET', path);
      return statement.body.entries.filter(({ kind }) => kind === 'adjustment').length;
    };
    const leaveTo = async (path: string, heading: string): Promise<void> => {
      await page.evaluate(`location.hash = '#/${path}'`);
      await page.getByRole('heading', { level: 1, name: heading }).waitFor();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    };
    const bob = await service.spin(key, { gameId, playerId: 'bob', wagerUsd: 0.25 });
    expect(bob.status).toBe(200);
    const before = await adjustments();
    for (const amount of ['12', '-1200']) {
      await go(`players/${partnerId}/alice`, 'Player alice');
      await open('Adjust the balance');
      await form('Adjustment').getByLabel('Amount in USD').fill(amount);
      await form('Adjustment').getByLabel('Reason').fill('for another player');
      await form('Adjustment').getByRole('button').click();
      await dialog().getByRole('button', { name: 'Cancel' }).waitFor();
      await leaveTo(`players/${partnerId}/bob`, 'Player bob');
    }
    await go(`games/${gameId}`, GAME);
    await page.getByRole('button', { name: 'Suspend the game' }).click();
    await dialog().getByRole('button', { name: 'Suspend', exact: true }).waitFor();
    await leaveTo('cells', 'Cells');
    await page.keyboard.press('Control+k');
    await dialog().getByRole('searchbox').waitFor();
    await leaveTo('games', 'Games');
    expect(await adjustments()).toBe(before);
    expect((await service.operator('GET', `/games/${gameId}`)).body.status).toBe('ACTIVE');
  });

  test('the console finds a partner and a spin with Ctrl+K', async () => {
    await go('cells', 'Cells');
    await page.keyboard.press('Control+k');
    await dialog().getByRole('searchbox').fill('acm');
    await dialog().getByRole('link', { name: 'Acme Games (acme)' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Acme Games' }).waitFor();
    await page.keyboard.press('Control+k');
    await dialog().getByRole('searchbox').fill(spinId);
    await dialog().getByRole('link', { name: spinId }).click();
    await page.getByText('Commitment').waitFor();
    await dialog().waitFor({ state: 'detached' });
  });

  test('the console lists at most eight entries, shows their pages as tabs, and finds each page with Ctrl+K', async () => {
    await go('settlements', 'Settlements');
    const entries = page.getByRole('navigation', { name: 'Console' }).getByRole('link');
    expect(await entries.count()).toBeLessThanOrEqual(8);
    const titles: string[] = [];
    for (const entry of await entries.all()) {
      await entry.click();
      const title = await entry.innerText();
      await page.locator('.rooms [aria-current]').getByText(title, { exact: true }).waitFor();
      const tabs = await page
        .getByRole('navigation', { name: `Pages of ${title}` })
        .getByRole('link')
        .allInnerTexts();
      titles.push(...(tabs.length === 0 ? [title] : tabs));
    }
    expect(titles).toHaveLength(21);
    for (const title of titles) {
      await page.keyboard.press('Control+k');
      await dialog().getByRole('searchbox').fill(title);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor();
      await dialog().waitFor({ state: 'detached' });
    }
  });

  test('the console sorts and filters a table', async () => {
    await go('games', 'Games');
    const first = page.getByRole('row').nth(1);
    await page.getByRole('button', { name: 'Game', exact: true }).click();
    await first.getByText('Spring Raffle').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Game', exact: true }).click();
    await first.getByText('Spring Raffle').waitFor();
    expect(
      await page.getByRole('columnheader', { name: 'Game', exact: true }).getAttribute('aria-sort'),
    ).toBe('descending');
    await go(`par-sheets/${parSheetId}`, 'Classic');
    const combinations = page.getByRole('searchbox', { name: 'Filter Combinations' });
    await combinations.fill('no such symbol');
    await page.getByText('No row contains this text.').waitFor();
  });

  test('the console shows a blackjack round as cards, and voids the round with a reason', async () => {
    const table = await newTable(service, partnerId);
    const round = await dealUntil(service, key, table, 'carol', ({ status }) => status === 'OPEN');
    await go('rounds?status=OPEN', 'Rounds');
    await page.getByRole('link', { name: round.roundId.slice(0, 8) }).click();
    await page.getByRole('list', { name: 'Cards of hand 1' }).getByRole('listitem').nth(1).waitFor();
    await page.getByRole('button', { name: 'Void the round' }).click();
    await dialog().getByLabel('Reason').fill('the table was wrong');
    await dialog().getByLabel(`Type ${round.playerId} to confirm`).fill(round.playerId);
    await dialog().getByRole('button', { name: 'Void it' }).click();
    const state = page.getByRole('definition').getByText('VOIDED');
    expect(await state.getAttribute('class')).toBe('status void');
    await go('audit?action=round.void', 'Audit log');
    await page.getByRole('cell', { name: 'round.void 1 round' }).waitFor();
    const log = await service.operator<{ entries: { after: { reason?: string } }[] }>(
      'GET',
      '/audit-log?action=round.void',
    );
    expect(log.body.entries[0]!.after.reason).toBe('the table was wrong');
    roundId = round.roundId;
  });

  test('the console on a phone keeps the active tab and the amounts of a statement in view', async () => {
    await page.setViewportSize(NARROW);
    await go('operators', 'Operators');
    const inView = async (locator: ReturnType<Page['locator']>): Promise<boolean> => {
      const box = await locator.boundingBox();
      return box !== null && box.x >= 0 && box.x + box.width <= NARROW.width;
    };
    await until(() => inView(page.locator('.rooms [aria-current]')), 'the tab is in view', WAIT_MS);
    await go(`players/${partnerId}/alice`, 'Player alice');
    const amount = page.getByRole('cell', { name: '$12.50' });
    expect(await inView(amount)).toBe(true);
    await page.setViewportSize(WIDE);
  });

  test('the console suspends a game, whose spins are then refused', async () => {
    await go(`games/${gameId}`, GAME);
    await page.getByRole('button', { name: 'Suspend the game' }).click();
    await dialog().getByText('All plays of this game are refused').waitFor();
    await dialog().getByRole('button', { name: 'Cancel' }).click();
    await dialog().waitFor({ state: 'detached' });
    expect((await service.spin(key, { gameId, playerId: 'alice', wagerUsd: 0.25 })).status).toBe(200);
    await page.getByRole('button', { name: 'Suspend the game' }).click();
    await dialog().getByLabel('Reason').fill('a fault');
    await dialog().getByRole('button', { name: 'Suspend', exact: true }).click();
    await page.getByText('The game is suspended.').waitFor();
    const spun = await service.spin(key, { gameId, playerId: 'alice', wagerUsd: 0.25 });
    expect(spun.body.errorCode).toBe('KS-4202');
    await page.getByRole('button', { name: 'Resume the game' }).click();
    await dialog().getByLabel('Reason').fill('mended');
    await dialog().getByRole('button', { name: 'Resume', exact: true }).click();
    await page.getByText('The game is active.').waitFor();
  });

  test('the console resends a failed delivery, which arrives', async () => {
    let status = 503;
    const receiver = await startReceiver(
      (_request, response) => void response.writeHead(status).end('out of order'),
    );
    const events = ['spin.large_win'];
    const registered = await service.partner('POST', '/webhooks', key, {
      url: receiver.url(),
      events,
    });
    await service.partner('POST', `/webhooks/${registered.body.id}/test`, key, { event: events[0] });
    const failed = async () => (await service.operator('GET', '/deliveries')).body.total;
    await until(async () => (await failed()) === 1, 'the delivery has failed', WAIT_MS);
    await go('webhooks', 'Webhooks');
    await page.getByRole('cell', { name: receiver.url() }).first().waitFor();
    // The webhook has failed for less than five minutes. It is listed as failing all the same.
    expect(await page.getByText('No webhook is failing.').count()).toBe(0);
    const listed = await service.operator<{ deliveries: { id: string }[] }>('GET', '/deliveries');
    const [{ id } = { id: '' }] = listed.body.deliveries;
    await page.getByText(`…${id.slice(-8)}`).click();
    const attempts = page.getByRole('list', { name: `Attempts of ${id}` }).getByRole('listitem');
    expect(await attempts.allInnerTexts()).toHaveLength(5);
    expect(await attempts.first().innerText()).toMatch(/UTC, \d+ ms: answered 503\s*out of order$/);
    if (PICTURES !== undefined) await page.screenshot({ path: join(PICTURES, 'attempts.png') });
    status = 200;
    const before = receiver.received.length;
    await page.getByRole('button', { name: 'Send again' }).click();
    await page.getByText('No deliveries with the status failed.').waitFor();
    await until(() => receiver.received.length > before, 'the delivery arrives', WAIT_MS);
    await receiver.close();
  });

  test(
    'no page of the console has an accessibility fault or is wider than 400 pixels',
    async () => {
      const rules = {
        enabled: true,
        triggerInterval: 10,
        triggerSplitPct: 100,
        communitySplitPct: 0,
        tiers: [{ tierLevel: 1, tierName: 'One', triggerAtSpins: 100, amountUsd: '1.00' }],
      };
      expect((await service.operator('PUT', `/games/${gameId}/communal`, rules)).status).toBe(200);
      expect((await service.operator('POST', `/partners/${partnerId}/settlements/${day}`)).status).toBe(201);
      const pages: readonly (readonly [string, string])[] = [
        ['overview', 'Overview'],
        ['partners', 'Partners'],
        [`partners/${partnerId}`, 'Acme Games'],
        ['games', 'Games'],
        [`games/${gameId}`, GAME],
        ['dealing', 'Dealing'],
        ['raffles', 'Raffles'],
        ['rounds?partner=acme', 'Rounds'],
        [`lookup?id=${roundId}`, 'Look up'],
        ['progressives', 'Progressives'],
        [`progressives/${gameId}`, `Progressive of ${GAME}`],
        ['par-sheets', 'PAR sheets'],
        [`par-sheets/${parSheetId}`, 'Classic'],
        ['versions', 'API versions'],
        ['players', 'Players'],
        [`players/${partnerId}/alice`, 'Player alice'],
        [`lookup?id=${spinId}`, 'Look up'],
        ['webhooks?status=delivered', 'Webhooks'],
        ['settlements', 'Settlements'],
        [`settlements/${partnerId}/${day}`, `Acme Games, ${day}`],
        ...['games', 'liability', 'events'].map((of) => [`reports?of=${of}`, 'Reports'] as const),
        ['returns', 'Returns'],
        ['audit', 'Audit log'],
        ['ledger', 'Ledger days'],
        ['cells', 'Cells'],
        ['operators', 'Operators'],
      ];
      await page.goto('about:blank');
      await page.goto(`${service.base}/console`);
      for (const [path, heading] of pages) {
        await go(path, heading);
        const judge = async (how: string): Promise<void> => {
          await page.evaluate(axe);
          const { violations } = await page.evaluate<{
            violations: { id: string; nodes: { html: string }[] }[];
          }>('axe.run()');
          const found = violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)]);
          expect(found, `${path} ${how}`).toEqual([]);
        };
        for (const colorScheme of schemesOf()) {
          await page.emulateMedia({ colorScheme });
          await judge(colorScheme);
          const of = path.includes('/') ? '-detail' : '';
          await picture(`${path.replace(/[/?=].*$/, '')}${of}-${colorScheme}`);
        }
        await page.setViewportSize(NARROW);
        expect(await page.evaluate('document.documentElement.scrollWidth'), path).toBeLessThanOrEqual(
          NARROW.width,
        );
        await judge('on a phone');
        await page.setViewportSize(WIDE);
      }
      await page.emulateMedia({ colorScheme: 'light' });
    },
    ALL_PAGES_MS,
  );

  test('the console shows an open dispute before the operator answers it with a new revision', async () => {
    await service.operator('POST', `/partners/${partnerId}/settlements/${day}`);
    const reason = 'Two spins too many';
    const disputed = await service.partner('POST', `/settlements/${day}/dispute`, key, { reason });
    expect(disputed.status, disputed.text).toBe(200);
    await go(`settlements/${partnerId}/${day}`, `Acme Games, ${day}`);
    await page.getByRole('button', { name: 'Make a new revision' }).click();
    await dialog().getByText(reason).waitFor();
    await dialog().getByText('The next revision has the same figures').waitFor();
    await page.keyboard.press('Escape');
  });

  test(
    'the console lets an auditor read every page but change nothing',
    async () => {
      const made = await service.operator('POST', '/operators', { name: 'audrey', role: 'auditor' });
      const auditor = await openPage();
      await signIn(auditor, made.body.apiKey as string);
      await auditor.getByText('audrey (auditor)').waitFor();
      const paths = [
        ['partners', 'Partners'],
        [`partners/${partnerId}`, 'Acme Games'],
        [`games/${gameId}`, GAME],
        ['raffles', 'Raffles'],
        [`players/${partnerId}/alice`, 'Player alice'],
        ['webhooks?status=delivered', 'Webhooks'],
        ['settlements', 'Settlements'],
        ['reports', 'Reports'],
        ['returns', 'Returns'],
        ['operators', 'Operators'],
      ] as const;
      for (const [path, heading] of paths) {
        await go(path, heading, auditor);
        const buttons = await auditor.locator('button:not(.sort):not(.copy)').allInnerTexts();
        expect(
          buttons.filter((name) => !READING.test(name)),
          path,
        ).toEqual([]);
      }
      // The service also refuses the changes that the auditor's pages don't offer.
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

  test('the console contacts no other host, and violates none of its own security rules', () => {
    expect(complaints.filter((complaint) => !complaint.includes('403'))).toEqual([]);
  });

  async function picture(name: string): Promise<void> {
    if (PICTURES === undefined) return;
    mkdirSync(PICTURES, { recursive: true });
    await page.screenshot({ path: join(PICTURES, `${name}.png`) });
  }
});
