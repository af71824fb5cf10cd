/** Actions of operators and partners during the days of a demonstration, in addition to the traffic. */
import { createServer } from 'node:http';
import { bodyOf } from '../../src/api/client/apiClients.js';
import type { Cleanup } from '../support/cleanup.js';
import type { DemoPartner, Portfolio } from './portfolio.js';

const DAY_MS = 86_400_000;
/** The sandbox partner's back end answers every 9th delivery with 503. */
const UNAVAILABLE_EVERY = 9;

/** An action with its day, counted from 0, and the earliest hour at which it may happen. */
export interface Happening {
  readonly day: number;
  readonly hour: number;
  readonly run: (now: number) => Promise<unknown>;
}

const EVENTS = ['spin.large_win', 'settlement.report_ready', 'api_key.expiring'] as const;

const dayBefore = (ms: number): string => new Date(ms - DAY_MS).toISOString().slice(0, 10);

/**
 * Starts a back end that accepts most events.
 * @returns its URL
 */
async function receiver(cleanup: Cleanup): Promise<string> {
  let deliveries = 0;
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(++deliveries % UNAVAILABLE_EVERY === 0 ? 503 : 200).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanup.add(() => server.close());
  return `http://localhost:${(server.address() as { port: number }).port}/spindle`;
}

/** Short functions for the API calls of the actions. */
function callsOf({ as, northwind }: Portfolio) {
  const of = ({ partnerId }: DemoPartner) => ({ path: { id: partnerId } });
  return {
    key: (partner: DemoPartner, name: string, expiresAt: number) =>
      bodyOf(
        as('jane.doe').operator.POST('/partners/{id}/keys', {
          params: of(partner),
          body: { name, expiresAt: new Date(expiresAt).toISOString() },
        }),
      ),
    webhook: (partner: DemoPartner, url: string) => {
      const body = { url, events: [...EVENTS] };
      return bodyOf(as('jane.doe').partner(partner.key).POST('/webhooks', { body }));
    },
    adjust: (partner: DemoPartner, playerId: string, amountUsd: number, reason: string) =>
      bodyOf(
        as('omar.haddad').operator.POST('/partners/{id}/players/{playerId}/adjustments', {
          params: { path: { id: partner.partnerId, playerId } },
          body: { amountUsd, reason, requestId: `${playerId}:${reason}` },
        }),
      ),
    suspend: async (name: string, reason: string) => {
      const id = northwind.games.find((game) => game.name === name)!.id;
      const body = { status: 'SUSPENDED' as const, reason };
      await bodyOf(as('omar.haddad').operator.PATCH('/games/{id}', { params: { path: { id } }, body }));
      northwind.games = northwind.games.filter((each) => each.id !== id);
    },
    player: (playerId: string, status: 'ACTIVE' | 'BLOCKED', reason: string) =>
      bodyOf(
        as('omar.haddad').operator.PATCH('/partners/{id}/players/{playerId}', {
          params: { path: { id: northwind.partnerId, playerId } },
          body: { status, reason },
        }),
      ),
    dealing: (state: 'ON' | 'OFF', reason: string) =>
      bodyOf(as('ada.admin').operator.PUT('/dealing', { body: { state, reason } })),
    acknowledge: (partner: DemoPartner, date: string) =>
      bodyOf(
        as('jane.doe')
          .partner(partner.key)
          .POST('/settlements/{date}/acknowledge', { params: { path: { date } } }),
      ),
    dispute: (partner: DemoPartner, date: string, reason: string) => {
      const disputed = { params: { path: { date } }, body: { reason } };
      return bodyOf(as('jane.doe').partner(partner.key).POST('/settlements/{date}/dispute', disputed));
    },
    revise: (partner: DemoPartner, date: string) =>
      bodyOf(
        as('omar.haddad').operator.POST('/partners/{id}/settlements/{date}', {
          params: {
            path: { id: partner.partnerId, date },
            query: { reason: 'The partner counts other wagers' },
          },
        }),
      ),
    /** Adds a note to the oldest review, if chance has opened one. */
    note: async (text: string) => {
      const { reviews } = await bodyOf(as('omar.haddad').operator.GET('/rtp-reviews', {}));
      const id = reviews.at(-1)?.reviewId;
      if (id === undefined) return;
      await bodyOf(
        as('omar.haddad').operator.POST('/rtp-reviews/{id}/notes', {
          params: { path: { id } },
          body: { text },
        }),
      );
    },
  };
}

/**
 * Returns all actions in chronological order.
 * @param days the number of days before today
 */
export async function happeningsOf(
  portfolio: Portfolio,
  days: number,
  cleanup: Cleanup,
): Promise<Happening[]> {
  const { acme, northwind, lucky } = portfolio;
  const url = await receiver(cleanup);
  const calls = callsOf(portfolio);
  const at = (day: number, hour: number, run: Happening['run']): Happening => ({ day, hour, run });
  /** Each morning partners acknowledge the reports of the previous day, except the two newest reports. */
  const acknowledgements = [acme, lucky].flatMap((partner) =>
    Array.from({ length: Math.max(0, days - 2) }, (_, i) =>
      at(i + 1, 9, (now) => calls.acknowledge(partner, dayBefore(now))),
    ),
  );
  return [
    at(0, 1, (now) => calls.key(acme, 'reporting', now + (days + 4) * DAY_MS)),
    at(0, 1, () => calls.webhook(lucky, url)),
    at(0, 1, () => calls.webhook(acme, 'https://hooks.acme.example/spindle')),
    at(1, 10, () => calls.webhook(northwind, 'https://events.northwind.example/in')),
    at(2, 4, () => calls.dealing('OFF', 'Maintenance of the payment provider')),
    at(2, 5, () => calls.dealing('ON', 'Maintenance is over')),
    at(3, 11, () => calls.adjust(acme, 'alice', 25, 'Goodwill after a slow evening')),
    at(4, 15, () => calls.adjust(northwind, 'bjorn', -40, 'Bonus was credited twice')),
    at(5, 12, () => calls.player('player-1020', 'BLOCKED', 'Asked for self-exclusion')),
    at(6, 13, () => calls.player('player-1031', 'BLOCKED', 'Identity is checked')),
    at(7, 11, (now) => calls.dispute(northwind, dayBefore(now), 'Our sum of wagers is 4 USD lower')),
    at(7, 13, () => calls.player('player-1031', 'ACTIVE', 'Identity was confirmed')),
    at(8, 10, (now) => calls.revise(northwind, dayBefore(now - DAY_MS))),
    at(9, 16, () => calls.suspend('Penny Parade', 'The studio revises its sheet')),
    at(10, 9, (now) => calls.key(northwind, 'back end 2', now + 300 * DAY_MS)),
    at(12, 14, () => calls.adjust(acme, 'chen', 120, 'Prize of the autumn tournament')),
    at(13, 10, () => calls.note('Asked the studio for its certificate')),
    at(13, 10, (now) => calls.dispute(northwind, dayBefore(now), 'Two tickets too many')),
    ...acknowledgements,
  ].sort((a, b) => a.day - b.day || a.hour - b.hour);
}
