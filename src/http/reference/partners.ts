/** Descriptions and examples: partners and their API keys. */
import { ERRORS } from '../../domain/errors.js';
import type { References } from './operationReference.js';

const PARTNER = {
  partnerId: 2,
  slug: 'acme',
  name: 'Acme Games',
  environment: 'sandbox',
  isActive: true,
  cell: 0,
  createdAt: '2026-11-22T04:13:56.258Z',
  spinRateLimit: 300,
  apiRateLimit: 600,
  openingBalanceUsd: 1000,
  balanceMode: 'track',
  fundingUsd: null,
  largeWinThresholdUsd: 10,
  minReadyBlocks: 2,
  maxGames: 1000,
  maxParSheets: 1000,
  maxWebhooks: 50,
  contactEmail: 'games@acme.example',
};

const MOVE = {
  moveId: 1,
  partnerId: 2,
  fromCell: 0,
  toCell: 5,
  requestedAt: '2026-11-22T04:20:00.950Z',
  switchedAt: null,
  finishedAt: null,
  failure: null,
};

const KEY = {
  keyId: 2,
  name: 'back end',
  createdAt: '2026-11-22T04:13:56.480Z',
  expiresAt: '2027-12-31T00:00:00.000Z',
};

export const PARTNER_REFERENCES: References = {
  createPartner: {
    description:
      'Opens an account. Whether it is sandbox or production never changes. Settings that are not sent have their defaults. Without `cell` the partner comes to the cell that has the fewest; a cell that does not exist, or that drains, is refused.',
    request: {
      slug: 'acme',
      name: 'Acme Games',
      environment: 'sandbox',
      contactEmail: 'games@acme.example',
      largeWinThresholdUsd: 10,
    },
    response: PARTNER,
  },
  listPartners: {
    description: 'Lists all partners with their settings, the deactivated ones too.',
    response: { partners: [PARTNER] },
  },
  getPartner: { description: 'Returns one partner with its settings.', response: PARTNER },
  updatePartner: {
    description:
      'Members that are not sent keep their values. Limits and `isActive` are in force on every front end within a second.',
    request: { spinRateLimit: 600 },
    response: { ...PARTNER, spinRateLimit: 600 },
  },
  movePartner: {
    description:
      'The answer comes at once; `GET /partners/{id}/moves` tells how far it is. Spins wait while the partner is switched, less than two seconds. A move that fails again and again is given up: the partner stays where it is.',
    request: { cell: 5 },
    response: MOVE,
  },
  listMoves: {
    description: 'From `switchedAt` on the partner is dealt for in the new cell.',
    response: {
      moves: [{ ...MOVE, switchedAt: '2026-11-22T04:20:01.310Z', finishedAt: '2026-11-22T04:20:04.820Z' }],
    },
  },
  issueKey: {
    description: 'The answer shows the key, of which the service keeps only the SHA-256.',
    request: { name: 'back end', expiresAt: '2027-12-31T00:00:00.000Z' },
    // Not a key of anyone.
    response: { ...KEY, apiKey: `ks_${'A'.repeat(43)}` },
  },
  listKeys: {
    description: 'Lists the keys of a partner without their secrets, the revoked and expired ones too.',
    response: { keys: [{ ...KEY, status: 'active', lastUsedAt: '2026-11-22T04:14:01.783Z' }] },
  },
  revokeKey: {
    description: `A revoked key is refused with ${ERRORS.revokedApiKey.code} on every front end within a second, for ever.`,
  },
};
