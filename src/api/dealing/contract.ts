/** Schemas and operations of the dealing switch for all games. */
import { type Static, Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { choice, nullable, REASON_PATTERN, timestamp } from '../../domain/schema.js';
import { endpoint } from '../contract/endpoint.js';

export const DealingState = choice(['ON', 'OFF'], '`OFF`: nothing is dealt');

export const DealingBody = Type.Object({
  state: DealingState,
  reason: Type.String({ pattern: REASON_PATTERN, description: 'Kept in the audit log' }),
});

export const DealingResponse = Type.Object({
  state: DealingState,
  reason: nullable(Type.String({ description: 'Of the newest change; null: it was never changed' })),
  actor: nullable(Type.String({ description: 'Who changed it' })),
  changedAt: nullable(timestamp()),
});

export type DealingBody = Static<typeof DealingBody>;

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
