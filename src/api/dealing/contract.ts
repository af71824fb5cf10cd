/** Schemas and operations of the dealing switch for all games. */
import { type Static, Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { choice, nullable, REASON_PATTERN, timestamp } from '../../domain/schema.js';
import { endpointsOf } from '../contract/endpoint.js';

const { operator } = endpointsOf('Service');

export const DealingState = choice(['ON', 'OFF'], '`OFF`: no spins, tickets or rounds are dealt');

export const DealingBody = Type.Object({
  state: DealingState,
  reason: Type.String({
    pattern: REASON_PATTERN,
    description: 'Reason for the change, stored in the audit log',
  }),
});

export const DealingResponse = Type.Object({
  state: DealingState,
  reason: nullable(
    Type.String({ description: 'Reason for the newest change; null if there has been no change' }),
  ),
  actor: nullable(
    Type.String({ description: 'Operator who made the newest change; null if there has been no change' }),
  ),
  changedAt: nullable(timestamp()),
});

export type DealingBody = Static<typeof DealingBody>;

const OFF = {
  state: 'OFF',
  reason: 'A payout is being looked into',
  actor: 'operator',
  changedAt: '2026-11-22T04:20:00.950Z',
};

export const getDealing = operator.get('getDealing', '/dealing', {
  summary: 'Get the state of the dealing switch for all games',
  description: 'Returns the switch for all games and the operator who changed it last.',
  response: DealingResponse,
  example: OFF,
});

export const setDealing = operator.put('setDealing', '/dealing', {
  summary: 'Stop or resume all games',
  description: `If the switch is \`OFF\`, every front end refuses spins, tickets and deals of every partner with ${ERRORS.dealingOff.code} within a second, also after restarts. A repeated \`requestId\` still gets its original response, and open rounds can be finished. Each game that stops or resumes creates the event \`game.status_changed\`.`,
  body: DealingBody,
  response: DealingResponse,
  bodyExample: { state: 'OFF', reason: 'A payout is being looked into' },
  example: OFF,
});
