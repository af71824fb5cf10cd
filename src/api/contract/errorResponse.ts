/** Schema of the body of every error response (docs/errors.md). */
import { Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';

export const ErrorDetail = Type.Object({
  path: Type.String({ description: 'JSON Pointer (RFC 6901) of the faulty member; empty: the whole body' }),
  message: Type.String(),
  roundId: Type.Optional(Type.String({ description: `${ERRORS.roundOpen.code}: the round that is open` })),
  lastActionSeq: Type.Optional(
    Type.Integer({
      description: `${ERRORS.roundOpen.code}: the number of its newest action, 0 before the first`,
    }),
  ),
});

export const ErrorResponse = Type.Object({
  status: Type.Literal('error'),
  errorCode: Type.String({ pattern: '^KS-[0-9]{4}$' }),
  message: Type.String(),
  docUrl: Type.Optional(
    Type.String({ description: 'Where it is explained, relative to the address of the service' }),
  ),
  retryAfter: Type.Optional(Type.Integer({ description: 'Seconds; on 429' })),
  details: Type.Optional(Type.Array(ErrorDetail)),
});
