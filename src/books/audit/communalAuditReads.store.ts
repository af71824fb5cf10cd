/** Reads communal progressives for the audit, from the snapshot and from the current state. */
import { AUDITED_KINDS } from '../../domain/auditedKinds.js';
import type { BonusNotice, CommunalRules } from '../../domain/communal.js';
import { noticesOfSpins } from '../../engine/communal/communal.store.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { arrayOf, raw } from '../../postgres/statements.js';
import { cellSql } from './ids.js';

export interface CommunalFacts {
  readonly rules: readonly {
    readonly gameId: number;
    readonly version: number;
    readonly isEnabled: boolean;
    readonly triggerInterval: bigint;
    /** Share of the triggering player, in hundredths of a percent. */
    readonly triggerSplit: bigint;
    readonly windowMinutes: number;
    readonly communitySize: number;
    readonly returnsToBudget: boolean;
    readonly paysRemaining: boolean;
    readonly tiers: readonly { level: number; triggerAtSpins: bigint; amountMicros: bigint }[];
    readonly resetsProgress: boolean;
    readonly inForceFrom: bigint | null;
  }[];
  readonly pots: readonly {
    readonly gameId: number;
    readonly cell: number;
    readonly version: number;
    readonly progress: bigint;
    readonly budgetMicros: bigint;
    readonly notedTo: bigint;
  }[];
  /** Newest spin that notified its player of a share, by cell. */
  readonly tellers: ReadonlyMap<number, bigint>;
  /** Committed fundings. */
  readonly fundings: readonly {
    readonly gameId: number;
    readonly cell: number;
    readonly noteId: bigint;
    readonly amountMicros: bigint;
    readonly budgetMicros: bigint;
  }[];
  readonly days: readonly {
    readonly gameId: number;
    readonly day: string;
    readonly partnerId: number;
    readonly shares: bigint;
    readonly paidMicros: bigint;
  }[];
}

export const communalFacts = async (tx: Transaction): Promise<CommunalFacts> => ({
  rules: await rulesOf(tx),
  pots: await potsOf(tx),
  tellers: await tellersOf(tx),
  fundings: await fundingsOf(tx),
  days: await daysOf(tx),
});

/**
 * Query for records of communal progressives that refer to an entry that the ledger lacks: type of record,
 * entry id, game id.
 * @param fromId first entry id of the kept ledger
 */
export const strayCommunal = (fromId: bigint): string => `
  SELECT 'event', event_id, c.game_id FROM communal_events c LEFT JOIN ledger ON entry_id = event_id AND kind = ${AUDITED_KINDS.spin.code}
    WHERE event_id >= ${fromId} AND entry_id IS NULL
  UNION ALL
  SELECT 'share', c.entry_id, c.game_id FROM communal_shares c LEFT JOIN ledger l ON l.entry_id = c.entry_id AND kind = ${AUDITED_KINDS.communalShare.code}
    WHERE c.entry_id >= ${fromId} AND l.entry_id IS NULL
  UNION ALL
  SELECT 'told', told_by, c.game_id FROM communal_shares c LEFT JOIN ledger l ON l.entry_id = told_by AND kind = ${AUDITED_KINDS.spin.code}
    WHERE told_by >= ${fromId} AND l.entry_id IS NULL`;

export interface AuditedShare {
  readonly entryId: bigint;
  readonly eventId: bigint;
  readonly gameId: number;
  readonly cell: number;
  readonly partnerId: number;
  readonly playerId: string;
  readonly amountMicros: bigint;
  readonly notifiedBy: bigint | null;
}

/** Reads of communal progressives in their current state. The snapshot is not used. */
export interface CommunalReads {
  /** Returns those of the given shares that are committed. */
  shares(entryIds: readonly bigint[]): Promise<readonly AuditedShare[]>;
  /** Returns the next shares after an id whose players are still to be notified, by id. */
  untold(afterId: bigint, limit: number): Promise<readonly AuditedShare[]>;
  /** Returns the notices that the given spins carried to their players. */
  notices(spinIds: readonly bigint[]): Promise<ReadonlyMap<bigint, BonusNotice>>;
  /**
   * Returns the committed version, progress and budget of a pot as text, or an empty string if there is no
   * pot.
   */
  pot(gameId: number): Promise<string>;
}

