/** `spindle show`: prints packed records of Redis in readable form. */

import { entryTimeMs } from '../domain/entryId.js';
import { microsToUsdText } from '../domain/money.js';
import { SpinIds } from '../domain/spinId.js';
import { lostSpins } from '../engine/cells/answered.store.js';
import { cellOfGame, cellOfPartner } from '../engine/cells/cells.store.js';
import { spinIdKey } from '../engine/recovery/installation.store.js';
import type { RedisNodes } from '../engine/redis/nodes.js';
import { openNodes } from '../engine/redis/openNodes.js';
import type { Sql } from '../postgres/connection.js';
import { type Line, NotFoundError, type StoreUrls, UsageError, whole } from './command.js';
import { openPostgres } from './openPostgres.store.js';

const LIMIT = 20;

export async function show(
  { redisUrl, databaseUrl }: StoreUrls,
  words: readonly string[],
  options: { readonly limit: string | undefined; readonly json: boolean },
): Promise<number> {
  const limit = options.limit === undefined ? LIMIT : whole(options.limit, '--limit');
  const lines = await find(redisUrl, databaseUrl, words, limit);
  if (options.json) process.stdout.write(`${JSON.stringify(lines)}\n`);
  else for (const line of lines) process.stdout.write(`${plain(line)}\n`);
  return 0;
}

async function find(
  redisUrl: string,
  databaseUrl: string,
  words: readonly string[],
  limit: number,
): Promise<Line[]> {
  let nodes: RedisNodes | undefined;
  const sql = openPostgres(databaseUrl, 'cli', 1);
  try {
    const [what, first, second] = words;
    if (what === 'lost') return await lost(sql, limit);
    nodes = await openNodes(redisUrl, () => {});
    if (what === 'player') {
      const partnerId = whole(first, 'PARTNER_ID');
      if (second === undefined) throw new UsageError('PLAYER_ID is missing');
      const cell = await cellOfPartner(sql, partnerId);
      const player = cell === undefined ? undefined : await nodes.cell(cell).findPlayer(partnerId, second);
      if (player === undefined) throw new NotFoundError('The player does not exist');
      return [
        {
          partnerId,
          playerId: second,
          cell: cell!,
          balanceUsd: microsToUsdText(player.balanceMicros),
          entries: player.entries,
          newestEntryId: player.newestEntryId.toString(),
          newestEntryAt: new Date(entryTimeMs(player.newestEntryId)).toISOString(),
          createdAt: new Date(player.createdAtMs).toISOString(),
        },
      ];
    }
    if (what === 'game') {
      const gameId = whole(first, 'GAME_ID');
      const cell = await cellOfGame(sql, gameId);
      const game = cell === undefined ? undefined : await nodes.cell(cell).findGame(gameId);
      if (game === undefined) throw new NotFoundError('The game does not exist or has no block yet');
      return [{ gameId, cell: cell!, ...game, outcomesReady: Math.max(0, game.queueEnd - game.nextIndex) }];
    }
    if (what === 'outbox') {
      const records = await nodes.cell(whole(first, 'CELL')).outbox(limit);
      return records.map(
        ({ wagerMicros, creditMicros, balanceMicros, timeMs, id, previousId, outcomeIndex, ...record }) => ({
          id: id.toString(),
          at: new Date(timeMs).toISOString(),
          ...record,
          // A forced spin does not use a sealed outcome, so it has no index.
          outcomeIndex: record.kind === 'forcedSpin' ? null : outcomeIndex,
          wagerUsd: microsToUsdText(wagerMicros),
          creditUsd: microsToUsdText(creditMicros),
          balanceUsd: microsToUsdText(balanceMicros),
          previousId: previousId.toString(),
        }),
      );
    }
    throw new UsageError(`«${what ?? ''}» is not one of: player, game, outbox, lost`);
  } finally {
    nodes?.close();
    await sql.end();
  }
}

const plain = (line: Line): string =>
  Object.entries(line)
    .map(([name, value]) => `${name.padEnd(16)} ${value ?? '-'}`)
    .join('\n');

/** Returns acknowledged spins that are missing in both Redis and the ledger, newest first. */
async function lost(sql: Sql, limit: number): Promise<Line[]> {
  const spinIds = new SpinIds(await spinIdKey(sql));
  return (await lostSpins(sql, limit)).map((spin) => ({
    spinId: spinIds.encodeOne(spin.entryId, spin.partnerId),
    partnerId: spin.partnerId,
    gameId: spin.gameId,
    playerId: spin.playerId,
    requestId: spin.requestId ?? '',
    outcomeCode: spin.outcomeCode,
    balanceUsd: microsToUsdText(spin.balanceMicros),
    spunAt: new Date(entryTimeMs(spin.entryId)).toISOString(),
    foundAt: spin.foundAt.toISOString(),
  }));
}
