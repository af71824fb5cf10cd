/** Games and PAR sheets: registration, lists, and what the operator sees and changes. */
import { type Static, Type } from '#typebox';
import { GAME_TYPES } from '../../domain/games/kindOfGame.js';
import {
  AUDIT_REASON,
  CONFIG_NAME_PATTERN,
  choice,
  extensible,
  id,
  nullable,
  opaque,
  usd,
} from '../../domain/schema.js';

export const GameBody = Type.Object({
  parSheetId: id('The PAR sheet, which must be active'),
  displayName: opaque('Name shown to players'),
  configName: Type.String({
    pattern: CONFIG_NAME_PATTERN,
    description: "System identifier, unique across the partner's games",
  }),
  gameType: Type.Optional(
    Type.String({ description: '`slot`; raffles and blackjack tables are made by the operator' }),
  ),
  minWagerUsd: Type.Optional(usd('If sent, the denomination of the sheet')),
  maxWagerUsd: Type.Optional(usd('If sent, the denomination of the sheet')),
  wagerIncrementUsd: Type.Optional(usd('If sent, the denomination of the sheet')),
});

export const GameResponse = Type.Object({
  gameConfigId: Type.Integer({ description: 'The gameId of spins' }),
  displayName: Type.String(),
  configName: Type.String(),
  gameType: extensible(GAME_TYPES, 'Kind of game'),
  status: extensible(
    ['ACTIVE', 'SUSPENDED', 'SEALING', 'CLOSED'],
    'ACTIVE: it can be spun. SEALING and CLOSED: before the first and after the last ticket of a raffle, or once it is voided',
  ),
  statusReason: Type.Optional(
    extensible(
      ['RESTORED', 'VOIDED'],
      'RESTORED: of a raffle that is suspended, since tickets may have been shown that a restore of the database has lost. VOIDED: of a raffle that is closed, since the operator voided it: each ticket is refunded',
    ),
  ),
  parSheetId: nullable(Type.Integer()),
  minWagerUsd: usd('Equal to the fixed wager'),
  maxWagerUsd: usd('Equal to the fixed wager'),
  wagerIncrementUsd: usd('Equal to the fixed wager'),
  poolSize: Type.Optional(Type.Integer({ description: 'Of a raffle: tickets in all' })),
  poolCommitment: Type.Optional(
    nullable(Type.String({ description: 'Of a raffle: seals its pool; null until it is sealed' })),
  ),
});

/** What a rotation came to. */
export const GameRotated = Type.Object({
  gameConfigId: Type.Integer(),
  number: nullable(
    Type.Integer({
      description: "Of the void among the game's entries in the public log; null: nothing was voided",
    }),
  ),
  voidedFrom: Type.Integer({ description: 'Index of the first outcome that is voided' }),
  voidedTo: Type.Integer({
    description: 'Index after the last one; equal to voidedFrom: nothing was sealed and not dealt',
  }),
});

export const ListedGame = Type.Object({
  ...GameResponse.properties,
  certifiedRtp: Type.Optional(
    Type.Number({
      description:
        'Return to player: of a slot the certified one of its PAR sheet, of a raffle all prizes by the price of all tickets',
    }),
  ),
  hitFrequency: Type.Optional(Type.Number({ description: 'Of a slot: the probability that a spin pays' })),
  topPrizeUsd: Type.Optional(usd('Of a slot or raffle: the largest payout of a spin or ticket')),
  basicStrategyRtp: Type.Optional(
    Type.Number({
      description:
        'Of a table: payouts by all stakes of who plays basic strategy; absent where it is not known for its rules',
    }),
  ),
});

export const GameList = Type.Object({ games: Type.Array(ListedGame) });

export const ParSheetResponse = Type.Object({
  parSheetId: Type.Integer(),
  gameTitle: Type.String(),
  numReels: Type.Integer(),
  certifiedRtp: Type.Number(),
  symbolCount: Type.Integer(),
  tierCount: Type.Integer(),
  combinationCount: Type.Integer(),
});

export const ParSheetList = Type.Object({ parSheets: Type.Array(ParSheetResponse) });

export const SettableGameStatus = choice(['ACTIVE', 'SUSPENDED']);

export const GamePatch = Type.Object({ status: SettableGameStatus, reason: Type.Optional(AUDIT_REASON) });

export const GameQueue = Type.Object({
  readyBlocks: Type.Integer(),
  outcomesReady: Type.Integer(),
  consumed: Type.Integer(),
});

export const GameTotals = Type.Object({
  spins: Type.Integer(),
  wageredUsd: usd('Sum of wagers in the ledger'),
  paidOutUsd: usd('Sum of payouts in the ledger'),
  actualRtp: nullable(Type.Number({ description: 'Null before the first spin' })),
});

export const ExpectedReturn = Type.Object(
  {
    rtp: Type.Number({ description: 'Return to player that many spins come to' }),
    variancePerSpin: Type.Number({ description: "Of one spin's payout, in squared wagers" }),
  },
  { description: 'Of a slot: what its sheet lets expect' },
);

export const OperatorGame = Type.Object({
  ...GameResponse.properties,
  partnerId: Type.Integer(),
  ticketsRemaining: Type.Optional(
    Type.Integer({ description: 'Of a raffle: tickets that are not booked as sold' }),
  ),
  expected: nullable(ExpectedReturn),
  queue: GameQueue,
  totals: GameTotals,
});

export const BlocksBody = Type.Object({ count: Type.Integer({ minimum: 1, maximum: 100 }) });

export const BlocksAccepted = Type.Object({ gameConfigId: Type.Integer(), requested: Type.Integer() });

export const ParSheetPatch = Type.Object({
  status: Type.Literal('RETIRED'),
  reason: Type.Optional(AUDIT_REASON),
});

export const OperatorParSheet = Type.Object({
  ...ParSheetResponse.properties,
  partnerId: Type.Integer(),
  status: Type.String(),
});

export type GameBody = Static<typeof GameBody>;

export type GamePatch = Static<typeof GamePatch>;
