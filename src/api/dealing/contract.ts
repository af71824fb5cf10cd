/** The switch of all games. */
import { ERRORS } from '../../domain/errors.js';
import { endpoint } from '../contract/endpoint.js';
import { DealingBody, DealingResponse } from '../contract/requests.js';

const OFF = {
  state: 'OFF',
  reason: 'A payout is being looked into',
  actor: 'operator',
  changedAt: '2026-11-22T04:20:00.950Z',
};

export const getDealing = endpoint(
  {
    method: 'get',
    path: '/dealing',
    operationId: 'getDealing',
    tag: 'Service',
    summary: 'Whether anything is dealt at all',
    scope: 'operator',
    status: 200,
    response: DealingResponse,
    errors: [],
    failure: ERRORS.internal,
  },
  { description: 'The switch of all games, and who turned it last.', response: OFF },
);

export const setDealing = endpoint(
  {
    method: 'put',
    path: '/dealing',
    operationId: 'setDealing',
    tag: 'Service',
    summary: 'Stop all games, or let them go on',
    scope: 'operator',
    body: DealingBody,
    status: 200,
    response: DealingResponse,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description: `Off: spins, tickets and deals of every partner get ${ERRORS.dealingOff.code} on every front end within a second, also after restarts; a repeated \`requestId\` still gets its original answer, and open rounds may be finished. Each game that stops or goes on makes the event \`game.status_changed\`.`,
    request: { state: 'OFF', reason: 'A payout is being looked into' },
    response: OFF,
  },
);
