/** Handlers of partners, their API keys, and their moves to other cells. */
import { newKey, storedKey } from '../../domain/apiKey.js';
import { ApiError, ERRORS, type Fault, invalid } from '../../domain/errors.js';
import { MAX_MICROS, microsToUsdText } from '../../domain/money.js';
import { type PartnerSettings, SETTING_LIST } from '../../domain/partnerSettings.js';
import { NO_TIME, rfc3339Time } from '../../domain/rfc3339.js';
import { amountMicros } from '../../domain/schema.js';
import type { PartnerRow } from '../../engine/catalog/partners.store.js';
import type { NotMoved } from '../../engine/recovery/partnerMoves.store.js';
import type { Store } from '../api.store.js';
import { notifyGames } from '../dealing/routes.js';
import { activePartnerOf, partnerOf, pathId } from '../server/found.js';
import { learn, type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import type { ApiKeyRow, Unchangeable } from './apiKeys.store.js';
import * as contract from './contract.js';
import { OVERLAP_DEFAULT_S, type PartnerPatch } from './contract.js';

/**
 * Opening balance of a sandbox partner's players, in micro-USD. Players of a production partner start with 0
 * (docs/contract.md §5.2).
 */
const SANDBOX_OPENING_MICROS = 1_000_000_000;

const usd = (micros: number): number => Number(microsToUsdText(micros));

const shownPartner = (row: PartnerRow) => ({
  ...row,
  dealing: row.isDealing ? 'ON' : 'OFF',
  ...Object.fromEntries(
    SETTING_LIST.map(({ name, shown, type }) => {
      const value = row[name];
      return [shown, type === 'bigint' && value !== null ? usd(value as number) : value];
    }),
  ),
});

/** @throws ApiError (KS-4101) if an amount has too many decimals or is too large */
function settingsOf(body: PartnerPatch): Partial<PartnerSettings> {
  const faults: Fault[] = [];
  const amount = (name: string, value: number): number => {
    const micros = amountMicros(value);
    if (micros === undefined) {
      faults.push({
        path: `/${name}`,
        message: `must be at most ${usd(MAX_MICROS)}, with at most 6 decimals`,
      });
    }
    return micros ?? 0;
  };
  const settings: Record<string, unknown> = {};
  for (const { name, shown, type } of SETTING_LIST) {
    const value = body[shown];
    if (value === undefined) continue;
    settings[name] = type === 'bigint' && value !== null ? amount(shown, value as number) : value;
  }
  if (faults.length > 0) throw invalid(faults);
  return settings;
}

const cellFault = (why: 'noSuchCell' | 'cellDrains'): ApiError =>
  invalid([
    {
      path: '/cell',
      message:
        why === 'noSuchCell'
          ? 'must be the number of an existing cell'
          : 'must be a cell that is not draining',
    },
  ]);

function statusOf(key: ApiKeyRow): 'active' | 'revoked' | 'expired' {
  if (key.revokedAt !== null) return 'revoked';
  return key.expiresAt !== null && key.expiresAt.getTime() <= Date.now() ? 'expired' : 'active';
}

const keyOf = (row: ApiKeyRow) => ({
  keyId: row.keyId,
  name: row.name,
  prefix: row.prefix,
  createdAt: row.createdAt,
  expiresAt: row.expiresAt,
});

const shownKey = (row: ApiKeyRow) => ({
  ...keyOf(row),
  status: statusOf(row),
  lastUsedAt: row.lastUsedAt,
});

export function expiryOf(text: string | null | undefined): Date | null {
  if (text === null || text === undefined) return null;
  const expiresAt = rfc3339Time(text);
  const path = '/expiresAt';
  if (expiresAt === undefined) throw invalid([{ path, message: NO_TIME }]);
  if (expiresAt.getTime() <= Date.now()) throw invalid([{ path, message: 'must be in the future' }]);
  return expiresAt;
}

/** Returns the settings of a new partner (docs/contract.md §15.1). */
export const initialSettings = (environment: string): PartnerSettings => ({
  ...(Object.fromEntries(SETTING_LIST.map(({ name, initial }) => [name, initial])) as PartnerSettings),
  ...(environment === 'sandbox' && { openingBalanceMicros: SANDBOX_OPENING_MICROS }),
});

const createPartner = ({ store, catalog }: Services): Route =>
  route(contract.createPartner, async ({ actor, body }) => {
    const { slug, name, environment, cell, ...given } = body;
    const settings = { ...initialSettings(environment), ...settingsOf(given) };
    const wanted = { slug, name, environment, ...settings };
    const row = await store.partners.create(actor, wanted, cell);
    if (row === 'slugTaken') throw new ApiError(ERRORS.slugTaken);
    if (typeof row === 'string') throw cellFault(row);
    await learn(catalog);
    return shownPartner(row);
  });

export const partnerRoutes = (services: Services): Route[] => {
  const { store, catalog } = services;
  return [
    createPartner(services),
    route(contract.listPartners, async () => {
      return { partners: (await store.partners.list()).map(shownPartner) };
    }),
    route(contract.getPartner, async ({ params }) => {
      return shownPartner(await partnerOf(store, params.id));
    }),
    route(contract.updatePartner, async ({ actor, params, body }) => {
      const { name, isActive, dealing, reason } = body;
      const change = {
        ...settingsOf(body),
        ...(name === undefined ? {} : { name }),
        ...(isActive === undefined ? {} : { isActive }),
        ...(dealing === undefined ? {} : { isDealing: dealing === 'ON' }),
      };
      const partnerId = pathId(params.id);
      const row =
        partnerId === undefined ? undefined : await store.partners.update(actor, partnerId, change, reason);
      if (row === undefined) throw new ApiError(ERRORS.partnerNotFound);
      await learn(catalog);
      if (dealing !== undefined) await notifyGames(services);
      return shownPartner(row);
    }),
    route(contract.issueKey, async ({ actor, params, body }) => {
      const { name, expiresAt } = body;
      const expiry = expiryOf(expiresAt);
      const partner = await activePartnerOf(store, params.id);
      const apiKey = newKey('ks_');
      const row = await store.apiKeys.issue(actor, {
        partnerId: partner.partnerId,
        ...storedKey(apiKey),
        name: name ?? null,
        expiresAt: expiry,
      });
      await learn(catalog);
      return { ...keyOf(row), apiKey };
    }),
    route(contract.listKeys, async ({ params }) => {
      const partner = await partnerOf(store, params.id);
      const keys = await store.apiKeys.list(partner.partnerId);
      return {
        keys: keys.map(shownKey),
      };
    }),
    ...keyChangeRoutes(services),
    route(contract.revokeKey, async ({ actor, params, query }) => {
      const partner = await partnerOf(store, params.id);
      const keyId = pathId(params.keyId);
      const result =
        keyId === undefined
          ? 'missing'
          : await store.apiKeys.revoke(actor, partner.partnerId, keyId, query.reason);
      if (result === 'missing') throw new ApiError(ERRORS.keyNotFound);
      if (result === 'foreign') throw new ApiError(ERRORS.keyForeign);
      await learn(catalog);
      return undefined;
    }),
    ...moveRoutes(store),
  ];
};

function unchangeable(why: Unchangeable): ApiError {
  if (why === 'missing') return new ApiError(ERRORS.keyNotFound);
  if (why === 'foreign') return new ApiError(ERRORS.keyForeign);
  const message = why === 'revoked' ? 'The key is revoked.' : 'The key has expired.';
  return invalid([{ path: '', message: `${message} Issue another key.` }]);
}

const keyChangeRoutes = ({ store, catalog }: Services): Route[] => [
  route(contract.updateKey, async ({ actor, params, body }) => {
    const expiry = expiryOf(body.expiresAt);
    const { partnerId } = await partnerOf(store, params.id);
    const keyId = pathId(params.keyId);
    if (keyId === undefined) throw unchangeable('missing');
    const row = await store.apiKeys.setExpiry(actor, partnerId, keyId, expiry, body.reason);
    if (typeof row === 'string') throw unchangeable(row);
    await learn(catalog);
    return shownKey(row);
  }),
  route(contract.rotateKey, async ({ actor, params, body }) => {
    const { name, expiresAt, overlapSeconds = OVERLAP_DEFAULT_S, reason } = body;
    const expiry = expiryOf(expiresAt);
    const { partnerId } = await activePartnerOf(store, params.id);
    const keyId = pathId(params.keyId);
    if (keyId === undefined) throw unchangeable('missing');
    const apiKey = newKey('ks_');
    const key = { ...storedKey(apiKey), name: name ?? null, expiresAt: expiry };
    const rotated = await store.apiKeys.rotate(actor, partnerId, keyId, key, { overlapSeconds, reason });
    if (typeof rotated === 'string') throw unchangeable(rotated);
    await learn(catalog);
    const { issued, replaced } = rotated;
    return {
      ...keyOf(issued),
      apiKey,
      replacedKeyId: replaced.keyId,
      replacedExpiresAt: replaced.expiresAt,
    };
  }),
];

const FAULTS: Readonly<Record<Exclude<NotMoved, 'noSuchPartner'>, string>> = {
  noSuchCell: 'must be the number of an existing cell',
  cellDrains: 'must be a cell that is not draining',
  there: 'must be a different cell, because the partner is already in this cell',
  moving: 'cannot be changed until the current move of the partner has ended',
};

const moveRoutes = (store: Pick<Store, 'partnerMoves' | 'partners'>): Route[] => [
  route(contract.movePartner, async ({ actor, params, body }) => {
    const { cell, reason } = body;
    const partnerId = pathId(params.id);
    const move =
      partnerId === undefined
        ? 'noSuchPartner'
        : await store.partnerMoves.request(actor, partnerId, cell, reason);
    if (move === 'noSuchPartner') throw new ApiError(ERRORS.partnerNotFound);
    if (typeof move === 'string') {
      const details = [{ path: '/cell', message: FAULTS[move] }];
      throw invalid(details);
    }
    return move;
  }),
  route(contract.listMoves, async ({ params }) => {
    const { partnerId } = await partnerOf(store, params.id);
    return { moves: await store.partnerMoves.ofPartner(partnerId) };
  }),
];
