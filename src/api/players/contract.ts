/** Schemas and operations of players and their balances. */
import { type Static, Type } from '#typebox';
import { StatusChange } from '../../domain/auditEntry.js';
import { ERRORS } from '../../domain/errors.js';
import {
  choice,
  escapeFormulas,
  nullable,
  opaque,
  Page,
  pageMembers,
  REASON_PATTERN,
  SandboxMark,
  timeRange,
  timestamp,
  usd,
} from '../../domain/schema.js';
import { ADJUSTMENT, AdjustmentRecord } from '../adjustments/contract.js';
import { RoundDealer, RoundHand, RoundInsurance, RoundPhase, RoundStatus } from '../blackjack/contract.js';
import { CommunityBonus } from '../communal/contract.js';
import { endpointsOf } from '../contract/endpoint.js';
import { RAFFLE_HISTORY, SLOT_HISTORY, STATEMENT_ENTRY } from '../contract/examples.js';
import {
  historyEnd,
  PlayerBalance,
  PlayerSpin,
  RafflePresentation,
  SlotPresentation,
  SpinOutcome,
  StatementEntry,
} from '../spins/contract.js';

const { partner, operator } = endpointsOf('Players');
const spins = endpointsOf('Spins').partner;

export const PlayerStatus = Type.Union([Type.Literal('ACTIVE'), Type.Literal('BLOCKED')], {
  description: '`BLOCKED`: spins of the player are refused',
});

export const PlayerResponse = Type.Object({
  userId: Type.String({ description: 'Internal id of the player' }),
  playerId: Type.String(),
  createdAt: timestamp(),
  balanceUsd: usd('Current balance of the player, in USD'),
  status: PlayerStatus,
});

export const PlayerSpins = Type.Object({
  spins: Type.Array(PlayerSpin),
  ...pageMembers,
});

export const AdjustmentBody = Type.Object({
  amountUsd: usd('Amount to add to the balance, in USD: not 0, at most 6 decimals, negative to deduct'),
  reason: Type.String({
    pattern: REASON_PATTERN,
    description: 'Reason for the adjustment. The partner sees it.',
  }),
  requestId: opaque('Idempotency key. It never expires.'),
});

export const AdjustmentOrder = Type.Object({ playerId: opaque(''), ...AdjustmentBody.properties });

export const AdjustmentResponse = Type.Object({
  playerId: Type.String(),
  balanceUsd: usd('Balance of the player after the adjustment, in USD'),
  adjustmentId: Type.String(),
});

export type AdjustmentBody = Static<typeof AdjustmentBody>;

export const PlayerStatusBody = Type.Object({
  status: PlayerStatus,
  reason: Type.String({
    pattern: REASON_PATTERN,
    description: 'Reason for the change, stored in the audit log',
  }),
});

export const PlayerStatusOrder = Type.Object({ playerId: opaque(''), ...PlayerStatusBody.properties });

export const PlayerStatusResponse = Type.Object({
  playerId: Type.String(),
  status: PlayerStatus,
  isInForce: Type.Boolean({
    description:
      'False in a response with status 202: the change is on record, and spins do not see it until Redis has it',
  }),
});

export type PlayerStatusBody = Static<typeof PlayerStatusBody>;

export const RecallQuery = Type.Object({
  limit: Type.Integer({
    minimum: 1,
    maximum: 50,
    default: 10,
    description: 'Number of games in the response',
  }),
});

export const RoundPresentation = Type.Object({
  type: Type.Literal('blackjack'),
  status: RoundStatus,
  phase: RoundPhase,
  hands: Type.Array(RoundHand),
  dealer: RoundDealer,
  insurance: nullable(RoundInsurance),
  actions: Type.Array(Type.String(), { description: 'Actions of the player, in order' }),
  autoCompleted: Type.Boolean({ description: 'True if the timeout or the operator finished the round' }),
});

export const SharePresentation = Type.Object({
  type: Type.Literal('communityBonus'),
  tierName: Type.String(),
  tierLevel: Type.Integer(),
  toldBySpinId: nullable(
    Type.String({
      description: 'Spin whose response notified the player of the share; null if no response has',
    }),
  ),
});

export const RecalledPresentation = Type.Union(
  [SlotPresentation, RafflePresentation, RoundPresentation, SharePresentation],
  { description: 'Presentation that the player saw. `type` identifies the kind of game.' },
);

