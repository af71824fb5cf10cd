/**
 * Tests the console's pages for rare tasks in a real Chromium: cells, moves, new tables, entries of the
 * public log, and program checks.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import { openBrowser } from '../support/chromium.js';
import { OPERATOR_KEY } from '../support/client.js';
import { startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { TestStores } from '../support/stores.js';
import { until } from '../support/wait.js';

const WAIT_MS = 60_000;
const CELLS = 4;

interface Cell {
  readonly cell: number;
  readonly isDraining: boolean;
}
interface Logged {
  readonly entries: readonly { readonly subject: string; readonly after: { readonly reason?: string } }[];
}

const browser = await openBrowser('Operations in the console');

describe.skipIf(browser === undefined)("the console's pages for rare tasks", { timeout: 4 * WAIT_MS }, () => {
  let stores: TestStores;
  let service: Awaited<ReturnType<typeof startService>>;
  let page: Page;
  let partnerId: number;
  let key: string;
  let name: string;
  let gameId: number;

  beforeAll(async () => {
    stores = await freshStores();
    service = await startService(stores, { CELLS: String(CELLS) });
    ({ partnerId, key } = await service.newPartner());
    ({ name } = (await service.operator<{ name: string }>('GET', `/partners/${partnerId}`)).body);
    const context = await browser!.newContext({ colorScheme: 'light' });
    page = await context.newPage();
    page.setDefaultTimeout(WAIT_MS);
    await signIn(OPERATOR_KEY);
  });
  afterAll(async () => {
    await browser?.close();
    await service?.stop();
    await stores?.drop();
  });

  const go = async (path: string, heading: string | RegExp): Promise<void> => {
    await page.goto(`${service.base}/console#/${path}`);
    await page.getByRole('heading', { level: 1, name: heading }).waitFor();
  };
  async function signIn(operatorKey: string): Promise<void> {
    await page.context().clearCookies();
    await page.goto('about:blank');
    await page.goto(`${service.base}/console`);
    await page.getByLabel('Operator key').fill(operatorKey);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  }
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  const dialog = () => page.locator('dialog:not(.holds-form)');
  const form = (label: string) => page.getByRole('form', { name: label, exact: true });
  const cellOf = async (): Promise<number> =>
    (await service.operator<{ cell: number }>('GET', `/partners/${partnerId}`)).body.cell;
  const cells = async (): Promise<Cell[]> =>
    (await service.operator<{ cells: Cell[] }>('GET', '/cells')).body.cells;
  const logged = async (action: string): Promise<Logged['entries']> =>
    (await service.operator<Logged>('GET', `/audit-log?action=${action}`)).body.entries;

  test("the console drains a partner's cell, names the command that empties it, and moves a partner", async () => {
    const from = await cellOf();
    await go('cells', 'Cells');
    const drain = form(`Partners of cell ${from}`);
    await drain.getByRole('button', { name: 'Drain' }).click();
    await dialog().getByText('No new partner is placed in this cell').waitFor();
    await dialog().getByLabel('Reason').fill('its node goes away');
    await dialog().getByRole('button', { name: 'Drain it' }).click();
    await page.getByText(`spindle cells drain ${from} --move-partners`).waitFor();
    expect((await cells()).filter(({ isDraining }) => isDraining)).toMatchObject([{ cell: from }]);
    expect((await logged('cell.drain'))[0]).toMatchObject({
      subject: `cell:${from}`,
      after: { reason: 'its node goes away' },
    });

    // The number of partners in the cell links to the list of these partners.
    await page.getByRole('row').filter({ has: drain }).getByRole('link', { name: '1', exact: true }).click();
    await page.getByText(`Of cell ${from} only.`).waitFor();
    await page.getByRole('main').getByRole('link', { name }).click();
    await page.getByRole('heading', { level: 1, name }).waitFor();
    await page.getByText('This partner has not been moved yet.').waitFor();
    const to = await form('Cell').getByRole('combobox').inputValue();
    expect(Number(to)).not.toBe(from);
    await form('Cell').getByRole('button', { name: 'Move the partner' }).click();
    await dialog()
      .getByRole('heading', { name: `Move ${name} to cell ${to}?` })
      .waitFor();
    await dialog().getByLabel('Reason').fill('off the node');
    await dialog().getByRole('button', { name: 'Move it' }).click();
    await page.getByRole('cell', { name: 'finished' }).waitFor();
    expect(await cellOf()).toBe(Number(to));
    expect((await logged('partner.move'))[0]!.after.reason).toBe('off the node');
    // The page knows the new cell of the partner and does not offer it as a destination.
    await page.getByText(`New cell; the present cell is ${to}`).waitFor();
    expect(await form('Cell').getByRole('option').allInnerTexts()).not.toContain(to);

    await go('cells', 'Cells');
    await drain.getByRole('button', { name: 'Take partners' }).click();
    await dialog().getByLabel('Reason').fill('the node is back');
    await dialog().getByRole('button', { name: 'Take partners' }).click();
    await drain.getByRole('button', { name: 'Drain' }).waitFor();
    expect((await cells()).some(({ isDraining }) => isDraining)).toBe(false);
  });

  test('the console adds cells only after their number was typed', async () => {
    await go('cells', 'Cells');
    await form('More cells').getByLabel('Cells to add').fill('2');
    await form('More cells').getByRole('button', { name: 'Add cells' }).click();
    await dialog().getByText("A cell can't be removed").waitFor();
    const add = dialog().getByRole('button', { name: 'Add them' });
    expect(await add.isDisabled()).toBe(true);
    await dialog().getByLabel('Type 2 cells to confirm').fill('2 cells');
    await add.click();
    await page.getByText('Added: 4, 5.').waitFor();
    expect(await cells()).toHaveLength(CELLS + 2);
  });

  test('the console creates a blackjack table with the chosen rules', async () => {
    await go('rounds', 'Rounds');
    await page.getByRole('button', { name: 'New blackjack table' }).click();
    const table = form('New blackjack table');
    await table.getByRole('combobox', { name: 'Partner' }).fill(String(partnerId));
    await table.getByLabel('Name', { exact: false }).first().fill('Single Deck');
    await table.getByLabel('System name').fill('SINGLE_DECK');
    await table.getByLabel('Price of a deal in USD').fill('0.5');
    await table.getByLabel('Decks').selectOption('1');
    await table.getByLabel('A natural pays').selectOption('6:5');
    await table.getByLabel('Dealer hits soft 17').selectOption('yes');
    await table.getByRole('button', { name: 'Create table' }).click();
    await dialog().getByText('A deal costs $0.5.').waitFor();
    await dialog().getByRole('button', { name: 'Create the table' }).click();
    await page.getByRole('link', { name: /^game \d+$/ }).click();
    await page.getByRole('heading', { level: 1, name: 'Single Deck' }).waitFor();
    const { subject, after } = (await logged('blackjack.create'))[0]!;
    expect(new URL(page.url()).hash).toBe(`#/${subject.replace('game:', 'games/')}`);
    expect(after).toMatchObject({
      rules: { decks: 1, blackjackPays: '6:5', dealerHitsSoft17: true, peek: true, maxHands: 2 },
    });
  });

  test('the console sets the rules of a communal progressive with two tiers', async () => {
    const slotId = await service.api.newGame(key, 'shared', parSheet('classic-3-reel'));
    await go(`progressives/${slotId}`, 'Progressive of shared');
    await page.getByRole('button', { name: 'Set the first rules' }).click();
    const rules = form('Rules');
    await rules.getByLabel('Interval in spins').fill('50');
    await rules.getByLabel('Share of the player who fires, in %').fill('40.5');
    await rules.getByRole('button', { name: 'Add a tier' }).click();
    const tier = rules.getByRole('group', { name: 'Tier 2' });
    await tier.getByLabel('Name').fill('Grand');
    await tier.getByLabel('Pays, in USD').fill('250.5');
    await page.evaluate(axe);
    const { violations } = await page.evaluate<{ violations: { id: string }[] }>('axe.run()');
    expect(violations.map(({ id }) => id)).toEqual([]);
    await rules.getByRole('button', { name: 'Set the rules' }).click();
    await dialog().getByLabel('Reason').fill('the spring promotion');
    await dialog().getByRole('button', { name: 'Set the rules' }).click();
    await page.getByText('The rules are in force.').waitFor();
    const { body } = await service.operator('GET', `/games/${slotId}/communal`);
    expect(body).toMatchObject({
      enabled: true,
      triggerInterval: 50,
      triggerSplitPct: 40.5,
      communitySplitPct: 59.5,
      tiers: [
        { tierLevel: 1, tierName: 'Shared', triggerAtSpins: 1000, amountUsd: '5.00' },
        { tierLevel: 2, tierName: 'Grand', triggerAtSpins: 10_000, amountUsd: '250.50' },
      ],
    });
  });

  test('the console shows an entry of the public log, and downloads it with its proof', async () => {
    gameId = await service.api.newGame(key, 'logged', parSheet('classic-3-reel'));
    const blocks = () => service.operator<{ blocks: unknown[] }>('GET', `/games/${gameId}/blocks`);
    await until(async () => (await blocks()).body.blocks.length > 0, 'a block is logged', WAIT_MS);
    await go(`games/${gameId}`, 'logged');
    await page.getByRole('region', { name: 'Entries by number' }).getByRole('link', { name: '0' }).click();
    await page.getByRole('heading', { level: 1, name: `Entry 0 of game ${gameId}` }).waitFor();
    await page.getByText('nothing until all outcomes are dealt').waitFor();
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download entry and proof' }).click();
    expect((await download).suggestedFilename()).toBe(`entry-${gameId}-0.json`);
  });

  test('the console shows an auditor the pages for rare tasks without controls for changes, and axe finds no fault', async () => {
    const made = await service.operator('POST', '/operators', { name: 'audrey', role: 'auditor' });
    await signIn(String(made.body.apiKey));
    const pages = [
      ['cells', 'Cells'],
      [`partners/${partnerId}`, name],
      ['rounds', 'Rounds'],
      [`games/${gameId}/blocks/0`, `Entry 0 of game ${gameId}`],
      ['program', 'Program checks'],
    ] as const;
    for (const [path, heading] of pages) {
      await go(path, heading);
      await page.getByText('Loading…').first().waitFor({ state: 'detached' });
      expect(await page.locator('.danger').count(), path).toBe(0);
      expect(await page.getByRole('button', { name: /^(Move|Drain|Add|Make)/ }).count(), path).toBe(0);
      await page.evaluate(axe);
      const { violations } = await page.evaluate<{ violations: { id: string }[] }>('axe.run()');
      expect(
        violations.map(({ id }) => id),
        path,
      ).toEqual([]);
    }
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(OPERATOR_KEY);
  });

  test('the console shows the page of the newest address, even if the address changes while a page is drawn', async () => {
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Operator key').fill(OPERATOR_KEY);
    await page.evaluate(`
      location.hash = '#/';
      const leave = new MutationObserver(() => {
        if (document.querySelector('h1')?.textContent !== 'Overview') return;
        leave.disconnect();
        location.hash = '#/program';
      });
      leave.observe(document.body, { childList: true, subtree: true, characterData: true });
    `);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { level: 1, name: 'Program checks' }).waitFor();
  });

  test("the console tolerates an address that can't be decoded, both while it is open and when it is loaded", async () => {
    await page.goto('about:blank');
    for (const path of ['partners/%', 'players/%E0']) await go(path, /./);
    await page.reload();
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
  });

  test('the console shows the program checks of all processes', async () => {
    await go('program', 'Program checks');
    await page.getByRole('cell', { name: 'program, at the start' }).first().waitFor();
    await page.getByRole('cell', { name: 'ok' }).first().waitFor();
  });
});
