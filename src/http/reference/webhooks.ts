/** Descriptions and examples: webhooks, deliveries and the feed of events. */
import { EVENT_REFERENCES } from './events.js';
import type { References } from './operationReference.js';

const WEBHOOK = {
  id: 1,
  url: 'https://games.acme.example/spindle-events',
  events: ['spin.large_win', 'settlement.report_ready'],
  isActive: true,
  createdAt: '2026-11-22T04:13:57.068Z',
};

export const LISTED_WEBHOOK = {
  ...WEBHOOK,
  health: {
    state: 'failing',
    reason: 'answered 503',
    failingSince: '2026-11-22T07:12:31.405Z',
    pending: 618,
    restsUntil: '2026-11-22T07:45:12.220Z',
  },
};

/** Not a secret of anyone: the bytes are all 0. */
const SECRET = `whsec_${'A'.repeat(43)}=`;

export const WEBHOOK_REFERENCES: References = {
  registerWebhook: {
    description:
      'The URL must be a public https address; sandbox accounts may use `http://localhost`. The answer shows the signing secret, which is never shown again.',
    request: { url: WEBHOOK.url, events: WEBHOOK.events },
    response: { ...WEBHOOK, secret: SECRET },
  },
  listWebhooks: {
    description:
      'Deleted webhooks are not listed. `health` says whether the receiver takes deliveries. One that fails 50 times in a row gets single attempts, at most a minute apart, until one succeeds.',
    response: { webhooks: [LISTED_WEBHOOK] },
  },
  updateWebhook: {
    description:
      'A webhook that failed for long is set inactive by the service; `isActive: true` takes it up again, and what waited is delivered.',
    request: { events: ['spin.large_win'] },
    response: { ...WEBHOOK, events: ['spin.large_win'] },
  },
  deleteWebhook: {
    description: 'Deliveries that wait are given up. The history of its deliveries stays with the operator.',
  },
  rotateWebhookSecret: {
    description:
      'For 24 hours `webhook-signature` has two signatures, separated by a space: by the new and by the old secret. The other signature header uses the new one.',
    response: { id: 1, secret: SECRET, previousSecretExpiresAt: '2026-11-23T04:14:04.260Z' },
  },
  testWebhook: {
    description:
      'The delivery is signed and repeated like any other. Read its result in the deliveries of the webhook.',
    request: { event: 'spin.large_win' },
    response: {
      eventId: 'evt_01a201760794207154d366a13cb3032f',
      deliveryId: 'dlv_01a201760794f2925461f5ca8df107b1',
    },
  },
  listDeliveries: {
    description:
      'Shows for each delivery how often it was tried and what the last answer was. A delivery is tried 5 times, then it is `failed`.',
    response: {
      deliveries: [
        {
          id: 'dlv_01a201760794f2925461f5ca8df107b1',
          event: 'spin.large_win',
          status: 'delivered',
          attempts: 1,
          maxAttempts: 5,
          createdAt: '2026-11-22T04:14:02.132Z',
          lastAttemptAt: '2026-11-22T04:14:02.141Z',
          nextAttemptAt: null,
          responseStatus: 204,
        },
      ],
      page: 1,
      limit: 20,
      total: 1,
    },
  },
  resendOwnDelivery: {
    description: 'The delivery starts again with 5 attempts. It keeps its id and the id of its event.',
    response: { resent: 1 },
  },
  listEvents: {
    response: { events: [EVENT_REFERENCES['spin.large_win']!.body], nextCursor: null },
  },
  resendDelivery: {
    description: 'The delivery starts again with 5 attempts, also where it had been delivered.',
    response: { resent: 1 },
  },
  resendFailed: {
    description: 'For the time after an outage of a receiver: deliveries of all partners that have failed.',
    request: { since: '2026-11-22T00:00:00Z' },
    response: { resent: 12 },
  },
};
