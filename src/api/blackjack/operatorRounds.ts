/** Blackjack tables, made by the operator; and rounds that the operator looks at, voids or closes (docs/blackjack.md). */

import { ApiError, ERRORS, invalid } from '../../domain/errors.js';
import { rulesHash } from '../../domain/games/blackjackRules.js';
import type { RoundRecord } from '../../domain/games/round.js';
import { checkTable } from '../../domain/games/table.js';
import { microsToUsdText } from '../../domain/money.js';
import { gameOf } from '../games/routes.js';
import { activePartnerOf } from '../server/found.js';
import { learn, type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import type { BlackjackBody } from './contract.js';
import * as contract from './contract.js';
import { findRound, shownRecord, tableOf } from './routes.js';

const ROUND_TIMEOUT_DEFAULT_S = 86_400;

async function makeTable(services: Services, actor: string, id: string, body: BlackjackBody) {
  const { displayName, configName, wagerUsd, rules, roundTimeoutS = ROUND_TIMEOUT_DEFAULT_S } = body;
  const given = rules as Readonly<Record<string, unknown>>;
  const checked = checkTable({ wagerUsd, rules: given, roundTimeoutSeconds: roundTimeoutS });
  if ('faults' in checked) throw invalid(checked.faults);
  const partner = await activePartnerOf(services.store, id);
  const { terms } = checked;
  const row = await services.store.rounds.createTable(actor, {
    partnerId: partner.partnerId,
    configName,
    displayName,
    terms,
  });
  if (row === 'name-taken') throw new ApiError(ERRORS.configNameTaken);
  await learn(services.catalog);
  return {
    ...gameOf(row, terms.wagerMicros),
    partnerId: row.partnerId,
    wagerUsd: Number(microsToUsdText(terms.wagerMicros)),
    rules: terms.rules,
    rulesHash: rulesHash(terms.rules).toString('hex'),
    roundTimeoutS,
  };
}

/** Ends an open round. It is in the audit log before it is done: no end is ever without its entry. */
async function endRound(
  services: Services,
  actor: string,
  roundId: string,
  how: 'timeout' | 'void',
  reason?: string,
): Promise<RoundRecord> {
  const record = await findRound(services, roundId);
  if (record.status !== 'OPEN') throw new ApiError(ERRORS.actionIllegal);
  const table = await tableOf(services, record.gameId);
  const partner = services.catalog.partner(record.partnerId);
  if (partner === undefined) throw new Error(`Partner ${record.partnerId} is not in the catalog`);
  const action = how === 'void' ? 'round.void' : 'round.close';
  const details = {
    player: `${record.partnerId}:${record.playerId}`,
    ...(reason === undefined ? {} : { reason }),
  };
  await services.store.auditLog.recordRound(actor, action, roundId, details);
  const ended = await services.blackjack.rounds.end(table, partner, record, how);
  if (typeof ended !== 'string') return ended.record;
  await services.store.auditLog.recordRound(actor, `${action}.refused`, roundId, {
    ...details,
    refusal: ended,
  });
  if (ended === 'illegal') throw new ApiError(ERRORS.actionIllegal);
  throw new ApiError(ended === 'unknown' ? ERRORS.spinInProgress : ERRORS.unavailable);
}

export const blackjackRoutes = (services: Services): Route[] => [
  route(contract.createBlackjackGame, ({ actor, params, body }) =>
    makeTable(services, actor, params.id, body),
  ),
  route(contract.showRound, async ({ params }) =>
    shownRecord(services, await findRound(services, params.roundId)),
  ),
  route(contract.voidRound, async ({ actor, params, body }) =>
    shownRecord(services, await endRound(services, actor, params.roundId, 'void', body.reason)),
  ),
  route(contract.closeRound, async ({ actor, params, query }) =>
    shownRecord(services, await endRound(services, actor, params.roundId, 'timeout', query.reason)),
  ),
];
