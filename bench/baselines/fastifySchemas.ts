/** The schemas of the Fastify baseline's spin route: they validate the body and serialise the answer. */

const opaque = { type: 'string', minLength: 1, maxLength: 128 } as const;
const text = { type: 'string' } as const;
const boolean = { type: 'boolean' } as const;
const number = { type: 'number' } as const;
const integer = { type: 'integer' } as const;

export const spinBodySchema = {
  type: 'object',
  required: ['gameId', 'playerId', 'wagerUsd'],
  properties: {
    gameId: { type: 'integer', minimum: 1 },
    playerId: opaque,
    wagerUsd: number,
    requestId: opaque,
  },
} as const;

export const spinResponseSchema = {
  type: 'object',
  properties: {
    spinId: text,
    outcome: {
      type: 'object',
      properties: { prizeTier: integer, payoutUsd: number, isBonusTrigger: boolean },
    },
    presentation: {
      type: 'object',
      properties: {
        type: text,
        comboString: text,
        reelSymbols: {
          type: 'array',
          items: { type: 'object', properties: { name: text, display: text, isWild: boolean } },
        },
        reelStops: { type: 'array', items: integer },
        animationHints: {
          type: 'object',
          properties: { celebrationTier: text, isNearMiss: boolean, isBonusTrigger: boolean },
        },
      },
    },
    balance: { type: 'object', properties: { balanceUsd: number } },
    communityBonus: { type: 'null' },
    requestId: text,
  },
} as const;
