/** Settlement reports, and how they are judged. */
import { type Static, Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { GAME_TYPES } from '../../domain/games/kindOfGame.js';
import {
  choice,
  escapeFormulas,
  extensible,
  ID_MAX,
  nullable,
  pageMembers,
  REASON_PATTERN,
  timestamp,
  usd,
} from '../../domain/schema.js';

const REVISION = Type.Integer({ minimum: 1, maximum: ID_MAX });

/** Of a report's path: the revision that is wanted, or that is judged. */
export const ReadRevision = Type.Object({
  revision: Type.Optional({ ...REVISION, description: 'Absent: the newest' }),
  escapeFormulas,
});

export const JudgedRevision = Type.Object({
  revision: Type.Optional({
    ...REVISION,
    description: `The revision that was read: where a newer one was made since, nothing is changed (${ERRORS.reportStatus.code}). Absent: the newest`,
  }),
});

const standing = Type.Optional({
  ...REVISION,
  description: `The revision that was read: where it is not the newest, nothing is changed (${ERRORS.reportStatus.code})`,
});

export const AcknowledgeBody = Type.Object({ revision: standing });

export const DisputeBody = Type.Object({
  reason: Type.String({ pattern: REASON_PATTERN, description: 'What is wrong' }),
  revision: standing,
});

const hash = (description: string) => Type.String({ pattern: '^[0-9a-f]{64}$', description });

export const SettlementGame = Type.Object({
  gameConfigId: Type.Integer(),
  configName: Type.String(),
  displayName: Type.String(),
  gameType: extensible(GAME_TYPES, 'Kind of game'),
  spins: Type.Integer({
    description: 'Spins and blackjack rounds, at their deal; a round that was voided takes itself away again',
  }),
  wageredUsd: usd('Sum of the wagers'),
  paidOutUsd: usd('Sum of the payouts'),
  ggrUsd: usd('Wagered − paid out'),
  actualRtp: nullable(
    Type.Number({
      description: 'Paid out / wagered, rounded half up to 6 decimals; null where nothing was wagered',
    }),
  ),
  certifiedRtp: nullable(
    Type.Number({
      description:
        "As the game's PAR sheet has it; of a raffle what its whole pool pays of what it takes, rounded likewise",
    }),
  ),
  communityBonusUsd: Type.Optional(
    usd('Shares of its communal progressive; not in `ggrUsd`. Absent in reports of versions up to 1.3.0'),
  ),
});

export const ReportStatus = choice(
  ['PENDING', 'GENERATED', 'ACKNOWLEDGED', 'DISPUTED'],
  'PENDING: made before all of the day was in the ledger, of what was booked up to ledgerTo; the complete report follows as a revision of its own, also where this one was acknowledged or disputed',
);

export const SettlementReport = Type.Object(
  {
    reportDate: Type.String({ description: 'UTC day, YYYY-MM-DD' }),
    reportStatus: ReportStatus,
    revision: Type.Integer({ minimum: 1, description: 'From 1; what a revision says never changes' }),
    totalSpins: Type.Integer(),
    totalWageredUsd: usd('Sum of the wagers'),
    totalPaidOutUsd: usd('Sum of the payouts'),
    netPositionUsd: usd('Wagered − paid out'),
    ggrUsd: usd('Gross gaming revenue: wagered − paid out'),
    communityBonusUsd: usd(
      'Sum of the shares of communal progressives that players got on the day; outside of ggrUsd',
    ),
    adjustmentsUsd: usd('Sum of the adjustments that the operator booked to players; in no other total'),
    openRounds: Type.Optional(
      Type.Integer({
        description: 'Blackjack rounds that were open at ledgerTo; absent in reports of versions up to 1.3.0',
      }),
    ),
    logCheckpoint: Type.Optional(
      nullable(
        Type.String({
          description:
            'The newest published checkpoint of the public log when the report was made, with the signatures of the log alone; null before there is one',
        }),
      ),
    ),
    openWageredUsd: Type.Optional(usd('What was staked on them, which is in totalWageredUsd by its time')),
    gameBreakdown: Type.Array(SettlementGame, {
      description:
        'Every game that the partner had on that day, by gameConfigId, played or not; no raffle that was closed before it',
    }),
    ledgerFrom: Type.String({
      description:
        'First ledger entry id that could be of the day (decimal). An id is milliseconds since the Unix epoch × 2^22, plus cell and sequence',
    }),
    ledgerTo: Type.String({
      description:
        "The report covers the partner's ledger entries with ids from ledgerFrom up to, and without, this one: the first of the next day, or while PENDING the one after the last that was booked",
    }),
    previousHash: nullable(
      hash(
        "integrityHash of the partner's report before: of the newest day before this one that had a report when this was made, its newest revision; null for the first",
      ),
    ),
    integrityHash: hash(
      'SHA-256 of the canonical JSON (RFC 8785) of this object without integrityHash, reportStatus, acknowledgedAt, disputedAt and disputeReason',
    ),
    generatedAt: timestamp(),
    acknowledgedAt: Type.Optional(timestamp()),
    disputedAt: Type.Optional(timestamp()),
    disputeReason: Type.Optional(Type.String()),
  },
  { description: 'Amounts are exact, with at most 6 decimals' },
);

export const SettlementList = Type.Object({ reports: Type.Array(SettlementReport), ...pageMembers });

export type DisputeBody = Static<typeof DisputeBody>;
