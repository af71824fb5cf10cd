/** Views of partners and their API keys. */
import { type Column, change, type Schemas } from './view.js';

export const PARTNERS: readonly Column<Schemas['PartnerResponse']>[] = [
  { heading: 'Id', value: (row) => row.partnerId, kind: 'number' },
  { heading: 'Slug', value: (row) => row.slug },
  { heading: 'Name', value: (row) => row.name },
  { heading: 'Environment', value: (row) => row.environment },
  { heading: 'Cell', value: (row) => row.cell, kind: 'number' },
  { heading: 'Status', value: (row) => (row.isActive ? 'active' : 'inactive'), kind: 'status' },
  { heading: 'Dealing', value: (row) => row.dealing, kind: 'status' },
  { heading: 'Spins a minute', value: (row) => row.spinRateLimit, kind: 'count' },
  { heading: 'Balances', value: (row) => row.balanceMode },
  { heading: 'Opening balance', value: (row) => row.openingBalanceUsd, kind: 'usd' },
  { heading: 'Funding', value: (row) => row.fundingUsd, kind: 'usd' },
];

export const DEACTIVATE_PARTNER = change('PATCH /partners/{id}', {
  body: { isActive: false },
  asks: 'Deactivate',
  consequence:
    "All requests with the partner's keys are refused within a second, so its games can't be played, until you activate the partner again.",
  button: 'Deactivate the partner',
  confirm: 'Deactivate',
  done: 'The partner is inactive.',
});
export const ACTIVATE_PARTNER = change('PATCH /partners/{id}', {
  body: { isActive: true },
  asks: 'Activate',
  consequence: "The partner's keys are accepted again, and its games can be played.",
  button: 'Activate the partner',
  confirm: 'Activate',
  done: 'The partner is active.',
});
export const STOP_PARTNER = change('PATCH /partners/{id}', {
  body: { dealing: 'OFF' },
  asks: 'Stop dealing for',
  consequence:
    "Within a second the partner's spins, tickets and deals are refused, until you resume its dealing. Its other requests and its open rounds continue.",
  button: 'Stop dealing',
  done: 'Dealing is off for this partner.',
});
export const RESUME_PARTNER = change('PATCH /partners/{id}', {
  body: { dealing: 'ON' },
  asks: 'Resume dealing for',
  consequence: "The partner's games can be played again.",
  button: 'Resume dealing',
  isHarmless: true,
  done: 'Dealing is on for this partner.',
});

export const KEYS: readonly Column<Schemas['ApiKey']>[] = [
  { heading: 'Id', value: (row) => row.keyId, kind: 'number' },
  { heading: 'Name', value: (row) => row.name },
  { heading: 'Begins with', value: (row) => row.prefix },
  { heading: 'Status', value: (row) => row.status, kind: 'status' },
  { heading: 'Created', value: (row) => row.createdAt, kind: 'time' },
  { heading: 'Expires', value: (row) => row.expiresAt ?? 'never', kind: 'time' },
  { heading: 'Last used', value: (row) => row.lastUsedAt, kind: 'time' },
];

export const REVOKE_KEY = change('DELETE /partners/{id}/keys/{keyId}', {
  asks: 'Revoke',
  consequence: "Requests with this key are refused at once. A revoked key can't be restored.",
  button: 'Revoke',
  confirm: 'Revoke the key',
  done: 'The key is revoked.',
});

/**
 * @param expiresAt null: the key never expires
 * @param shown the time as this surface shows it
 */
export const endKey = (expiresAt: string | null, shown = expiresAt) =>
  expiresAt === null
    ? change('PATCH /partners/{id}/keys/{keyId}', {
        body: { expiresAt },
        asks: 'Remove the end of',
        consequence: 'This key will never expire. It stays valid until somebody revokes it.',
        button: 'Let it never expire',
        done: 'The key never expires.',
      })
    : change('PATCH /partners/{id}/keys/{keyId}', {
        body: { expiresAt },
        asks: 'Change the end of',
        consequence: `All requests with this key are refused from ${shown} on.`,
        button: 'Change the expiry',
        done: `The key expires at ${shown}.`,
      });
