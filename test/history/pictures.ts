/**
 * `npm run pictures -- [--data .demo-history] [--to .pictures] [--only console/games]`
 *
 * Takes screenshots of every page of /console and /docs in Chromium, light, dark and on a phone, of the
 * installation that `npm run demo:history` made. Needs Chromium, and pngquant to keep the files small
 * (Debian: `chromium`, `pngquant`).
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { openBrowser } from '../support/chromium.js';
import { type Cleanup, runToEnd } from '../support/cleanup.js';
import { ROOT } from '../support/root.js';
import { spawnService } from '../support/service.js';

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: '.demo-history' },
    to: { type: 'string', default: '.pictures' },
    only: { type: 'string', default: '' },
    whole: { type: 'boolean', default: false },
  },
});
const DATA_DIR = resolve(ROOT, values.data);
const TO = resolve(ROOT, values.to);
/** Number of colors in a picture, which keeps the colors of states apart. */
const COLOURS = '64';
const MB = 1_048_576;

const LOOKS = [
  { name: 'light', viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
  { name: 'dark', viewport: { width: 1280, height: 900 }, colorScheme: 'dark' },
  { name: 'phone', viewport: { width: 390, height: 844 }, colorScheme: 'light' },
] as const;

interface Keys {
  readonly operators: Readonly<Record<string, string>>;
  readonly partners: Readonly<Record<string, string>>;
}

/** A screenshot: the name of its file and the address of the page. */
type Shot = readonly [name: string, address: string];

/** Returns the pages that the navigation of the docs lists. */
async function docs(base: string): Promise<Shot[]> {
  const html = await (await fetch(`${base}/docs`, { headers: { Accept: 'text/html' } })).text();
  const paths = new Set([...html.matchAll(/href="(\/docs(?:\/[a-z-]+)?)"/g)].map(([, path]) => path!));
  return [...paths].map((path) => [`docs/${path.split('/')[2] ?? 'overview'}`, path]);
}

/** Returns the pages that the navigation of the console lists, and one detail page of each kind. */
async function console_(page: Page, base: string, key: string): Promise<Shot[]> {
  const links = (within: string): Promise<string[]> =>
    page.evaluate(
      `[...document.querySelectorAll('${within} a[href^="#/"]')].map((link) => link.getAttribute('href'))`,
    );
  const listed = new Set<string>();
  for (const hash of await links('.rooms')) {
    listed.add(hash);
    await page.locator(`.rooms a[href="${hash}"]`).click();
    await page.locator(`.rooms a[href="${hash}"][aria-current]`).waitFor();
    for (const tab of await links('.tabs')) listed.add(tab);
  }
  const ask = async <T>(path: string): Promise<T> =>
    (await (await fetch(`${base}/api/operator/v1${path}`, { headers: { 'X-API-Key': key } })).json()) as T;
  const { partners } = await ask<{ partners: { partnerId: number; slug: string }[] }>('/partners');
  const acme = partners.find(({ slug }) => slug === 'acme')!;
  const { games } = await ask<{
    games: { gameConfigId: number; displayName: string; gameType: string; partnerId: number }[];
  }>(`/games?partnerId=${acme.partnerId}`);
  const game = (name: string): number => games.find(({ displayName }) => displayName === name)!.gameConfigId;
  const { parSheets } = await ask<{ parSheets: { parSheetId: number }[] }>('/par-sheets');
  const { entries } = await ask<{ entries: { kind: string; spinId: string | null }[] }>(
    `/partners/${acme.partnerId}/players/alice/statement`,
  );
  const { rounds } = await ask<{ rounds: { roundId: string }[] }>(`/rounds?partnerId=${acme.partnerId}`);
  const { reports } = await ask<{ reports: { partnerId: number; reportDate: string }[] }>('/settlements');
  const settlements = reports.filter(({ partnerId }) => partnerId === acme.partnerId);
  const details: Shot[] = [
    ['partner', '#/partners/acme'],
    ['game', `#/games/${game('Five Dragons Road')}`],
    ['game-raffle', `#/games/${game('Winter Raffle')}`],
    ['game-blackjack', `#/games/${game('Blackjack Salon')}`],
    ['block', `#/games/${game('Five Dragons Road')}/blocks/0`],
    ['progressive', `#/progressives/${game('Five Dragons Road')}`],
    ['par-sheet', `#/par-sheets/${parSheets.at(-1)!.parSheetId}`],
    ['player', `#/players/${acme.partnerId}/alice`],
    ['spin', `#/lookup?id=${entries.find(({ spinId }) => spinId !== null)!.spinId}`],
    ['round', `#/lookup?id=${rounds[0]!.roundId}`],
    ['settlement', `#/settlements/${acme.partnerId}/${settlements[2]!.reportDate}`],
    ['rounds-of-partner', `#/rounds?partner=acme`],
  ];
  return [...[...listed].map((hash): Shot => [hash.slice(2), hash]), ...details].map(([name, hash]) => [
    `console/${name}`,
    `/console${hash}`,
  ]);
}

async function signIn(page: Page, base: string, key: string): Promise<void> {
  await page.goto(`${base}/console`);
  await page.getByLabel('Operator key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
}

async function takeAll(browser: Browser, base: string, key: string): Promise<number> {
  let bytes = 0;
  for (const { name: look, ...options } of LOOKS) {
    const context = await browser.newContext({ ...options, reducedMotion: 'reduce' });
    const page = await context.newPage();
    page.on('pageerror', (error) => console.log(`${look} ${page.url()}: ${error.message}`));
    await signIn(page, base, key);
    const shots = [...(await console_(page, base, key)), ...(await docs(base))];
    for (const [name, address] of shots) {
      if (!name.startsWith(values.only)) continue;
      const file = join(TO, `${name}.${look}.png`);
      mkdirSync(dirname(file), { recursive: true });
      // Between pages of the console only the hash of the address changes, so the browser sends no load
      // event. Opening a blank page in between forces a load.
      await page.goto('about:blank');
      await page.goto(base + address, { waitUntil: 'networkidle' });
      await page.getByText('Loading…').first().waitFor({ state: 'detached' });
      await page.screenshot({ path: file, fullPage: values.whole, animations: 'disabled' });
      execFileSync('pngquant', ['--force', '--ext', '.png', '--speed', '3', COLOURS, file]);
      bytes += statSync(file).size;
    }
    await context.close();
  }
  return bytes;
}

async function main(cleanup: Cleanup): Promise<boolean> {
  const browser = await openBrowser('The pictures');
  if (browser === undefined) return false;
  cleanup.add(() => browser.close());
  const service = await spawnService({ DATA_DIR, PORT: '0', METRICS_PORT: '0', LOG_LEVEL: 'error' });
  cleanup.add(() => service.stop());
  const keys = JSON.parse(readFileSync(join(DATA_DIR, 'demo-keys.json'), 'utf8')) as Keys;
  const bytes = await takeAll(browser, service.base!, keys.operators['ada.admin']!);
  console.log(`${(bytes / MB).toFixed(2)} MB`);
  return true;
}

await runToEnd(main);
