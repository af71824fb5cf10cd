/**
 * Starts a front end and a worker with the partners, games and webhooks of a real operator: many partners,
 * games of which few get most of the spins, raffles, blackjack tables, and webhooks about large wins.
 */
import { bodyOf } from '../src/api/client/apiClients.js';
import type { Cleanup } from '../test/support/cleanup.js';
import { type Receiver, startReceiver } from '../test/support/receiver.js';
import { until } from '../test/support/wait.js';
import type { LoadOrder, Mix } from './load.js';
import { type Service, startService } from './service.js';
import type { Shape } from './shape.js';

const PARTNERS = 50;
const GAMES = 300;
const RAFFLES = 4;
const PLAYERS = 20_000;
const SHARES = { rounds: 0.05, reads: 0.12, writes: 0.05, spins: 0.78 } as const;
/** Share of deals. Most deals are followed by an action, so rounds have a share of 5 %. */
const DEALS = 0.027;
const TABLE_WAGER_USD = 0.25;
/** Threshold of a large win in USD. One of 500 spins of the PAR sheet pays more. */
export const LARGE_WIN_USD = 9;

export interface MixedService {
  readonly service: Service;
  readonly receiver: Receiver;
  /** Members of a load order. `players` is the number of players of each partner. */
  readonly order: Pick<LoadOrder, 'base' | 'targets' | 'isZipf' | 'players' | 'hasRequestId' | 'mix'>;
}

/** @param scale numbers of front ends and Redis nodes */
export async function startMixed(
  cleanup: Cleanup,
  settings: Readonly<Record<string, string>> = {},
  scale: Pick<Shape, 'frontEnds' | 'nodes'> = { frontEnds: 1 },
): Promise<MixedService> {
  const receiver = await startReceiver();
  cleanup.add(() => receiver.close());
  const shape = { ack: 'redis', partners: PARTNERS, games: GAMES, gameType: 'slot', ...scale } as const;
  const service = await startService(shape, cleanup, [], settings);
  await service.addRaffles(RAFFLES);
  const { operator } = service.api;
  const partners: Mix['partners'][number][] = [];
  for (const { partnerId, apiKey } of service.partners) {
    const params = { path: { id: partnerId } };
    await bodyOf(operator.PATCH('/partners/{id}', { params, body: { largeWinThresholdUsd: LARGE_WIN_USD } }));
    const webhook = { url: receiver.url(), events: ['spin.large_win' as const] };
    const { id: webhookId } = await bodyOf(service.api.partner(apiKey).POST('/webhooks', { body: webhook }));
    const name = `TABLE_${partnerId}`;
    const table = { displayName: name, configName: name, wagerUsd: TABLE_WAGER_USD, rules: {} };
    const body = await bodyOf(operator.POST('/partners/{id}/blackjack-games', { params, body: table }));
    partners.push({ apiKey, tableId: body.gameConfigId, webhookId });
  }
  for (const { tableId: id } of partners)
    await until(
      async () =>
        (await bodyOf(operator.GET('/games/{id}', { params: { path: { id } } }))).queue.outcomesReady > 0,
      'the tables have shoes',
      60_000,
    );
  const shares = { ...SHARES, rounds: DEALS, spins: SHARES.spins + SHARES.rounds - DEALS };
  return {
    service,
    receiver,
    order: {
      base: service.base,
      targets: service.targets,
      isZipf: true,
      players: PLAYERS / PARTNERS,
      hasRequestId: true,
      mix: { partners, tableWagerUsd: TABLE_WAGER_USD, shares },
    },
  };
}
