/** What operators find things by: a search over everything, and lists of rounds, PAR sheets, progressives and days of traffic. */
import { Type } from '#typebox';
import { ROUND_STATUSES } from '../../domain/games/round.js';
import { ParSheetBody } from '../../domain/par.js';
import {
  ID_MAX,
  KEY_PREFIX,
  nullable,
  opaque,
  Page,
  pageMembers,
  timestamp,
  usd,
} from '../../domain/schema.js';
import { RoundStatus } from '../blackjack/schemas.js';
import { OperatorParSheet } from '../games/schemas.js';
import { GameDay, trafficMembers } from '../overview/schemas.js';

const partnerId = Type.Integer({ minimum: 1, maximum: ID_MAX, description: 'Those of this partner only' });
const gameId = Type.Integer({ minimum: 1, maximum: ID_MAX, description: 'Those of this game only' });

export const SearchQuery = Type.Object({
  q: opaque(
    'A part of a name, slug or system name, how a key begins, a number, a player as its partner names it, or the id of a spin or round',
  ),
});

export const FoundPartner = Type.Object({
  partnerId: Type.Integer(),
  slug: Type.String(),
  name: Type.String(),
});

export const FoundGame = Type.Object({
  gameConfigId: Type.Integer(),
  partnerId: Type.Integer(),
  displayName: Type.String(),
  configName: Type.String(),
  gameType: Type.String(),
});

export const FoundPlayer = Type.Object({ partnerId: Type.Integer(), playerId: Type.String() });

export const FoundPlay = Type.Object({
  partnerId: Type.Integer(),
  kind: Type.String({ description: '`spin` or `round`' }),
  id: Type.String({ description: 'Its `spinId` or `roundId`' }),
});

export const FoundKey = Type.Object({
  partnerId: Type.Integer(),
  keyId: Type.Integer(),
  name: nullable(Type.String()),
  prefix: KEY_PREFIX,
});

export const FoundOperator = Type.Object({ name: Type.String(), prefix: KEY_PREFIX });

export const Found = Type.Object(
  {
    partners: Type.Array(FoundPartner),
    games: Type.Array(FoundGame),
    players: Type.Array(FoundPlayer, { description: 'Called exactly so, at the newest 50 partners' }),
    plays: Type.Array(FoundPlay),
    keys: Type.Array(FoundKey, { description: 'By a part of the name, or by how they begin' }),
    operators: Type.Array(FoundOperator, {
      description: 'By a part of the name, or by how their key begins',
    }),
  },
  { description: 'At most 10 of each' },
);

export const OperatorRoundsQuery = Type.Object({
  ...Page.properties,
  partnerId: Type.Optional(partnerId),
  gameId: Type.Optional(gameId),
  status: Type.Optional(
    Type.String({ pattern: `^(${ROUND_STATUSES.join('|')})$`, description: 'OPEN, SETTLED or VOIDED' }),
  ),
});

export const OperatorRound = Type.Object({
  roundId: Type.String(),
  partnerId: Type.Integer(),
  gameId: Type.Integer(),
  gameName: Type.String({ description: 'As players see it' }),
  playerId: Type.String(),
  status: RoundStatus,
  createdAt: timestamp(),
  wageredUsd: usd('All stakes, insurance included'),
  payoutUsd: nullable(usd('All that comes back; null before the round has ended')),
});

export const OperatorRounds = Type.Object({
  rounds: Type.Array(OperatorRound),
  ...pageMembers,
});

export const ParSheetsQuery = Type.Object({ ...Page.properties, partnerId: Type.Optional(partnerId) });

export const OperatorParSheets = Type.Object({ parSheets: Type.Array(OperatorParSheet), ...pageMembers });

export const OperatorParSheetDetail = Type.Object({
  ...OperatorParSheet.properties,
  sheet: ParSheetBody,
});

export const ListedProgressive = Type.Object({
  gameConfigId: Type.Integer(),
  partnerId: Type.Integer(),
  displayName: Type.String(),
  isEnabled: Type.Boolean(),
  budgetUsd: usd('What it can pay, as it is booked'),
  paidUsd: usd('What it has paid, as it is booked'),
});

export const Progressives = Type.Object({
  progressives: Type.Array(ListedProgressive, { description: 'The newest 200' }),
});

export const TrafficQuery = Type.Object({
  days: Type.Integer({ minimum: 1, maximum: 400, default: 14, description: 'Up to and with today' }),
  partnerId: Type.Optional(partnerId),
});

export const TrafficDays = Type.Object({
  days: Type.Array(GameDay, { description: 'Oldest first; a day without a play is there with zeros' }),
});

export const TrafficHoursQuery = Type.Object({
  hours: Type.Integer({
    minimum: 1,
    maximum: 840,
    default: 48,
    description: 'Up to and with the current one',
  }),
  partnerId: Type.Optional(partnerId),
});

export const TrafficHour = Type.Object({
  hour: Type.String({ format: 'date-time', description: 'When it begins' }),
  ...trafficMembers,
});

export const TrafficHours = Type.Object({
  hours: Type.Array(TrafficHour, {
    description: 'Oldest first, from the first hour that is kept; an hour without a play is there with zeros',
  }),
});
