/** Blackjack: tables, and the rounds that are played at them. */
import { type Static, Type } from '#typebox';
import { ACTIONS } from '../../domain/games/blackjack.js';
import { BlackjackRules } from '../../domain/games/blackjackRules.js';
import { ROUND_STATUSES } from '../../domain/games/round.js';
import {
  CONFIG_NAME_PATTERN,
  choice,
  id,
  nullable,
  opaque,
  Page,
  pageMembers,
  REASON_PATTERN,
  timestamp,
  usd,
} from '../../domain/schema.js';
import { GameResponse } from '../games/schemas.js';
import { PlayerBalance } from '../spins/schemas.js';

export const BlackjackRulesBody = Type.Partial(BlackjackRules, {
  description: 'What differs from the defaults',
});

const roundTimeoutS = Type.Integer({
  minimum: 60,
  maximum: 2_592_000,
  description: 'An open round is played out by itself so many seconds after its deal; 86,400 where absent',
});

export const BlackjackBody = Type.Object({
  displayName: opaque('Name shown to players'),
  configName: Type.String({
    pattern: CONFIG_NAME_PATTERN,
    description: "System identifier, unique across the partner's games",
  }),
  wagerUsd: usd(
    'What a deal costs: above 0, at most 10,000, whole micro-USD at half and at the odds of a natural',
  ),
  rules: BlackjackRulesBody,
  roundTimeoutS: Type.Optional(roundTimeoutS),
});

export const BlackjackResponse = Type.Object({
  ...GameResponse.properties,
  partnerId: Type.Integer(),
  wagerUsd: usd('What a deal costs'),
  rules: BlackjackRules,
  rulesHash: Type.String({ description: 'Hexadecimal SHA-256 of the RFC 8785 text of the rules' }),
  roundTimeoutS: Type.Integer(),
});

export const DealBody = Type.Object({
  gameId: id('Game configuration id of a blackjack table'),
  playerId: opaque("The partner's own identifier of the player"),
  wagerUsd: usd("The table's fixed wager"),
  requestId: Type.Optional(
    opaque('Idempotency key, of one namespace with those of spins; binds for 24 hours at least'),
  ),
});

export const RoundActionName = choice(ACTIONS, 'What the player does');

export const ActionBody = Type.Object({
  roundId: Type.String({ description: 'The `roundId` of the deal' }),
  action: RoundActionName,
  seq: Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    description:
      '`lastActionSeq` + 1; the same action with the same number again is answered with the same bytes',
  }),
});

const Cards = Type.Array(Type.String({ description: 'Rank and suit, such as `Th` for the ten of hearts' }));

export const HandStatus = choice(
  ['WAITING', 'ACTIVE', 'STOOD', 'BUST', 'SURRENDERED', 'NATURAL'],
  'ACTIVE: it is played now; WAITING: it will be',
);

export const RoundHand = Type.Object({
  cards: Cards,
  total: Type.Integer(),
  isSoft: Type.Boolean(),
  wagerUsd: usd('Staked on this hand'),
  status: HandStatus,
  payoutUsd: Type.Optional(
    usd('What comes back for this hand, its stake included; once the round is settled'),
  ),
});

export const RoundAction = Type.Object({
  action: RoundActionName,
  costUsd: Type.Optional(usd('What it costs, where it costs something')),
});

export const RoundInsurance = Type.Object({
  wagerUsd: usd('Half of the wager'),
  payoutUsd: Type.Optional(usd('What comes back, once the round is settled')),
});

export const RoundShoe = Type.Object({
  index: Type.Integer({ description: "Place of the shoe in the table's sequence" }),
  commitment: Type.String({ description: 'Hexadecimal; made before the shoe was dealt' }),
  seed: Type.Optional(
    Type.String({
      description: 'Hexadecimal, 32 bytes: gives the order of all cards; once the round has ended',
    }),
  ),
});

export const RoundDealer = Type.Object(
  { cards: Cards, total: Type.Integer() },
  { description: 'The up card alone before the round is settled' },
);

export const RoundStatus = choice(ROUND_STATUSES, 'What became of the round');

export const RoundPhase = choice(
  ['INSURANCE', 'PLAYER', 'SETTLED', 'VOIDED'],
  'INSURANCE: to be taken or declined; PLAYER: a hand is played',
);

export const RoundTable = Type.Object(
  { wagerUsd: usd('What a deal costs'), rules: BlackjackRules },
  { description: 'What the round was played by: with the seed, all that a proof needs' },
);

const roundMembers = {
  roundId: Type.String(),
  gameId: Type.Integer(),
  playerId: Type.String(),
  status: RoundStatus,
  phase: RoundPhase,
  lastActionSeq: Type.Integer(),
  wageredUsd: usd('All stakes, insurance included'),
  payoutUsd: nullable(usd('All that comes back, stakes included; null before the round has ended')),
  dealer: RoundDealer,
  activeHand: nullable(Type.Integer({ description: 'Place of the hand that is played, from 0' })),
  hands: Type.Array(RoundHand),
  legalActions: Type.Array(RoundAction),
  insurance: nullable(RoundInsurance),
  autoCompleted: Type.Optional(
    Type.Boolean({ description: 'True where its timeout, or the operator, played it out' }),
  ),
  rulesHash: Type.String(),
  shoe: RoundShoe,
  expiresAt: timestamp(),
  balance: PlayerBalance,
  requestId: Type.Optional(Type.String({ description: 'As sent with the deal' })),
};

export const RoundResponse = Type.Object(roundMembers);

export const RoundRecordResponse = Type.Object({
  ...roundMembers,
  actions: Type.Array(Type.String(), {
    description: 'What the player did, in order; a last `timeout` where the round was played out by itself',
  }),
  table: RoundTable,
  createdAt: timestamp(),
});

export const RoundQuery = Type.Object({
  ...Page.properties,
  playerId: Type.Optional(opaque('Rounds of this player only')),
  status: Type.Optional(
    Type.String({ pattern: `^(${ROUND_STATUSES.join('|')})$`, description: 'OPEN, SETTLED or VOIDED' }),
  ),
});

export const RoundPage = Type.Object({ rounds: Type.Array(RoundRecordResponse), ...pageMembers });

export const VoidBody = Type.Object({
  reason: Type.String({ pattern: REASON_PATTERN, description: 'Kept in the audit log' }),
});

export type BlackjackBody = Static<typeof BlackjackBody>;
export type DealBody = Static<typeof DealBody>;
export type ActionBody = Static<typeof ActionBody>;
