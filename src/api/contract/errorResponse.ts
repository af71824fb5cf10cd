/** Schema of the body of every error response (docs/errors.md). */
import { Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';

export const ErrorDetail = Type.Object({
  path: Type.String({
    description:
      'JSON Pointer (RFC 6901) to the faulty member; empty if the fault concerns the whole request',
  }),
  message: Type.String(),
  roundId: Type.Optional(Type.String({ description: `${ERRORS.roundOpen.code} only: id of the open round` })),
  lastActionSeq: Type.Optional(
    Type.Integer({
      description: `${ERRORS.roundOpen.code} only: number of the newest action of the open round, 0 before the first action`,
    }),
  ),
  legalActions: Type.Optional(
    Type.Array(Type.String(), {
      description: `${ERRORS.actionIllegal.code} and ${ERRORS.actionStale.code} only: the actions that are legal now; empty if the round has ended`,
    }),
  ),
  expectedSeq: Type.Optional(
    Type.Integer({
      description: `${ERRORS.actionIllegal.code} and ${ERRORS.actionStale.code} only: the \`seq\` of the next action; absent if the round has ended`,
    }),
  ),
});

export const ErrorResponse = Type.Object({
  status: Type.Literal('error'),
  errorCode: Type.String({ pattern: '^KS-[0-9]{4}$' }),
  message: Type.String(),
  docUrl: Type.Optional(
    Type.String({
      description: 'Address of the documentation of the error, relative to the address of the service',
    }),
  ),
  retryAfter: Type.Optional(
    Type.Integer({ description: 'Seconds to wait before the next attempt. Present for status 429.' }),
  ),
  details: Type.Optional(Type.Array(ErrorDetail)),
});
