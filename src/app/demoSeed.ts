/**
 * Creates a sandbox partner with games at a first start on embedded stores, so that the service can be tried
 * at once.
 */

import type { Store } from '../api/api.store.js';
import { initialSettings } from '../api/partners/routes.js';
import { storedKey } from '../domain/apiKey.js';
import { DEMO_SHEET } from '../domain/demoSheet.js';
import { RAFFLE as RAFFLE_KIND } from '../domain/games/raffle.js';
import { SLOT } from '../domain/games/slot.js';
import { checkParSheet, type ParSheet } from '../domain/par.js';

const SLUG = 'demo';
/**
 * Large-win threshold below the smallest win of the demo game. So every fifth spin creates a large-win event,
 * and a webhook can be tried within a minute.
 */
const LARGE_WIN_MICROS = 400_000;
const ACTOR = 'first start';

/** Demo raffle with 1,000 tickets at 1 USD and a return of 90 %. */
const RAFFLE = {
  displayName: 'Demo Raffle',
  configName: 'DEMO_RAFFLE',
  table: {
    ticketPriceUsd: 1,
    poolSize: 1000,
    prizes: [
      { prizeName: 'Weekend in the mountains', prizeTier: 6, valueUsd: 300, count: 1 },
      { prizeName: 'Dinner for two', prizeTier: 4, valueUsd: 50, count: 4 },
      { prizeName: 'Cinema ticket', prizeTier: 2, valueUsd: 10, count: 20 },
      { prizeName: 'A ticket and a half', prizeTier: 1, valueUsd: 1.5, count: 133 },
      { prizeName: 'Half a ticket', prizeTier: 1, valueUsd: 0.5, count: 1 },
    ],
  },
};

export interface Demo {
  readonly gameId: number;
  readonly wagerUsd: number;
  readonly raffleId: number;
  readonly ticketPriceUsd: number;
}

/**
 * Creates the demo partner, its games and its API key if they are missing.
 * @param apiKey API key of the demo partner, which the caller keeps between starts
 */
export async function seedDemo(store: Store, apiKey: string): Promise<Demo> {
  const partners = await store.partners.list();
  const partner =
    partners.find(({ slug }) => slug === SLUG) ??
    (await store.partners.create(ACTOR, {
      slug: SLUG,
      name: 'Demo partner',
      environment: 'sandbox',
      ...initialSettings('sandbox'),
      largeWinThresholdMicros: LARGE_WIN_MICROS,
    }));
  if (typeof partner === 'string')
    throw new Error('Another process has just created the demo partner. Start again.');
  const { partnerId } = partner;
  if ((await store.apiKeys.list(partnerId)).length === 0) {
    await store.apiKeys.issue(ACTOR, { partnerId, ...storedKey(apiKey), name: 'demo', expiresAt: null });
  }
  const games = await store.games.list(partnerId);
  let game = games.find(({ gameType }) => gameType === SLOT.gameType);
  if (game === undefined) {
    const checked = checkParSheet(DEMO_SHEET);
    if ('faults' in checked)
      throw new Error(`The demo PAR sheet is invalid: ${JSON.stringify(checked.faults)}`);
    const { parSheetId } = (await store.parSheets.store(partnerId, checked.sheet))!;
    const made = await store.games.register({
      partnerId,
      parSheetId,
      configName: 'DEMO_SEVENS',
      displayName: 'Demo Sevens',
    });
    if (typeof made === 'string') throw new Error(`Creating the demo game failed: ${made}`);
    game = made;
  }
  const raffle =
    games.find(({ gameType }) => gameType === RAFFLE_KIND.gameType) ??
    (await store.raffles.create(ACTOR, { partnerId, ...RAFFLE }));
  if (raffle === 'name-taken')
    throw new Error('Another process has just created the demo raffle. Start again.');
  const sheet: ParSheet | undefined = (await store.parSheets.find(game.parSheetId!))?.sheet;
  const table = (await store.games.find(raffle.gameId))?.raffle?.table;
  return {
    gameId: game.gameId,
    wagerUsd: sheet?.denominationUsd ?? DEMO_SHEET.denominationUsd,
    raffleId: raffle.gameId,
    ticketPriceUsd: table?.ticketPriceUsd ?? RAFFLE.table.ticketPriceUsd,
  };
}
