/** Blackjack tables, and the seeds of their shoes. */
import { type BlackjackRules, rulesText } from '../domain/games/blackjackRules.js';
import type { TableTerms } from '../domain/games/tableTerms.js';
import { microsToUsdText } from '../domain/money.js';
import { audit, withChange } from './changes.js';
import { isUniqueViolation, type Sql, safe } from './client.js';
import { findGame, type GameRow } from './games.js';

/** Makes a table; its first shoes are made by the worker of its cell. */
export async function createTable(
  sql: Sql,
  actor: string,
  table: { partnerId: number; configName: string; displayName: string; terms: TableTerms },
): Promise<GameRow | 'name-taken'> {
  const { partnerId, configName, displayName, terms } = table;
  try {
    return await withChange(sql, async (tx, changed) => {
      const [row] = await tx<{ game_id: number }[]>`
        INSERT INTO games (partner_id, game_type, config_name, display_name, changed)
        VALUES (${partnerId}, 'blackjack', ${configName}, ${displayName}, ${changed}) RETURNING game_id`;
      const gameId = row!.game_id;
      const { wagerMicros, rules, roundTimeoutSeconds } = terms;
      await tx`
        INSERT INTO blackjack_tables (game_id, wager_micros, rules, round_timeout_s)
        VALUES (${gameId}, ${wagerMicros}, ${rulesText(rules)}, ${roundTimeoutSeconds})`;
      const wagerUsd = Number(microsToUsdText(wagerMicros));
      const after = {
        partnerId,
        configName,
        displayName,
        wagerUsd,
        rules,
        roundTimeoutS: roundTimeoutSeconds,
      };
      await audit(tx, { actor, action: 'blackjack.create', subject: `game:${gameId}`, after });
      return (await findGame(tx, gameId))!;
    });
  } catch (error) {
    if (isUniqueViolation(error)) return 'name-taken';
    throw error;
  }
}

/** The columns of blackjack_tables in a row that may have none. */
export interface TableColumns {
  wager_micros: bigint | null;
  rules: BlackjackRules | null;
  round_timeout_s: number | null;
}

export const termsOf = (row: TableColumns): TableTerms | null =>
  row.wager_micros === null || row.rules === null || row.round_timeout_s === null
    ? null
    : {
        wagerMicros: safe(row.wager_micros),
        rules: row.rules,
        roundTimeoutSeconds: row.round_timeout_s,
      };

/** The seeds of the block of shoes that has this one, 32 bytes each, and where it begins; undefined: no block has it. */
export async function shoeSeeds(
  sql: Sql,
  gameId: number,
  shoeIndex: number,
): Promise<{ fromIndex: number; toIndex: number; seeds: Buffer } | undefined> {
  const [row] = await sql<{ from_index: bigint; to_index: bigint; seed: Buffer }[]>`
    SELECT from_index, to_index, seed FROM blocks WHERE game_id = ${gameId} AND from_index <= ${shoeIndex}
    ORDER BY from_index DESC LIMIT 1`;
  if (row === undefined || row.to_index <= BigInt(shoeIndex)) return undefined;
  return { fromIndex: safe(row.from_index), toIndex: safe(row.to_index), seeds: row.seed };
}
