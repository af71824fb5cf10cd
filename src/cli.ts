#!/usr/bin/env node
/** `spindle`: looks into the stores of a running service, and checks them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { audit } from './cli/audit.js';
import { type StoreUrls, UsageError } from './cli/command.js';
import { recoverCells } from './cli/recover.js';
import { show } from './cli/show.js';
import { readConfig } from './config.js';
import { STORES_FILE } from './storesFile.js';

const HELP = `spindle: looks into the stores of a running service, and checks them

  spindle show player PARTNER_ID PLAYER_ID   balance and newest ledger entry of a player, as Redis has them now
  spindle show game GAME_ID                  counter and queue of a game, as Redis has them now
  spindle show outbox CELL [--limit N]       ledger entries of a cell that are not in Postgres yet, oldest first
  spindle audit [--redraw] [--limit N]       checks balances, indices, outcomes, blocks, totals, requestIds and cursors of
                                             both stores against each other; reads only, and may run beside the service
  spindle recover [--check] [--replace] [--resume CELL]
                                             makes Redis what the ledger knows, in every cell that no running worker serves;
                                             --check looks only

  --limit N   show: entries at the most (20); audit: violations listed of each check (100)
  --redraw    audit: draws every block again from its seed, too
  --replace   recover: rebuilds also what no machine should decide about (another database's Redis; a Postgres that lacks
              what it had): what Redis holds of it is given up
  --resume    recover: a halted cell that was looked into goes on
  --json      one JSON value instead of lines
  --help      this text

The stores are those of REDIS_URL and DATABASE_URL, or the embedded ones of DATA_DIR.
Examples: spindle show player 1 alice      spindle show outbox 0 --limit 5 --json      spindle audit --redraw
          spindle recover --check    spindle recover --resume 3
Exit status: 0 found, clean, or all cells served; 1 not found, violations (NOT CLEAN), cells that are not served, or a
store that does not answer (NOT FINISHED); 2 wrong usage.
`;

const EXIT_WITHIN_MS = 1000;

function storeUrls(): StoreUrls {
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

async function main(): Promise<number> {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
        redraw: { type: 'boolean', default: false },
        check: { type: 'boolean', default: false },
        replace: { type: 'boolean', default: false },
        resume: { type: 'string', multiple: true, default: [] },
        limit: { type: 'string' },
      },
    });
    const { json, help, redraw, limit, check, replace, resume } = values;
    const [command, ...words] = positionals;
    if (help || command === undefined) {
      process.stdout.write(HELP);
      return help ? 0 : 2;
    }
    if (redraw && command !== 'audit') throw new UsageError('--redraw is for audit');
    if ((check || replace || resume.length > 0) && command !== 'recover') {
      throw new UsageError('--check, --replace and --resume are for recover');
    }
    if (command === 'show') return await show(storeUrls(), words, { limit, json });
    if (command === 'audit') return await audit(storeUrls(), words, { limit, json, redraw });
    if (command === 'recover') {
      const { luaDir, allowVolatileRedis } = readConfig();
      return await recoverCells(storeUrls(), words, {
        luaDir,
        allowVolatile: allowVolatileRedis,
        check,
        replace,
        resume,
        json,
      });
    }
    throw new UsageError(`«${command}» is no command`);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(`spindle: ${message}\n`);
    const isUsage =
      error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS');
    return isUsage === true ? 2 : 1;
  }
}

process.exitCode = await main();
// What is printed is printed by then; a connection to a store that hangs would keep the program.
setTimeout(() => process.exit(), EXIT_WITHIN_MS).unref();
