/**
 * Tests the console's oversight pages in a real Chromium: the returns (RTP) of games with their expected
 * range, reviews, reports, closed rounds, and the search for keys by prefix.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readVectors } from '../domain/publicLog/proofVectors.js';
import { freshStores } from '../setup/freshStores.js';
import { openBrowser } from '../support/chromium.js';
import { OPERATOR_KEY } from '../support/client.js';
import { dealUntil, newTable } from '../support/rounds.js';
import { startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { TestStores } from '../support/stores.js';
import { until } from '../support/wait.js';

/** Folder for pictures of pages that only this file visits. */
const PICTURES = process.env.CONSOLE_PICTURES;
const WAIT_MS = 60_000;
const GAME = 'classic-three';

const browser = await openBrowser('Oversight in the console');

describe.skipIf(browser === undefined)("the console's oversight pages", { timeout: 4 * WAIT_MS }, () => {
  let stores: TestStores;
  let service: Awaited<ReturnType<typeof startService>>;
  let page: Page;
  let partnerId: number;
  let key: string;
  let name: string;
  let gameId: number;
  let spinId: string;

  beforeAll(async () => {
    stores = await freshStores();
    service = await startService(stores);
    const partner = await service.newPartner();
    ({ partnerId, key } = partner);
    ({ name } = (await service.operator<{ name: string }>('GET', `/partners/${partnerId}`)).body);
    gameId = await service.api.newGame(partner.key, GAME, parSheet('classic-3-reel'));
    const spun = await service.spin(partner.key, { gameId, playerId: 'alice', wagerUsd: 0.25 });
    expect(spun.status).toBe(200);
    spinId = (spun.body as { spinId: string }).spinId;
    const reported = () => service.operator<{ noActivity: boolean }>('GET', '/reports/games?interval=LTD');
    await until(async () => !(await reported()).body.noActivity, 'the spin is booked');
    const context = await browser!.newContext({ colorScheme: 'light' });
    page = await context.newPage();
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

  const go = async (path: string, heading: string): Promise<void> => {
    await page.goto(`${service.base}/console#/${path}`);
    await page.getByRole('heading', { level: 1, name: heading }).waitFor();
  };
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  async function expectAccessible(): Promise<void> {
    await page.evaluate(axe);
    const { violations } = await page.evaluate<{ violations: { id: string }[] }>('axe.run()');
    expect(violations.map(({ id }) => id)).toEqual([]);
  }
  const dialog = () => page.locator('dialog:not(.holds-form)');
  const form = (name: string) => page.getByRole('form', { name, exact: true });

  test("the console draws a game's return and its expected range by day, and lets an operator work on and close a review", async () => {
    const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
    // There are forty judged days. On the last of them the return is outside the expected range.
    await sql`
      INSERT INTO rtp_records (game_id, day, span, from_day, spins, wagered_micros, paid_micros, mean, sigma, skewness, z, nats, state, judged_at)
      SELECT ${gameId}, current_date - d, span, current_date - d - 29, 400000 - 5000 * d, 100000000000 - 1250000000 * d::bigint,
        round((100000000000 - 1250000000 * d::bigint) * CASE d WHEN 1 THEN 0.95 ELSE 0.921 END), 0.92, 2.5, 9, CASE d WHEN 1 THEN 3.1 ELSE 0.2 END,
        0.5, CASE d WHEN 1 THEN 'REVIEW' ELSE 'WITHIN' END, now()
      FROM generate_series(1, 40) d, unnest(ARRAY['LIFE', 'ROLLING_30']) span`;
    await sql`
      INSERT INTO rtp_reviews (game_id, span, opened_at, opened_day) VALUES (${gameId}, 'LIFE', now(), current_date - 1)`;
    await sql.end();
    await go(`games/${gameId}`, GAME);
    await page.getByRole('img', { name: /^Return by day, 30 days: 95\.00 % on .*99 % band from/ }).waitFor();
    await expectAccessible();
    await page.getByRole('link', { name: 'Reviews' }).click();
    await page.getByRole('heading', { level: 1, name: 'Returns' }).waitFor();
    await page.getByRole('button', { name: 'Add a note' }).click();
    await form('Note on review 1').waitFor();
    await expectAccessible();
    await form('Note on review 1').getByLabel('Note').fill('asked the game studio');
    await form('Note on review 1').getByRole('button').click();
    await page.getByText('asked the game studio').waitFor();
    await page.getByRole('button', { name: 'Close the review' }).click();
    await form('Close review 1').getByLabel('Finding').selectOption('CHANCE');
    await form('Close review 1').getByLabel('Why').fill('within what 40 days do');
    await form('Close review 1').getByRole('button').click();
    await dialog().getByRole('heading', { name: 'Close review 1?' }).waitFor();
    await dialog().getByText('The finding is CHANCE.').waitFor();
    await dialog().getByRole('button', { name: 'Close', exact: true }).click();
    await page.getByRole('definition').getByText('CLOSED').waitFor();
  });

  test('the console switches dealing off and on with a reason, for one partner and for all partners', async () => {
    const spinCode = async () =>
      (await service.spin<{ errorCode?: string }>(key, { gameId, playerId: 'alice', wagerUsd: 0.25 })).body
        .errorCode;
    const answer = async (button: string, reason: string): Promise<void> => {
      await dialog().getByLabel('Reason').fill(reason);
      await dialog().getByRole('button', { name: button, exact: true }).click();
      await dialog().waitFor({ state: 'detached' });
    };
    await go(`partners/${partnerId}`, name);
    await page.getByRole('button', { name: 'Stop dealing' }).click();
    await answer('Stop dealing', 'a wrong price list');
    await until(async () => (await spinCode()) === 'KS-5013', 'its spins are refused', WAIT_MS);
    await go('overview', 'Overview');
    await page.getByRole('link', { name: '1 partner with dealing off' }).click();
    await page.getByRole('row').filter({ hasText: name }).getByRole('button').click();
    await answer('Resume dealing', 'the list is right');
    await until(async () => (await spinCode()) === undefined, 'its spins are dealt', WAIT_MS);

    await page.getByRole('button', { name: 'Stop dealing for all' }).click();
    const stop = dialog().getByRole('button', { name: 'Stop dealing', exact: true });
    expect(await stop.isDisabled()).toBe(true);
    await dialog().getByLabel('Type all partners to confirm').fill('all partners');
    await answer('Stop dealing', 'an audit');
    await until(async () => (await spinCode()) === 'KS-5013', 'all spins are refused', WAIT_MS);
    const banner = page.getByRole('alert').getByText('Dealing is OFF for all partners');
    await go('cells', 'Cells');
    await banner.waitFor();
    await expectAccessible();
    await page.getByRole('link', { name: 'Open Dealing' }).click();
    await page.getByRole('button', { name: 'Resume dealing for all' }).click();
    await answer('Resume dealing', 'the audit is over');
    await banner.waitFor({ state: 'detached' });
    await until(async () => (await spinCode()) === undefined, 'spins are dealt again', WAIT_MS);
    await page.getByRole('definition').getByText('the audit is over').waitFor();
  });

  test('the console reports an interval, and downloads the report as the CSV that the service creates', async () => {
    await go('reports', 'Reports');
    await form('Interval').getByLabel('Interval').selectOption('LTD');
    await form('Interval').getByLabel('Partner').fill(String(partnerId));
    await form('Interval').getByRole('button').click();
    await page.getByRole('row').filter({ hasText: GAME }).waitFor();
    const [kept] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download everything as CSV' }).click(),
    ]);
    const { text } = await service.request(
      'GET',
      `/api/operator/v1/reports/games?interval=LTD&partnerId=${partnerId}`,
      {
        key: OPERATOR_KEY,
        headers: { Accept: 'text/csv' },
      },
    );
    expect(readFileSync(await kept.path(), 'utf8').split('\r\n')[0]).toBe(text.split('\r\n')[0]);
    expect(readFileSync(await kept.path(), 'utf8')).toContain(GAME);
  });

  test('the console shows the proof of a spin, the blocks of its game, and the public log', async () => {
    await go(`lookup?id=${spinId}`, 'Look up');
    await page.getByText('proven', { exact: true }).waitFor();
    // It claims no more than `spindle verify` of the same file.
    await page.getByText("The proof alone can't show since when").waitFor();
    await expectAccessible();
    const [kept] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download proof' }).click(),
    ]);
    const proof = JSON.parse(readFileSync(await kept.path(), 'utf8')) as Record<string, string>;
    expect(proof).toMatchObject({ format: 'spindle proof v1', spinId });
    const path = '**/api/operator/v1/spins/*/proof';
    const broken = { ...proof, salt: '0'.repeat(64) };
    await page.route(path, (route) => route.fulfill({ json: broken }));
    await page.reload();
    await page.getByRole('alert').getByText('logged: the record is not at').waitFor();
    await expectAccessible();
    await page.unroute(path);
    await go(`games/${gameId}`, GAME);
    await page.getByRole('row').filter({ hasText: '0 to 2,047' }).getByText('block').waitFor();
    await page.keyboard.press('Control+k');
    await dialog().getByRole('searchbox').fill('public l');
    await page.keyboard.press('Enter');
    await page.getByText("None: blocks don't wait for witnesses").waitFor();
    await page.getByText('The log has no witnesses').waitFor();
    await expectAccessible();
    const { log, witness, proof: published } = readVectors();
    const note = published.tlogProof.slice(published.tlogProof.indexOf('\n\n') + 2);
    const policy = `log ${log.vkey}\nwitness one ${witness.vkey}\nquorum one\n`;
    await page.route('**/log/policy', (route) => route.fulfill({ body: policy }));
    await page.route('**/log/checkpoint', (route) => route.fulfill({ body: note }));
    await page.reload();
    await page.getByRole('row').filter({ hasText: witness.vkey }).getByText('2026-11-22 21:31:00').waitFor();
    await expectAccessible();
    await page.setViewportSize({ width: 400, height: 800 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(400);
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  test('the console closes a blackjack round with a reason', async () => {
    const table = await newTable(service, partnerId);
    const round = await dealUntil(service, key, table, 'dora', ({ status }) => status === 'OPEN');
    await go(`lookup?id=${round.roundId}`, 'Look up');
    await page.getByRole('button', { name: 'Play the round out' }).click();
    await dialog().getByLabel('Reason').fill('the player is gone');
    await dialog().getByRole('button', { name: 'Play it out' }).click();
    await page.getByRole('definition').getByText('SETTLED').waitFor();
    const log = await service.operator<{ entries: { after: { reason?: string } }[] }>(
      'GET',
      '/audit-log?action=round.close',
    );
    expect(log.body.entries[0]!.after.reason).toBe('the player is gone');
  });

  test('the console shows the prefix of a key, finds the key by it, and never sends a whole key in a search', async () => {
    const issued = await service.operator<{ apiKey: string; prefix: string }>(
      'POST',
      `/partners/${partnerId}/keys`,
      { name: 'kiosk' },
    );
    const { apiKey, prefix } = issued.body;
    await go(`partners/${partnerId}`, name);
    await page.getByRole('cell', { name: `${prefix}…` }).waitFor();
    const asked: string[] = [];
    const note = (request: { url(): string }) => void asked.push(request.url());
    page.on('request', note);
    await page.keyboard.press('Control+k');
    await dialog().getByRole('searchbox').fill(apiKey);
    await dialog()
      .getByRole('link', { name: `kiosk (${prefix}…), ${name}` })
      .click();
    page.off('request', note);
    await dialog().waitFor({ state: 'detached' });
    await page.keyboard.press('Control+k');
    await dialog().getByRole('searchbox').fill('kiosk');
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    const searches = asked.filter((url) => url.includes('/search?'));
    expect(searches.length).toBeGreaterThan(0);
    expect(searches.filter((url) => url.includes(apiKey.slice(0, 12)))).toEqual([]);
  });

  /** Expects facts on the page by name, such as `Blocked by`. */
  async function expectFacts(facts: Readonly<Record<string, string>>): Promise<void> {
    for (const [fact, value] of Object.entries(facts)) {
      const shown = page.locator('dl.facts > div').filter({ has: page.getByText(fact, { exact: true }) });
      await shown.getByText(value, { exact: true }).waitFor();
    }
  }

  test("a blocked player's page says who blocked the player and why, with a link to the audit log", async () => {
    // A player whose name begins with the name of the blocked player has changes of its own.
    for (const playerId of ['bo', 'bobby']) {
      await service.spin(key, { gameId, playerId, wagerUsd: 0.25 });
      const body = { status: 'BLOCKED', reason: `${playerId} asked for it` };
      expect(
        (await service.operator('PATCH', `/partners/${partnerId}/players/${playerId}`, body)).status,
      ).toBe(200);
    }
    await go(`players/${partnerId}/bo`, 'Player bo');
    await expectFacts({ 'Blocked by': 'operator', Reason: 'bo asked for it' });
    await expectAccessible();
    await page
      .getByRole('main')
      .getByRole('link', { name: /^Entry \d+$/ })
      .click();
    await page.getByRole('cell', { name: 'bo asked for it' }).waitFor();
    await go(`players/${partnerId}/alice`, 'Player alice');
    await page.getByText('Player since (UTC)').waitFor();
    expect(await page.getByText('Blocked by').count()).toBe(0);
  });

  test("a suspended game's page says who suspended the game and why, until somebody else resumes it", async () => {
    const change = (status: string, reason: string) =>
      service.operator('PATCH', `/games/${gameId}`, { status, reason });
    await change('SUSPENDED', 'the symbols are wrong');
    await go(`games/${gameId}`, GAME);
    await expectFacts({ 'Suspended by': 'operator', Reason: 'the symbols are wrong' });
    await change('ACTIVE', 'the symbols are right');
    await expectFacts({ 'Resumed by': 'operator', Reason: 'the symbols are right' });
  });

  test("a voided raffle's page says who voided it and why, and shows its refunds beside the revenue", async () => {
    const prizes = [{ prizeName: 'Mug', prizeTier: 1, valueUsd: 0.5, count: 10 }];
    const raffle = { displayName: 'Void me', configName: 'VOID_ME', ticketPriceUsd: 2, poolSize: 10, prizes };
    const made = await service.operator<{ gameConfigId: number }>(
      'POST',
      `/partners/${partnerId}/raffles`,
      raffle,
    );
    const id = made.body.gameConfigId;
    const game = async () =>
      (await service.operator<{ status: string; refunds: { isDone: boolean } | null }>('GET', `/games/${id}`))
        .body;
    await until(async () => (await game()).status === 'ACTIVE', 'the raffle is open');
    for (const playerId of ['ann', 'bea', 'cis'])
      expect((await service.spin(key, { gameId: id, playerId, wagerUsd: 2 })).status).toBe(200);
    await service.operator('POST', `/raffles/${id}/void`, { reason: 'the mugs are broken' });
    await until(async () => (await game()).refunds?.isDone === true, 'the tickets are refunded');
    await go(`games/${id}`, 'Void me');
    await expectFacts({
      'Voided by': 'operator',
      Reason: 'the mugs are broken',
      'Gross revenue': '$4.50',
      Refunded: '$6.00',
      'Tickets refunded': '3 of 3, done',
      'Revenue after refunds': '-$1.50',
    });
    // The report of games has the refunds beside the gross revenue, in the interval in which they were made.
    type Report = { rows: { gameConfigId: number; ggrUsd: number; refundedUsd: number }[] };
    const reported = async (interval: string) =>
      (await service.operator<Report>('GET', `/reports/games?${interval}`)).body.rows.find(
        ({ gameConfigId }) => gameConfigId === id,
      );
    expect(await reported('interval=LTD')).toMatchObject({ ggrUsd: 4.5, refundedUsd: 6 });
    expect(await reported('interval=RANGE&from=2020-01-01&to=2020-01-02')).toMatchObject({ refundedUsd: 0 });
    const dayBefore = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
    const other = service.operator<Report>(
      'GET',
      `/reports/games?interval=RANGE&from=${dayBefore}&to=2099-01-01&gameId=${gameId}`,
    );
    expect((await other).body.rows).toMatchObject([{ gameConfigId: gameId, refundedUsd: 0 }]);
  });

  test('the console lists a large win with its payout, and links to its game, player and spin', async () => {
    await service.operator('PATCH', `/partners/${partnerId}`, { largeWinThresholdUsd: 0.4 });
    const prizes = [{ prizeName: 'Mug', prizeTier: 1, valueUsd: 0.75, count: 10 }];
    const raffle = { displayName: 'Wins', configName: 'WINS', ticketPriceUsd: 1, poolSize: 10, prizes };
    const made = await service.operator<{ gameConfigId: number }>(
      'POST',
      `/partners/${partnerId}/raffles`,
      raffle,
    );
    const id = made.body.gameConfigId;
    const status = async () => (await service.operator('GET', `/games/${id}`)).body.status;
    await until(async () => (await status()) === 'ACTIVE', 'the raffle is open');
    const won = await service.spin<{ spinId: string }>(key, { gameId: id, playerId: 'winnie', wagerUsd: 1 });
    expect(won.status).toBe(200);
    await go('reports?of=events&type=spin.large_win', 'Reports');
    const row = page.getByRole('row').filter({ hasText: 'winnie' });
    await row.getByRole('cell', { name: '$0.75' }).waitFor();
    await expectAccessible();
    const targets = await row
      .getByRole('link')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href')));
    expect(targets).toEqual([
      `#/partners/${partnerId}`,
      `#/games/${id}`,
      `#/players/${partnerId}/winnie`,
      `#/lookup?id=${won.body.spinId}`,
    ]);
    if (PICTURES !== undefined) await page.screenshot({ path: join(PICTURES, 'large-wins.png') });
  });

  test('the console shows a voided round with the returned stakes, in the list as on its page', async () => {
    const table = await newTable(service, partnerId);
    const round = await dealUntil(service, key, table, 'vera', ({ status }) => status === 'OPEN');
    const voided = await service.operator<{ payoutUsd: number; wageredUsd: number }>(
      'POST',
      `/rounds/${round.roundId}/void`,
      { reason: 'a fault of ours' },
    );
    expect(voided.body.payoutUsd).toBe(voided.body.wageredUsd);
    const { body } = await service.operator<{ rounds: { roundId: string; payoutUsd: number | null }[] }>(
      'GET',
      '/rounds?status=VOIDED',
    );
    expect(body.rounds.find(({ roundId }) => roundId === round.roundId)?.payoutUsd).toBe(
      voided.body.payoutUsd,
    );
  });

  test('the console says that an address has no page, and opens the audit log under both of its names', async () => {
    await go('audit-log', 'Audit log');
    await page.getByRole('table').waitFor();
    expect(await page.locator('.rooms [aria-current]').allInnerTexts()).toEqual(['Audit log']);
    await go('no-such-page', 'Not found');
    await page.getByText('This address has no page.').waitFor();
    expect(await page.locator('.rooms [aria-current]').count()).toBe(0);
    await expectAccessible();
    await page.getByRole('link', { name: 'Open the overview' }).click();
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  });

  test('the CSV of a table has amounts as plain numbers and nothing for a missing value', async () => {
    await service.spin(key, { gameId, playerId: 'carl', wagerUsd: 0.25 });
    await go(`players/${partnerId}/carl`, 'Player carl');
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download these rows as CSV' }).click();
    const lines = readFileSync(await (await saved).path(), 'utf8').split('\r\n');
    expect(lines[0]).toBe('Time (UTC),Kind,Game,Wager,Credit,Balance,Request,Spin');
    expect(lines[1]).toMatch(/,spin,classic-three,0\.25,[\d.]+,-?[\d.]+,/);
    expect(lines.join('')).not.toMatch(/[$–]/);
  });

  test('the overview draws no line over hours in which nobody looked', async () => {
    const { body } = await service.operator('GET', '/overview');
    let [atMs, spins] = [Date.now(), 1000];
    await page.route('**/api/operator/v1/overview', (route) => {
      spins += 30;
      atMs += 3000;
      const today = { ...(body.today as object), spins };
      return route.fulfill({ json: { ...body, at: new Date(atMs).toISOString(), today } });
    });
    await page.goto('about:blank');
    await go('overview', 'Overview');
    await page.getByRole('img', { name: /^Spins a second over the last minutes; now 10\.0/ }).waitFor();
    atMs += 3 * 3_600_000;
    await page.getByText('Waiting for data.').waitFor();
    await page.unroute('**/api/operator/v1/overview');
  });

  test('the console reports a page that fails, and its other pages keep working', async () => {
    await page.route('**/api/operator/v1/cells', (route) => route.fulfill({ json: {} }));
    await go('cells', 'Cells');
    await page.getByRole('alert').getByText('This page could not be shown').waitFor();
    await page.unroute('**/api/operator/v1/cells');
    await page.getByRole('button', { name: 'Show the page again' }).click();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Games', exact: true }).click();
    await page.getByRole('row').filter({ hasText: GAME }).waitFor();
  });
});
