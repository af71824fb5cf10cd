/** What operators find things by. */
import { ERRORS } from '../../domain/errors.js';
import { endpoint } from '../contract/endpoint.js';
import {
  Found,
  OperatorParSheetDetail,
  OperatorParSheets,
  OperatorRounds,
  OperatorRoundsQuery,
  PATH,
  ParSheetsQuery,
  Progressives,
  SearchQuery,
  TrafficDays,
  TrafficHours,
  TrafficHoursQuery,
  TrafficQuery,
} from '../contract/requests.js';
import { SHEET_BODY } from '../contract/sheetExample.js';

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
