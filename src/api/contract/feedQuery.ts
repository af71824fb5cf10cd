/**
 * Query parameters and response members of feeds: lists of a partner's ledger by time, oldest first
 * (docs/contract.md §11).
 */
import { Type } from '#typebox';
import { ENTRY_POSITION_PATTERN } from '../../domain/schema.js';

const entryPosition = (description: string) =>
  Type.Optional(Type.String({ pattern: ENTRY_POSITION_PATTERN, description }));

export const feedBounds = (items: string) => ({
  from: Type.Optional(
    Type.String({ format: 'date-time', description: `Only ${items} from this RFC 3339 time on` }),
  ),
  to: Type.Optional(
    Type.String({ format: 'date-time', description: `Only ${items} before this RFC 3339 time` }),
  ),
  fromEntry: entryPosition(
    `Only ${items} from this position of the ledger on: \`ledgerFrom\` of a settlement report`,
  ),
  toEntry: entryPosition(
    `Only ${items} before this position of the ledger: \`ledgerTo\` of a settlement report`,
  ),
});

/** @param cursorId member of an item that can be sent as cursor */
export const feedPaging = (items: string, cursorId: string) => ({
  cursor: Type.Optional(
    Type.String({
      description: `Only ${items} after this position: a \`nextCursor\`, or a \`${cursorId}\` of this list`,
    }),
  ),
  limit: Type.Integer({
    minimum: 1,
    maximum: 100,
    default: 20,
    description: `Maximum number of ${items} in a response`,
  }),
});

export const feedCursor = (items: string) => ({
  nextCursor: Type.Union([
    Type.String({
      description: `Value of \`cursor\` for the next page; null if the ledger has no more ${items} of the range`,
    }),
    Type.Null(),
  ]),
});

/** Returns the member `completeFrom` of a feed whose items leave with the days that are dropped. */
export const feedComplete = (items: string) => ({
  completeFrom: Type.Optional(
    Type.String({
      format: 'date-time',
      description: `Time from which all ${items} are available. Earlier ${items} were archived and removed. Absent if none were removed.`,
    }),
  ),
});
