/** Outcomes that testers of sandbox accounts choose (docs/sandbox.md). For a production account there is no such path. */
import { FORCED_MAX, type ForcedOutcome } from '../../cells/forceOutcome.js';
import * as contract from '../../contract/endpoints/spins.js';
import { ApiError, ERRORS, type Fault } from '../../domain/errors.js';
import { parseExactJson } from '../../domain/exactJson.js';
import type { Partner } from '../../domain/game.js';
import type { NextOutcomeBody } from '../../domain/requests.js';
import { type Route, route } from '../route.js';
import { type OwnGameServices, ownGame } from './games.js';

export interface SandboxServices extends OwnGameServices {
  /** @returns until when the choice stands */
  forceOutcome(wanted: ForcedOutcome): Promise<Date | 'full' | 'unavailable'>;
}

const invalid = (fault: Fault): ApiError => new ApiError(ERRORS.validationFailed, { details: [fault] });

async function chooseNext(services: SandboxServices, partner: Partner, body: NextOutcomeBody) {
  const { gameId, playerId, combinationIndex } = body;
  const game = await ownGame(services, gameId, partner);
  if (game === undefined) throw new ApiError(ERRORS.gameNotRegistered);
  if (game.kind.gameType !== 'slot') throw invalid({ path: '/gameId', message: 'must be a slot game' });
  const fragment = game.fragments[combinationIndex];
  if (fragment === undefined) {
    const message = `must be at most ${game.fragments.length - 1}, the last combination of the PAR sheet`;
    throw invalid({ path: '/combinationIndex', message });
  }
  const { cell, newestMove, partnerId } = partner;
  const chosen = await services.forceOutcome({
    ...{ cell, newestMove, partnerId, gameId, playerId },
    outcomeCode: combinationIndex,
  });
  if (chosen === 'unavailable') throw new ApiError(ERRORS.unavailable);
  if (chosen === 'full') {
    const message = `At most ${FORCED_MAX} chosen outcomes of a partner wait for their spins`;
    throw new ApiError(ERRORS.capReached, { details: [{ path: '', message }] });
  }
  const { outcome } = parseExactJson(`{${fragment}}`) as { outcome: object };
  return { gameId, playerId, combinationIndex, outcome, expiresAt: chosen.toISOString() };
}

export const sandboxRoutes = (services: SandboxServices): Route[] => [
  route(contract.chooseNextOutcome, ({ partner, body }) => chooseNext(services, partner, body)),
];
