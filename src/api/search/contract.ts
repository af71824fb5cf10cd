/** What operators find things by. */
import { Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { ROUND_STATUSES } from '../../domain/games/round.js';
import { ParSheetBody } from '../../domain/par.js';
import {
  ID_MAX,
  KEY_PREFIX,
  nullable,
  opaque,
  PATH,
  Page,
  pageMembers,
  timestamp,
  usd,
} from '../../domain/schema.js';
import { RoundStatus } from '../blackjack/contract.js';
import { endpoint } from '../contract/endpoint.js';
import { SHEET_BODY } from '../contract/sheetExample.js';
import { OperatorParSheet } from '../games/contract.js';
import { GameDay, trafficMembers } from '../overview/contract.js';

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

const LISTED_SHEET = {
  parSheetId: 2,
  partnerId: 2,
  status: 'ACTIVE',
  gameTitle: 'Coin Flip',
  numReels: 1,
  certifiedRtp: 0.9,
  symbolCount: 2,
  tierCount: 2,
  combinationCount: 2,
};
const reads = {
  method: 'get',
  scope: 'operator',
  status: 200,
  failure: ERRORS.internal,
} as const;

export const search = endpoint(
  {
    ...reads,
    path: '/search',
    operationId: 'search',
    tag: 'Service',
    summary:
      'Partners, games, players, spins, rounds and keys by a part of a name, how a key begins, or by id',
    query: SearchQuery,
    response: Found,
    errors: [],
  },
  {
    description:
      'At most 10 of each. A player is found by its whole name only, at the newest 50 partners; `slug/player` names one of any partner. Of a text that begins as keys do, only so much is looked at as is kept of keys.',
    response: {
      partners: [{ partnerId: 2, slug: 'acme', name: 'Acme Games' }],
      games: [
        {
          gameConfigId: 3,
          partnerId: 2,
          displayName: 'Acme Sevens',
          configName: 'ACME_SEVENS',
          gameType: 'slot',
        },
      ],
      players: [],
      plays: [],
      keys: [],
      operators: [],
    },
  },
);

export const listAllRounds = endpoint(
  {
    ...reads,
    path: '/rounds',
    operationId: 'listAllRounds',
    tag: 'Rounds',
    summary: 'Blackjack rounds of all partners, or of one, the newest first',
    query: OperatorRoundsQuery,
    response: OperatorRounds,
    hasSums: true,
    errors: [],
  },
  {
    description: '`total` counts to 10,000, and pages reach as far. `showRound` has the cards.',
    response: {
      rounds: [
        {
          roundId: '3f0c1f5ab3d94dd0a6a1c9d1b0e0f4c2',
          partnerId: 2,
          gameId: 5,
          gameName: 'Acme Blackjack',
          playerId: 'alice',
          status: 'SETTLED',
          createdAt: '2026-11-22T04:13:57.812Z',
          wageredUsd: 5,
          payoutUsd: 10,
        },
      ],
      page: 1,
      limit: 20,
      total: 1,
    },
  },
);

export const listAllParSheets = endpoint(
  {
    ...reads,
    path: '/par-sheets',
    operationId: 'listAllParSheets',
    tag: 'PAR sheets',
    summary: 'PAR sheets of all partners, or of one, the newest first',
    query: ParSheetsQuery,
    response: OperatorParSheets,
    errors: [],
  },
  {
    description: 'Retired sheets, too.',
    response: { parSheets: [LISTED_SHEET], page: 1, limit: 20, total: 1 },
  },
);

export const getAnyParSheet = endpoint(
  {
    ...reads,
    path: '/par-sheets/{id}',
    params: { id: PATH.parSheetId },
    operationId: 'getAnyParSheet',
    tag: 'PAR sheets',
    summary: 'A PAR sheet as it was uploaded',
    response: OperatorParSheetDetail,
    errors: [ERRORS.parSheetNotFound],
  },
  {
    description: 'With all tiers and combinations.',
    response: { ...LISTED_SHEET, sheet: SHEET_BODY },
  },
);

export const listProgressives = endpoint(
  {
    ...reads,
    path: '/progressives',
    operationId: 'listProgressives',
    tag: 'Communal progressive',
    summary: 'Games that have a communal progressive',
    response: Progressives,
    hasSums: true,
    errors: [],
  },
  {
    description: 'The newest 200, with what is booked. `getCommunalPot` has where one stands now.',
    response: {
      progressives: [
        {
          gameConfigId: 3,
          partnerId: 2,
          displayName: 'Acme Sevens',
          isEnabled: true,
          budgetUsd: 940.5,
          paidUsd: 59.5,
        },
      ],
    },
  },
);

export const listTraffic = endpoint(
  {
    ...reads,
    path: '/traffic',
    operationId: 'listTraffic',
    tag: 'Service',
    summary: 'Plays, wagers and payouts by UTC day, of all partners or of one',
    query: TrafficQuery,
    response: TrafficDays,
    hasSums: true,
    errors: [],
  },
  {
    description: 'What the ledger has. Days that were dropped from Postgres are there, too.',
    response: { days: [{ day: '2026-11-22', spins: 48_210, wageredUsd: 12_052.5, paidOutUsd: 11_390.25 }] },
  },
);

export const listTrafficHours = endpoint(
  {
    ...reads,
    path: '/traffic/hours',
    operationId: 'listTrafficHours',
    tag: 'Service',
    summary: 'Plays, wagers and payouts by UTC hour, of all partners or of one',
    query: TrafficHoursQuery,
    response: TrafficHours,
    hasSums: true,
    errors: [],
  },
  {
    description:
      'What the ledger grew by in each hour, to within a minute: what is booked late, such as after a recovery, counts where it is booked. Hours are kept for 35 days.',
    response: {
      hours: [{ hour: '2026-11-22T04:00:00.000Z', spins: 2_410, wageredUsd: 602.5, paidOutUsd: 571.25 }],
    },
  },
);
