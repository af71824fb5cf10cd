/** Schemas and operation of the look-up of a request by its requestId. */
import { Type } from '#typebox';
import { nullable, opaque, timestamp, usd } from '../../domain/schema.js';
import { RoundRecordResponse } from '../blackjack/contract.js';
import { endpointsOf } from '../contract/endpoint.js';
import { OperatorSpin, showSpin } from '../spins/contract.js';

const { operator } = endpointsOf('Partners');

export const RequestQuery = Type.Object({ requestId: opaque('The `requestId` of the request') });

const adjustmentMembers = {
  playerId: Type.String(),
  amountUsd: usd('Amount of the adjustment, in USD'),
  reason: Type.String({ description: 'Reason that the operator gave' }),
};

export const FoundAdjustment = Type.Object({
  ...adjustmentMembers,
  requestedAt: timestamp(),
  adjustmentId: nullable(
    Type.String({ description: 'Id of the adjustment; null if it has not taken effect' }),
  ),
  balanceUsd: nullable(
    usd('Balance after the adjustment, in USD; null if the ledger does not have the adjustment (any more)'),
  ),
});

export const RefusedAdjustment = Type.Object({
  ...adjustmentMembers,
  refusedAt: timestamp(),
  actor: Type.String({ description: 'Operator who requested the adjustment' }),
  refusal: Type.String({
    description: 'Why the adjustment was refused, such as `insufficientBalance`',
  }),
});

export const FoundRequest = Type.Object({
  partnerId: Type.Integer(),
  requestId: Type.String(),
  spins: Type.Array(OperatorSpin, {
    description: 'Spins and tickets with this `requestId`, with their responses, newest first',
  }),
  rounds: Type.Array(RoundRecordResponse, {
    description: 'Rounds that were dealt with this `requestId`, in their present state, newest first',
  }),
  adjustment: nullable(FoundAdjustment),
  refusedAdjustments: Type.Array(RefusedAdjustment, { description: 'Newest first' }),
});

export const findRequest = operator.get('findRequest', '/partners/{id}/requests', {
  summary: "Find what a partner's `requestId` led to",
  description:
    'Finds the spin, ticket or deal that the `requestId` is bound to, and the adjustment with it. Tickets and adjustments are found forever, spins and deals as long as their `requestId` is bound; find older ones by time in the statement of the player. A refused spin or deal leaves no record, so empty lists mean that the request never came or was refused. Refused adjustments are found.',
  query: RequestQuery,
  response: FoundRequest,
  hasSums: true,
  example: {
    partnerId: 2,
    requestId: 'first-spin',
    spins: [showSpin.example],
    rounds: [],
    adjustment: null,
    refusedAdjustments: [],
  },
});