export const RecallKind = choice(
  ['spin', 'ticket', 'round', 'share'],
  'Kind of the entry: spin, raffle ticket, blackjack round, or share of a communal progressive',
);

export const RecalledGame = Type.Object({
  kind: RecallKind,
  gameId: Type.Integer(),
  displayName: Type.String({ description: 'Name of the game that players see' }),
  spinId: Type.Optional(
    Type.String({ description: 'Id of the spin or ticket. Absent for rounds and shares.' }),
  ),
  roundId: Type.Optional(Type.String({ description: 'Id of the round. Present for rounds only.' })),
  eventId: Type.Optional(
    Type.String({ description: 'Id of the event that paid the share. Present for shares only.' }),
  ),
  outcome: Type.Optional(nullable(SpinOutcome)),
  presentation: RecalledPresentation,
  balance: Type.Optional(nullable(PlayerBalance)),
  communityBonus: Type.Optional(nullable(CommunityBonus)),
  sandbox: SandboxMark,
  requestId: Type.Optional(Type.String({ description: 'The `requestId` of the request' })),
  ...Type.Partial(Type.Object(historyEnd)).properties,
  wagerUsd: usd('Stake of the player, in USD; 0 for a share'),
  payoutUsd: nullable(usd('Payout to the player, in USD; null while a round is open')),
  balanceBeforeUsd: usd('Balance of the player before the game, in USD'),
  balanceAfterUsd: usd(
    'Balance of the player after the game, in USD. For an open round: after its newest step.',
  ),
  createdAt: timestamp(),
  endedAt: Type.Optional(nullable(timestamp())),
});

export const Recall = Type.Object({
  games: Type.Array(RecalledGame),
  adjustments: Type.Array(AdjustmentRecord, {
    description:
      "The operator's adjustments of the balance and the refunds of voided raffles, newest first: those since the oldest of `games`, at most `limit`",
  }),
});

export const getPlayer = partner.get('getPlayer', '/players/{playerId}', {
  summary: 'Get a player by the `playerId` that its spins carry',
  description:
    'A player exists from its first spin or adjustment on. The response shows the current balance.',
  response: PlayerResponse,
  hasSums: true,
  errors: [ERRORS.playerNotFound],
  failure: ERRORS.playerResolutionFailed,
  example: {
    userId: 'usr_77TVvlEpURBZqkjErDtVJZ',
    playerId: 'alice',
    createdAt: '2026-11-22T04:14:01.121Z',
    balanceUsd: 1049.25,
    status: 'ACTIVE',
  },
});

export const listPlayerSpins = spins.get('listPlayerSpins', '/players/{playerId}/spins', {
  summary: "List a player's spins and tickets, newest first",
  description:
    "Lists a player's spins and tickets with their original responses, newest first. `GET /players/{playerId}/community-bonuses` lists the player's shares of communal progressives.",
  query: Page,
  response: PlayerSpins,
  hasSums: true,
  errors: [ERRORS.playerNotFound],
  failure: ERRORS.playerResolutionFailed,
  example: {
    spins: [RAFFLE_HISTORY, SLOT_HISTORY],
    page: 1,
    limit: 20,
    total: 2,
  },
});

export const recallGames = partner.get('recallGames', '/players/{playerId}/recall', {
  summary: "List a player's last games as the player saw them, newest first",
  description:
    'Lists spins, tickets, rounds and shares of communal progressives together, ordered by their start. The hole card of an open round is hidden. The share of a player who triggered a bonus is listed only with the spin that triggered it. `adjustments` has the changes of the balance between these games.',
  query: RecallQuery,
  response: Recall,
  hasSums: true,
  errors: [ERRORS.playerNotFound],
  example: {
    games: [
      { kind: 'ticket', ...RAFFLE_HISTORY, payoutUsd: 50, displayName: 'Dinner raffle' },
      { kind: 'spin', ...SLOT_HISTORY, payoutUsd: 0.5, displayName: 'Classic' },
    ],
    adjustments: [ADJUSTMENT],
  },
});

export const recallPlayerGames = operator.get(
  'recallPlayerGames',
  '/partners/{id}/players/{playerId}/recall',
  recallGames,
);

