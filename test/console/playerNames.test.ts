/**
 * Tests that the console can open, block and unblock players whose names a browser removes from paths or a
 * reader can hardly see.
 */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import { openBrowser } from '../support/chromium.js';
import { OPERATOR_KEY } from '../support/client.js';
import { startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { TestStores } from '../support/stores.js';

const WAIT_MS = 60_000;
const browser = await openBrowser('The console with players of any name');

describe.skipIf(browser === undefined)(
  'the console and unusual player names',
  { timeout: 4 * WAIT_MS },
  () => {
    let stores: TestStores;
    let service: Awaited<ReturnType<typeof startService>>;
    let page: Page;
    let partner: { partnerId: number; key: string };
    let gameId: number;

    beforeAll(async () => {
      stores = await freshStores();
      service = await startService(stores);
      partner = await service.newPartner();
      gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
      page = await (await browser!.newContext()).newPage();
      page.setDefaultTimeout(WAIT_MS);
      await page.goto(`${service.base}/console`);
      await page.getByLabel('Operator key').fill(OPERATOR_KEY);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    });
    afterAll(async () => {
      await browser?.close();
      await service?.stop();
      await stores?.drop();
    });

    const form = (name: string) => page.getByRole('form', { name, exact: true });

    test.each(['.', '..', '%2e', '/', ' ', '\u200b', '_'])(
      'the console opens, blocks and unblocks a player named «%s»',
      async (playerId) => {
        expect((await service.spin(partner.key, { gameId, playerId, wagerUsd: 0.25 })).status).toBe(200);
        await page.goto(`${service.base}/console#/players`);
        await form('Find a player').getByRole('combobox').fill(String(partner.partnerId));
        await form('Find a player').getByLabel('Player', { exact: false }).last().fill(playerId);
        await form('Find a player').getByRole('button').click();
        await page.getByText('Last games, newest first').waitFor();
        for (const [button, told] of [
          ['Block', 'The player is blocked.'],
          ['Unblock', 'The player can play.'],
        ] as const) {
          await page.getByRole('button', { name: `${button} the player` }).click();
          await form('Status').getByLabel('Reason').fill('a look');
          await form('Status').getByRole('button', { name: button, exact: true }).click();
          await page.locator('dialog.ask').getByRole('button', { name: button, exact: true }).click();
          await page.getByText(told).waitFor();
        }
      },
    );
  },
);
