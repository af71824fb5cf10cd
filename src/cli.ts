#!/usr/bin/env node
/** `spindle`: looks into the stores of a running service. What Redis holds packed can be read here by a person. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readConfig } from './config.js';
import { microsToUsdText } from './domain/money.js';
import { cellOfGame, cellOfPartner } from './postgres/cells.js';
import { connectPostgres } from './postgres/client.js';
import { connectRedis } from './redis/client.js';
import { openLookups } from './redis/lookups.js';
import { entryTimeMs } from './redis/records.js';
import { STORES_FILE } from './storesFile.js';

const HELP = `spindle: looks into the stores of a running service

  spindle show player PARTNER_ID PLAYER_ID   balance and newest ledger entry of a player, as Redis has them now
  spindle show game GAME_ID                  counter and queue of a game, as Redis has them now
  spindle show outbox CELL [--limit N]       ledger entries of a cell that are not in Postgres yet, oldest first

  --json    one JSON value instead of lines
  --help    this text

The stores are those of REDIS_URL and DATABASE_URL, or the embedded ones of DATA_DIR.
Examples: spindle show player 1 alice      spindle show outbox 0 --limit 5 --json
Exit status: 0 found, 1 not found or a store does not answer, 2 wrong usage.
`;

class UsageError extends Error {}
class NotFoundError extends Error {}

type Line = Record<string, string | number | boolean | null>;

function storeUrls(): { redisUrl: string; databaseUrl: string } {
  const config = readConfig();
  const { REDIS_URL, DATABASE_URL } = config;
  if (REDIS_URL !== undefined && DATABASE_URL !== undefined)
    return { redisUrl: REDIS_URL, databaseUrl: DATABASE_URL };
  try {
    return JSON.parse(readFileSync(join(config.dataDir, STORES_FILE), 'utf8'));
  } catch {
    throw new UsageError(
      `Neither REDIS_URL and DATABASE_URL are set nor are there embedded stores in ${config.dataDir}`,
    );
  }
}

function whole(text: string | undefined, name: string): number {
  if (text === undefined || !/^\d{1,10}$/.test(text)) throw new UsageError(`${name} must be a whole number`);
  return Number(text);
}

async function show(words: readonly string[], limit: number): Promise<Line[]> {
  const { redisUrl, databaseUrl } = storeUrls();
  const redis = connectRedis(redisUrl, () => {});
  const sql = connectPostgres(databaseUrl, { max: 1, name: 'spindle-cli', onError: () => {} });
  try {
    await redis.connect();
    const lookups = openLookups(redis);
    const [what, first, second] = words;
    if (what === 'player') {
      const partnerId = whole(first, 'PARTNER_ID');
      if (second === undefined) throw new UsageError('PLAYER_ID is missing');
      const cell = await cellOfPartner(sql, partnerId);
      const player = cell === undefined ? undefined : await lookups.findPlayer(cell, partnerId, second);
      if (player === undefined) throw new NotFoundError('No such player');
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
      const game = cell === undefined ? undefined : await lookups.findGame(cell, gameId);
      if (game === undefined) throw new NotFoundError('No such game, or it has no block yet');
      return [{ gameId, cell: cell!, ...game, outcomesReady: game.queueEnd - game.nextIndex }];
    }
    if (what === 'outbox') {
      const records = await lookups.outbox(whole(first, 'CELL'), limit);
      return records.map(
        ({ wagerMicros, creditMicros, balanceMicros, timeMs, id, previousId, ...record }) => ({
          id: id.toString(),
          at: new Date(timeMs).toISOString(),
          ...record,
          wagerUsd: microsToUsdText(wagerMicros),
          creditUsd: microsToUsdText(creditMicros),
          balanceUsd: microsToUsdText(balanceMicros),
          previousId: previousId.toString(),
        }),
      );
    }
    throw new UsageError(`«${what ?? ''}» can't be shown`);
  } finally {
    redis.disconnect();
    await sql.end();
  }
}

async function main(): Promise<number> {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        json: { type: 'boolean' },
        help: { type: 'boolean' },
        limit: { type: 'string', default: '20' },
      },
    });
    const [command, ...words] = positionals;
    if (values.help === true || command === undefined) {
      process.stdout.write(HELP);
      return values.help === true ? 0 : 2;
    }
    if (command !== 'show') throw new UsageError(`«${command}» is no command`);
    const lines = await show(words, whole(values.limit, '--limit'));
    if (values.json === true) process.stdout.write(`${JSON.stringify(lines)}\n`);
    else for (const line of lines) process.stdout.write(`${plain(line)}\n`);
    return 0;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(`spindle: ${message}\n`);
    const isUsage =
      error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS');
    return isUsage === true ? 2 : 1;
  }
}

const plain = (line: Line): string =>
  Object.entries(line)
    .map(([name, value]) => `${name.padEnd(16)} ${value ?? '-'}`)
    .join('\n');

process.exitCode = await main();
