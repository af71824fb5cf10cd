/**
 * Changes of the public log in Postgres that only operator commands make: importing records that this
 * database has lost, and beginning a new log (docs/backup.md).
 */

import { grow } from '../../domain/publicLog/growth.js';
import { labelIn, labelOf, publicRecord } from '../../domain/publicLog/logEntries.js';
import { parseVkey } from '../../domain/publicLog/notes.js';
import { LOG_ENTRY_KINDS } from '../../domain/publicLog/openings.js';
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { rowsOf, safe, textArrayOf } from '../../postgres/statements.js';
import { type LogState, lockedLog, tilesAt, writeTiles } from './publicLog.store.js';

const PRIVATE = 1;
/**
 * Number of entry numbers of a game whose labels are searched for. They follow the game's newest known
 * number. The log has the entries of a game in the order of their numbers.
 */
const AHEAD = 64;
const REASON = 'restored';

/** Finds records of this database's games by their label keys, incrementally. */
class GameLabels {
  readonly #games = new Map<number, { readonly labelKey: Buffer; next: number }>();
  readonly #known = new Map<string, { readonly gameId: number; readonly number: number }>();

  constructor(
    games: readonly { readonly gameId: number; readonly labelKey: Buffer; readonly next: number }[],
  ) {
    for (const { gameId, labelKey, next } of games) {
      this.#games.set(gameId, { labelKey, next });
      this.#expect(gameId, next + AHEAD);
    }
  }

  #expect(gameId: number, to: number): void {
    const game = this.#games.get(gameId)!;
    for (; game.next < to; game.next++) {
      const label = labelOf(game.labelKey, game.next).toString('latin1');
      this.#known.set(label, { gameId, number: game.next });
    }
  }

  /** Returns game and number of a record's entry; undefined if it belongs to no known game. */
  find(record: Buffer): { readonly gameId: number; readonly number: number } | undefined {
    const label = labelIn(record)?.toString('latin1');
    const found = label === undefined ? undefined : this.#known.get(label);
    if (found !== undefined) this.#expect(found.gameId, found.number + 1 + AHEAD);
    return found;
  }
}

/**
 * Returns the games with a label key, by which their records can be found in a copy of the log. Each game has
 * the number of its first record that is not in this database's log.
 */
export async function gameLabels(sql: Sql): Promise<GameLabels> {
  const rows = await sql<{ gameId: number; labelKey: Buffer; next: bigint }[]>`
    SELECT game_id, label_key, coalesce(
      (SELECT min(number) FROM log_entries e WHERE e.game_id = g.game_id AND log_index IS NULL), next_number) AS next
    FROM log_games g WHERE label_key IS NOT NULL`;
  return new GameLabels(
    rows.map((row) => ({ gameId: row.gameId, labelKey: row.labelKey, next: safe(row.next) })),
  );
}

/**
 * Stops dealing until the current log is imported or replaced.
 * @throws Error if the log is not halted
 */
export async function holdLog(sql: Sql, logId: number): Promise<void> {
  const held = await sql`
    UPDATE logs SET is_held = true WHERE log_id = ${logId} AND halt IS NOT NULL RETURNING 1`;
  if (held.length === 0) throw new Error('The public log is no longer halted');
}

/**
 * Imports the records that follow those of the log, in one transaction.
 * @param root expected root after the import
 * @throws Error if the log has changed, or if the records lead to a different root
 */
export async function importRecords(
  sql: Sql,
  state: LogState,
  records: readonly Buffer[],
  root: Buffer,
  labels: GameLabels,
): Promise<void> {
  await sql.begin(async (tx) => {
    const locked = await lockedLog(tx);
    if (locked.logId !== state.logId || locked.size !== state.size)
      throw new Error('The public log has changed since the import began');
    const grown = grow(state.size, await tilesAt(tx, state), records);
    if (!grown.root.equals(root))
      throw new Error('The imported records do not continue the records of the log');
    await writeTiles(tx, state.logId, grown.tiles);
    const found = records.flatMap((record, at) => {
      const entry = labels.find(record);
      return entry === undefined ? [] : [{ ...entry, logIndex: state.size + at }];
    });
    await noteForgotten(tx, state.logId, found);
    const strangers = records.filter((record) => record[0] === PRIVATE).length - found.length;
    await tx`
      INSERT INTO log_imports (log_id, from_index, to_index, strangers)
      VALUES (${state.logId}, ${state.size}, ${grown.size}, ${strangers})`;
    const vkeys = keysAfter(state.vkeys, records);
    await tx`
      UPDATE logs SET size = ${grown.size}, root = ${grown.root}, vkeys = ${textArrayOf(vkeys)}::text[]
      WHERE log_id = ${state.logId}`;
  });
}

/** Returns the keys in force after the given records, newest first. */
export function keysAfter(vkeys: readonly string[], records: readonly Buffer[]): string[] {
  const keys = [...vkeys];
  for (const record of records) {
    if (record[0] === PRIVATE) continue;
    const { type, vkey } = JSON.parse(record.subarray(1).toString()) as { type: string; vkey?: string };
    if (type !== 'key' || vkey === undefined || keys.includes(vkey)) continue;
    parseVkey(vkey);
    keys.unshift(vkey);
  }
  return keys;
}

/**
 * Marks imported entries as forgotten, because their openings are lost. If this database has a waiting entry
 * with the same number, that entry is marked too, because the log has it with a different salt.
 */
