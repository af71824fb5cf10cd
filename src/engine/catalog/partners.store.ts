/** SQL of partners and their settings, and of the watermark up to which each partner's ledger is complete. */
import type { Environment, FormerCell } from '../../domain/game.js';
import { type AmountSetting, type PartnerSettings, SETTING_LIST } from '../../domain/partnerSettings.js';
import { because, withChange, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { isUniqueViolation } from '../../postgres/postgresErrors.js';
import { columnOf, raw, rowsOf, safe } from '../../postgres/statements.js';
import { drainingOf, NEWEST_MOVE_TEXT, TOKEN } from '../cells/cells.store.js';
import { notePartnerSwitch } from './dealingSwitches.store.js';

export interface PartnerRow extends PartnerSettings {
  partnerId: number;
  slug: string;
  name: string;
  environment: Environment;
  isActive: boolean;
  /** The partner's dealing switch. If it is false, no game of the partner is dealt. */
  isDealing: boolean;
  cell: number;
  formerCells: readonly FormerCell[];
  newestMove: number;
  createdAt: Date;
}

/** SQL types of the settings. */
const SETTINGS = Object.fromEntries(SETTING_LIST.map(({ name, type }) => [name, type])) as Record<
  keyof PartnerSettings,
  'int' | 'bigint' | 'text'
>;
const SETTING_COLUMNS = Object.keys(SETTINGS).map(columnOf).join(', ');

type AmountColumns = { [N in AmountSetting]: bigint | Extract<PartnerSettings[N], null> };

export interface PartnerTableRow extends Omit<PartnerRow, AmountSetting | 'formerCells'>, AmountColumns {
  /**
   * Former cells of the partner, each as `<cell>:<id>`, where `id` is the partner's newest entry in that
   * cell.
   */
  formerCells: string[] | null;
}

/** The audit log has the members of a partner in this order. */
export const PARTNER_COLUMNS = raw(
  `partner_id, slug, name, environment, is_active, is_dealing, cell, ${SETTING_COLUMNS},
   (SELECT array_agg(m.from_cell || ':' || m.until_id) FROM partner_moves m
     WHERE m.partner_id = partners.partner_id AND m.switched_at IS NOT NULL) AS former_cells,
   ${NEWEST_MOVE_TEXT}, created_at`,
);

function formerCellsOf({ cell, formerCells: texts }: PartnerTableRow): FormerCell[] {
  const newest = new Map<number, bigint>();
  for (const text of texts ?? []) {
    const [left, untilId] = text.split(':') as [string, string];
    const known = newest.get(Number(left)) ?? 0n;
    if (BigInt(untilId) > known) newest.set(Number(left), BigInt(untilId));
  }
  newest.delete(cell);
  return [...newest].map(([former, untilId]) => ({ cell: former, untilId }));
}

/**
 * Every spin reads its partner, so the members are copied one by one: an object that is spread from a row of
 * the driver is slower to read.
 */
export function partnerFromRow(row: PartnerTableRow): PartnerRow {
  const settings: Record<string, unknown> = {};
  for (const { name } of SETTING_LIST) {
    const value = row[name];
    settings[name] = typeof value === 'bigint' ? safe(value) : value;
  }
  return {
    partnerId: row.partnerId,
    slug: row.slug,
    name: row.name,
    environment: row.environment,
    isActive: row.isActive,
    isDealing: row.isDealing,
    cell: row.cell,
    ...(settings as unknown as PartnerSettings),
    formerCells: formerCellsOf(row),
    newestMove: row.newestMove,
    createdAt: row.createdAt,
  };
}

export type NotCreated = 'slugTaken' | 'noSuchCell' | 'cellDrains';

async function cellFor(tx: Transaction, wanted: number | undefined): Promise<number | NotCreated> {
  if (wanted === undefined) {
    const [row] = await tx<{ cell: number }[]>`
      SELECT c.cell FROM cells c LEFT JOIN partners p USING (cell) WHERE NOT is_draining
      GROUP BY c.cell ORDER BY count(p.partner_id), c.cell LIMIT 1`;
    return row!.cell;
  }
  const isDraining = await drainingOf(tx, wanted);
  if (isDraining === undefined) return 'noSuchCell';
  return isDraining ? 'cellDrains' : wanted;
}

async function findPartner(sql: Sql | Transaction, partnerId: number): Promise<PartnerRow | undefined> {
  const [row] = await sql<
    PartnerTableRow[]
  >`SELECT ${PARTNER_COLUMNS} FROM partners WHERE partner_id = ${partnerId}`;
  return row === undefined ? undefined : partnerFromRow(row);
}

/**
 * Watermark up to which the ledger of a partner is complete.
 *
 * The partner's entries are in its present cell and in the cells that it has left. The entries of a cell are
 * committed in the order of their ids, and each transaction also writes the cell's cursor. A partner leaves a
 * cell only when all its entries there are committed, and its entries in the next cell have higher ids.
 *
 * So no further entry can appear up to the cursor of the present cell, or up to the last entry in the
 * previous cell, whichever is higher.
 */
export interface LedgerWatermark {
  /** The partner's present cell in Postgres. A front end may not know of the partner's newest move yet. */
  readonly cell: number;
  /** Epoch of the partner's present cell. */
  readonly epoch: string;
  /** Id up to which all entries of the partner are in the ledger. */
  readonly toId: bigint;
  /** Time by the clock of Postgres, in milliseconds since the Unix epoch. */
  readonly timeMs: number;
  /** Newest day that was dropped from the ledger, such as 2026-11-22. Null if none was. */
  readonly droppedDay: string | null;
}

export async function isPartner(sql: Sql, partnerId: number): Promise<boolean> {
  const rows = await sql`SELECT 1 FROM partners WHERE partner_id = ${String(partnerId)}::bigint`;
  return rows.length > 0;
}

export class Partners {
  constructor(private readonly sql: Sql) {}

  /**
   * @param wantedCell cell of the partner; the default is the cell with the fewest partners, among the cells
   * that are not being drained
   */
  async create(
    actor: string,
    partner: { slug: string; name: string; environment: Environment } & PartnerSettings,
    wantedCell?: number,
  ): Promise<PartnerRow | NotCreated> {
    try {
      return await withChange(this.sql, async (tx, changed) => {
        const cell = await cellFor(tx, wantedCell);
        if (typeof cell === 'string') return cell;
        const [row] = await tx<PartnerTableRow[]>`
          INSERT INTO partners (cell, changed, slug, name, environment, ${raw(SETTING_COLUMNS)})
          SELECT ${cell}::int, ${changed}::bigint, given.*
          FROM ${rowsOf([partner], { slug: 'text', name: 'text', environment: 'text', ...SETTINGS })}
          RETURNING ${PARTNER_COLUMNS}`;
        const made = partnerFromRow(row!);
        await writeAuditEntry(tx, {
          actor,
          action: 'partner.create',
          subject: `partner:${made.partnerId}`,
          after: made,
        });
        return made;
      });
    } catch (error) {
      if (isUniqueViolation(error)) return 'slugTaken';
      throw error;
    }
  }

  async list(): Promise<PartnerRow[]> {
    const rows = await this.sql<
      PartnerTableRow[]
    >`SELECT ${PARTNER_COLUMNS} FROM partners ORDER BY partner_id`;
    return rows.map(partnerFromRow);
  }

  find(partnerId: number): Promise<PartnerRow | undefined> {
    return findPartner(this.sql, partnerId);
  }

  /** Changes settings or the state of a partner. Undefined if there is no such partner. */
  async update(
    actor: string,
    partnerId: number,
    change: Partial<PartnerSettings> & { isActive?: boolean; isDealing?: boolean; name?: string },
    reason?: string,
  ): Promise<PartnerRow | undefined> {
    return withChange(this.sql, async (tx, changed) => {
      const before = await findPartner(tx, partnerId);
      if (before === undefined) return undefined;
      const after = { ...before, ...change };
      if (after.isDealing !== before.isDealing) await notePartnerSwitch(tx, partnerId, after.isDealing);
      await tx`
        UPDATE partners SET (name, is_active, is_dealing, ${raw(SETTING_COLUMNS)}) = (
          SELECT * FROM ${rowsOf([after], { name: 'text', isActive: 'boolean', isDealing: 'boolean', ...SETTINGS })}), changed = ${changed}
        WHERE partner_id = ${partnerId}`;
      await writeAuditEntry(tx, {
        actor,
        action: 'partner.update',
        subject: `partner:${partnerId}`,
        before,
        after: { ...after, ...because(reason) },
      });
      return after;
    });
  }

  ledgerWatermark(partnerId: number): Promise<LedgerWatermark> {
    return ledgerWatermark(this.sql, partnerId);
  }
}

/** SQL for the watermark of a partner's ledger, where `p` is the partner and `c` its present cell. */
export const WATERMARK = raw(`greatest(c.cursor_id, (SELECT max(m.until_id) FROM partner_moves m
  WHERE m.partner_id = p.partner_id AND m.switched_at IS NOT NULL))`);

/** @throws Error if there is no such partner */
export async function ledgerWatermark(sql: Sql, partnerId: number): Promise<LedgerWatermark> {
  const [row] = await sql<LedgerWatermark[]>`
    SELECT cell, ${TOKEN} AS epoch, ${WATERMARK} AS to_id, (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS time_ms,
      (SELECT max(day)::text FROM ledger_days WHERE dropped_at IS NOT NULL) AS dropped_day
    FROM partners p JOIN cells c USING (cell) WHERE p.partner_id = ${partnerId}`;
  if (row === undefined) throw new Error(`There is no partner ${partnerId}`);
  return row;
}
