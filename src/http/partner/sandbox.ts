/** Outcomes that testers of sandbox accounts choose (docs/sandbox.md). For a production account there is no such path. */
import { FORCED_MAX, type ForcedOutcome } from '../../cells/forceOutcome.js';
import { ApiError, ERRORS, type Fault } from '../../domain/errors.js';
import { parseExactJson } from '../../domain/exactJson.js';
import type { Partner } from '../../domain/game.js';
import { NextOutcomeBody, NextOutcomeResponse } from '../../domain/requests.js';
import { type Route, summed } from '../route.js';
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
  {
    method: 'post',
    path: '/sandbox/next-outcome',
    operationId: 'chooseNextOutcome',
    tag: 'Sandbox',
    summary: "Choose the outcome of a player's next spin of a slot game",
    scope: 'partner',
    sandboxOnly: true,
    body: NextOutcomeBody,
    status: 200,
    ...summed(NextOutcomeResponse),
    errors: [ERRORS.notFound, ERRORS.fieldMissing, ERRORS.gameNotRegistered, ERRORS.capReached],
    failure: ERRORS.internal,
    handle: ({ partner, body }) => chooseNext(services, partner, body as unknown as NextOutcomeBody),
  },
];