export const adjustBalance = operator.post('adjustBalance', '/partners/{id}/players/{playerId}/adjustments', {
  summary: "Adjust a player's balance, and create the player if it does not exist",
  description: `Adds an amount to the balance, as a separate ledger entry. Each \`requestId\` takes effect once and never expires: a repetition gets the same response. With \`balanceMode: "enforce"\` an adjustment that would make the balance negative is refused with ${ERRORS.insufficientBalance.code}.`,
  body: AdjustmentBody,
  ownCheck: true,
  response: AdjustmentResponse,
  hasSums: true,
  errors: [ERRORS.fieldMissing, ERRORS.spinInProgress, ERRORS.requestIdReused, ERRORS.insufficientBalance],
  bodyExample: { amountUsd: -5.5, reason: 'Correction of ticket 4711', requestId: 'adjust-4711' },
  example: {
    playerId: 'alice',
    balanceUsd: 1043.75,
    adjustmentId: 'f4abbfd7541bd6f71c3311b61d6d2bbd',
  },
});

export const updatePlayer = operator.patch('updatePlayer', '/partners/{id}/players/{playerId}', {
  summary: 'Block or unblock a player',
  description: `Spins of a blocked player are refused with ${ERRORS.playerBlocked.code}. A repeated \`requestId\` still gets its original response. The audit log records the change. Status 202 means that the change is on record and comes into force as soon as Redis accepts it. Repeat the request to learn whether it is in force. ${ERRORS.unavailable.code} means that nothing was changed.`,
  role: 'support',
  body: PlayerStatusBody,
  ownCheck: true,
  mayBePending:
    'The change is on record and not yet in force, because Redis did not confirm it. The service puts it into force within a second of Redis accepting it. Until then spins follow the earlier status.',
  response: PlayerStatusResponse,
  errors: [ERRORS.fieldMissing, ERRORS.playerNotFound],
  bodyExample: { status: 'BLOCKED', reason: 'Self-exclusion' },
  example: { playerId: 'alice', status: 'BLOCKED', isInForce: true },
  pendingExample: { playerId: 'alice', status: 'BLOCKED', isInForce: false },
});

export const StatementQuery = Type.Object({
  ...timeRange,
  cursor: Type.Optional(Type.String({ description: 'The `nextCursor` of the previous response' })),
  limit: Type.Integer({
    minimum: 1,
    maximum: 100,
    default: 20,
    description: 'Number of entries in a response',
  }),
  escapeFormulas,
});

export const Statement = Type.Object({
  partnerId: Type.Integer(),
  playerId: Type.String(),
  status: PlayerStatus,
  statusChange: nullable(StatusChange),
  balanceUsd: usd('Current balance of the player, in USD'),
  createdAt: timestamp(),
  entries: Type.Array(StatementEntry),
  nextCursor: nullable(
    Type.String({ description: 'Value of `cursor` for the next page; null if there are no more entries' }),
  ),
  completeFrom: Type.Optional(
    Type.String({
      format: 'date-time',
      description:
        'Time from which all entries of the player are available. The archive of the ledger has earlier entries. Absent if no day of the player was removed',
    }),
  ),
});

export const getStatement = operator.get('getStatement', '/partners/{id}/players/{playerId}/statement', {
  summary: 'Get a player with its ledger entries, newest first (CSV with `Accept: text/csv`)',
  description:
    '`statusChange` is the newest change of the status, null if there is none; until Redis has it, `status` is the earlier one. Lists entries of every kind: spins, the opening, adjustments, shares of communal progressives, and steps of rounds. The balance after an entry is the previous balance minus the wager plus the credit. A page may have fewer entries than `limit`, even none, while `nextCursor` is not null. CSV has all entries of the range. After days of the ledger were archived and removed, `completeFrom` (in CSV the header `X-Complete-From`) is the time from which all entries are available.',
  query: StatementQuery,
  response: Statement,
  hasSums: true,
  errors: [ERRORS.playerNotFound],
  example: {
    partnerId: 2,
    playerId: 'alice',
    status: 'ACTIVE',
    statusChange: null,
    balanceUsd: 1000.25,
    createdAt: '2026-11-22T04:13:57.812Z',
    entries: [STATEMENT_ENTRY],
    nextCursor: null,
  },
  csvExample:
    'entryId,kind,createdAt,gameId,wagerUsd,creditUsd,balanceUsd,requestId,spinId\r\n"7412907446960128010","spin","2026-11-22T04:13:57.812Z",3,0.25,0.5,1000.25,"first-spin","3f0c1f5ab3d94dd0a6a1c9d1b0e0f4c2"\r\n',
});
