/**
 * Handlers of the sandbox (docs/requests.md): outcomes that testers choose, and previews of settlement
 * reports. These paths do not exist for production accounts.
 */

import { ApiError, ERRORS, invalid } from '../../domain/errors.js';
import { parseExactJson } from '../../domain/exactJson.js';
import type { Partner } from '../../domain/game.js';
import { FORCED_MAX } from '../../engine/cells/forceOutcome.js';
import { ownGame } from '../server/found.js';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import type { NextOutcomeBody } from './contract.js';
import * as contract from './contract.js';

async function chooseNext(services: Services, partner: Partner, body: NextOutcomeBody) {
  const { gameId, playerId, combinationIndex } = body;
  const game = await ownGame(services.catalog, gameId, partner);
  if (game === undefined) throw new ApiError(ERRORS.gameNotRegistered);
  if (game.kind.gameType !== 'slot') throw invalid([{ path: '/gameId', message: 'must be a slot game' }]);
  const fragment = game.fragments[combinationIndex];
  if (fragment === undefined) {
    const message = `must be at most ${game.fragments.length - 1}, the index of the last combination of the PAR sheet`;
    throw invalid([{ path: '/combinationIndex', message }]);
  }
  const { cell, newestMove, partnerId } = partner;
  const chosen = await services.cells.forceOutcome({
    cell,
    newestMove,
    partnerId,
    gameId,
    playerId,
    outcomeCode: combinationIndex,
  });
  if (chosen === 'unavailable') throw new ApiError(ERRORS.unavailable);
  if (chosen === 'full') {
    const message = `At most ${FORCED_MAX} chosen outcomes of a partner can wait for their spins. Spin first, or wait up to an hour until they expire.`;
    throw new ApiError(ERRORS.capReached, { details: [{ path: '', message }] });
  }
  const { outcome } = parseExactJson(`{${fragment}}`) as { outcome: object };
  return { gameId, playerId, combinationIndex, outcome, expiresAt: chosen.toISOString() };
}

export const sandboxRoutes = (services: Services): Route[] => [
  route(contract.chooseNextOutcome, ({ partner, body }) => chooseNext(services, partner, body)),
  route(contract.previewSettlement, async ({ partner }) => {
    const { report, integrityHash } = await services.settlementReports.previewToday(partner.partnerId);
    return { ...report, reportStatus: 'PREVIEW', integrityHash };
  }),
];