const SHARE_COLUMNS = raw(
  'entry_id, event_id, game_id, cell, partner_id, player_id, amount_micros, told_by AS notified_by',
);

export const openCommunalReads = (sql: Sql): CommunalReads => ({
  async shares(entryIds) {
    return sql<AuditedShare[]>`
      SELECT ${SHARE_COLUMNS} FROM communal_shares JOIN partners USING (partner_id)
      WHERE entry_id = ANY(${arrayOf(entryIds)}::bigint[])`;
  },
  async untold(afterId, limit) {
    return sql<AuditedShare[]>`
      SELECT ${SHARE_COLUMNS} FROM communal_shares JOIN partners USING (partner_id)
      WHERE told_by IS NULL AND entry_id > ${afterId} ORDER BY entry_id LIMIT ${limit}`;
  },
  notices: (spinIds) => noticesOfSpins(sql, spinIds),
  async pot(gameId) {
    const [row] = await sql<{ version: number; progress: bigint; budgetMicros: bigint }[]>`
      SELECT version, progress, budget_micros FROM communal_pots WHERE game_id = ${gameId}`;
    return row === undefined ? '' : [row.version, row.progress, row.budgetMicros].join(', ');
  },
});

async function rulesOf(tx: Transaction): Promise<CommunalFacts['rules']> {
  const rows = await tx<
    {
      gameId: number;
      version: number;
      rules: CommunalRules;
      resetsProgress: boolean;
      inForceFrom: bigint | null;
    }[]
  >`SELECT game_id, version, rules, resets_progress, in_force_from FROM communal_rules ORDER BY game_id, version`;
  return rows.map((row) => ({
    gameId: row.gameId,
    version: row.version,
    isEnabled: row.rules.enabled,
    triggerInterval: BigInt(row.rules.triggerInterval),
    triggerSplit: BigInt(row.rules.triggerSplit),
    windowMinutes: row.rules.windowMinutes,
    communitySize: row.rules.communitySize,
    returnsToBudget: row.rules.emptyCommunity === 'RETURN_TO_BUDGET',
    paysRemaining: row.rules.onShortBudget === 'PAY_REMAINING',
    tiers: row.rules.tiers.map((tier) => ({
      level: tier.tierLevel,
      triggerAtSpins: BigInt(tier.triggerAtSpins),
      amountMicros: BigInt(tier.amountMicros),
    })),
    resetsProgress: row.resetsProgress,
    inForceFrom: row.inForceFrom,
  }));
}

async function potsOf(tx: Transaction): Promise<CommunalFacts['pots']> {
  return tx<CommunalFacts['pots']>`SELECT game_id, cell, version, progress, budget_micros, noted_to
    FROM communal_pots JOIN games USING (game_id) JOIN partners USING (partner_id)`;
}

async function tellersOf(tx: Transaction): Promise<CommunalFacts['tellers']> {
  const rows = await tx<{ cell: number; toldBy: bigint }[]>`
    SELECT ${raw(cellSql('told_by'))}::int AS cell, max(told_by) AS told_by FROM communal_shares
    WHERE told_by IS NOT NULL GROUP BY 1`;
  return new Map(rows.map((row) => [row.cell, row.toldBy]));
}

async function fundingsOf(tx: Transaction): Promise<CommunalFacts['fundings']> {
  return tx<CommunalFacts['fundings']>`SELECT game_id, cell, note_id, amount_micros, budget_micros
    FROM communal_fundings JOIN games USING (game_id) JOIN partners USING (partner_id)
    WHERE note_id IS NOT NULL`;
}

async function daysOf(tx: Transaction): Promise<CommunalFacts['days']> {
  return tx<
    CommunalFacts['days']
  >`SELECT game_id, to_char(day, 'YYYY-MM-DD') AS day, partner_id, shares, paid_micros FROM communal_days`;
}