async function noteForgotten(
  tx: Transaction,
  logId: number,
  found: readonly { readonly gameId: number; readonly number: number; readonly logIndex: number }[],
): Promise<void> {
  if (found.length === 0) return;
  const forgotten = rowsOf(found, { gameId: 'int', number: 'bigint', logIndex: 'bigint' }, 'f');
  await tx`
    INSERT INTO log_entries (game_id, number, kind, from_index, to_index, at, reason, log_id, log_index, logged_at)
    SELECT game_id, number, ${LOG_ENTRY_KINDS.forgotten}, 0, 0, now(), ${REASON}, ${logId}, log_index, now()
    FROM ${forgotten}
    ON CONFLICT (game_id, number) DO UPDATE SET kind = excluded.kind, from_index = 0, to_index = 0, reason = excluded.reason,
      log_id = excluded.log_id, log_index = excluded.log_index, logged_at = excluded.logged_at`;
  await tx`
    UPDATE log_games g SET next_number = greatest(next_number, f.next)
    FROM (SELECT game_id, max(number) + 1 AS next FROM ${forgotten} GROUP BY game_id) f
    WHERE g.game_id = f.game_id`;
  await tx`
    UPDATE blocks b SET log_number = NULL FROM ${forgotten}
    WHERE b.game_id = f.game_id AND b.log_number = f.number`;
}

/**
 * Declares, for each game, the entry numbers whose openings are lost. An entry that is logged before the
 * game's next block does this. Can be repeated.
 * @returns number of lost entries
 */
export async function declareLost(sql: Sql): Promise<number> {
  const rows = await sql<{ numbers: bigint }[]>`
    WITH gone AS (
      SELECT game_id, min(number) AS first, max(number) AS last, count(*) AS numbers FROM log_entries e
      WHERE kind = ${LOG_ENTRY_KINDS.forgotten} AND NOT EXISTS (
        SELECT 1 FROM log_entries l WHERE l.game_id = e.game_id AND l.kind = ${LOG_ENTRY_KINDS.lost}
          AND e.number BETWEEN l.from_index AND l.to_index)
      GROUP BY game_id)
    SELECT numbers, next_log_entry(game_id, ${LOG_ENTRY_KINDS.lost}, first, last, now(), false, ${REASON}) FROM gone`;
  return rows.reduce((sum, { numbers }) => sum + Number(numbers), 0);
}

/**
 * Ends the halt of a complete log, so that appending and dealing continue.
 * @param note newest known note of the log, which is published
 */
export async function endHalt(
  sql: Sql,
  { logId, origin, size }: LogState,
  note: string,
  about: Readonly<Record<string, unknown>>,
): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`
      UPDATE logs SET halt = NULL, halt_note = NULL, halted_at = NULL, is_held = false WHERE log_id = ${logId}`;
    await tx`
      INSERT INTO log_checkpoints (log_id, size, note, published_at) VALUES (${logId}, ${size}, ${note}, now())
      ON CONFLICT (log_id, size) DO UPDATE SET published_at = coalesce(log_checkpoints.published_at, now())`;
    await writeAuditEntry(tx, {
      actor: 'command',
      action: 'log.import',
      subject: `log:${origin}`,
      after: { size, ...about },
    });
  });
}

/**
 * Begins a new log in place of the current one. The genesis record of the new log names its predecessor. Open
 * blocks are logged again as late entries, and waiting entries go into the new log.
 * @returns number of blocks logged again
 * @throws Error if the log is no longer the current one
 */
export async function beginAnother(
  sql: Sql,
  state: Pick<LogState, 'logId'>,
  log: Pick<LogState, 'origin' | 'vkeys' | 'signer'>,
  reason: string,
): Promise<number> {
  return sql.begin(async (tx) => {
    const locked = await lockedLog(tx);
    if (locked.logId !== state.logId) throw new Error('A new public log was begun in the meantime');
    const previous = { origin: locked.origin, size: locked.size, root: locked.root.toString('base64') };
    const at = new Date().toISOString();
    const genesis = publicRecord({
      type: 'genesis',
      at,
      format: 'spindle log v1',
      origin: log.origin,
      vkey: log.vkeys[0],
      previous,
    });
    const { size, root, tiles } = grow(0, [], [genesis]);
    const logId = state.logId + 1;
    await tx`
      INSERT INTO logs (log_id, origin, vkeys, signer, size, root, policy)
      SELECT ${logId}, ${log.origin}, ${textArrayOf(log.vkeys)}::text[], ${log.signer}, ${size}, ${root}, policy
      FROM logs WHERE log_id = ${state.logId}`;
    // A concurrent append to the old log waits for this lock of the log's row, and then writes nothing.
    await tx`UPDATE logs SET is_replaced = true WHERE log_id = ${state.logId}`;
    await writeTiles(tx, logId, tiles);
    await tx`INSERT INTO log_witnesses (log_id, vkey) SELECT ${logId}, vkey FROM log_witnesses WHERE log_id = ${state.logId}`;
    const again = await tx`
      WITH open AS (
        SELECT b.game_id, b.from_index, b.to_index, b.created_at FROM blocks b
          JOIN log_entries e ON e.game_id = b.game_id AND e.number = b.log_number
        WHERE e.log_index IS NOT NULL
          AND b.to_index > coalesce((SELECT next_index FROM game_progress p WHERE p.game_id = b.game_id), 0)
        ORDER BY b.game_id, b.from_index),
      logged AS (SELECT game_id, from_index,
        next_log_entry(game_id, log_kind(game_id), from_index, to_index, created_at, true, NULL) AS number FROM open)
      UPDATE blocks b SET log_number = l.number FROM logged l
      WHERE b.game_id = l.game_id AND b.from_index = l.from_index RETURNING 1`;
    await writeAuditEntry(tx, {
      actor: 'command',
      action: 'log.begin',
      subject: `log:${log.origin}`,
      before: previous,
      after: { origin: log.origin, vkey: log.vkeys[0], reason, blocks: again.length },
    });
    return again.length;
  });
}
