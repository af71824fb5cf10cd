/**
 * Declares the commands that open the stores: `show`, `audit`, `settlement`, `recover`, `upgrade`. Only these
 * commands load the database clients.
 */
import type { Command } from 'commander';
import type { CopySetting } from '../engine/recovery/outsideCopies.store.js';
import { oneOf, type StoreUrls, UsageError } from './command.js';
import { confirm, withYes } from './confirm.js';

export const GROUP = 'Commands on the stores (REDIS_URL and DATABASE_URL, or embedded in DATA_DIR):';

const copySetting = oneOf<CopySetting>({ POSITION_FILE: 'POSITION_FILE', LOG_COPY_DIR: 'LOG_COPY_DIR' });

export interface StoreSettings {
  storeUrls(): Promise<StoreUrls>;
  settings(): Promise<{
    readonly allowVolatileRedis: boolean;
    readonly CLOCK_SKEW_MAX_S: number;
    readonly POSITION_FILE?: string;
    readonly LOG_COPY_DIR?: string;
    readonly LEDGER_KEEP_DAYS: number;
  }>;
}

export function addStoreCommands(program: Command, { storeUrls, settings }: StoreSettings): void {
  const add = (parent: Command, usage: string, description: string): Command =>
    parent.command(usage).description(description).helpGroup(GROUP);

  const show = add(program, 'show', 'data in Redis, and lost spins');
  const shown = (usage: string, description: string): Command => {
    const command = add(show, usage, description).option(
      '--limit <N>',
      'maximum number of entries (default: 20)',
    );
    return command.action(async () => {
      const { limit, json = false } = command.optsWithGlobals();
      const words = [command.name(), ...command.args];
      process.exitCode = await (await import('./show.js')).show(await storeUrls(), words, { limit, json });
    });
  };
  shown('player <PARTNER_ID> <PLAYER_ID>', 'show the balance and newest entry of a player');
  shown('game <GAME_ID>', 'show the counter and queue of a game');
  shown('outbox <CELL>', 'show the entries of a cell that are not in Postgres yet');
  shown('lost', 'show the acknowledged spins that a failover lost (ACK=redis), newest first');

  const audit = add(program, 'audit', 'compare Redis with the ledger and check both for violations')
    .option('--redraw', 'also draw every block again from its seed', false)
    .option('--limit <N>', 'maximum number of violations listed for each check (default: 100)')
    .addHelpText(
      'after',
      `
Checks the balances, indices, outcomes, blocks, totals, request ids and cursors of both stores. The command only reads, and may
run beside the service.
Exit status: 0 if CLEAN; 1 if NOT CLEAN, if NOT FINISHED because a store does not respond, or if NOT COMPLETE because a partner
moved to another cell during the audit.`,
    )
    .action(async () => {
      const { limit, redraw, json = false } = audit.optsWithGlobals();
      process.exitCode = await (await import('./runAudit.js')).runAudit(await storeUrls(), {
        limit,
        json,
        redraw,
      });
    });

  addUpgrade(program, storeUrls);
  addVerify(program, storeUrls);
  addRecover(program, { storeUrls, settings });
}

function addUpgrade(program: Command, storeUrls: StoreSettings['storeUrls']): void {
  const group = program.command('upgrade').description('upgrades to a new format').helpGroup(GROUP);
  const status = group
    .command('status')
    .description('show the running versions, the written format and the next step')
    .addHelpText('after', '\nExit status: 0 if no upgrade is open, 1 if one is open.')
    .action(async () => {
      const { upgradeStatus } = await import('./upgrade.js');
      const { json = false } = status.optsWithGlobals();
      process.exitCode = await upgradeStatus(await storeUrls(), { json });
    });
  const finish = withYes(
    group
      .command('finish')
      .description("switch to the new format; the previous version can't be started afterwards"),
  )
    .addHelpText(
      'after',
      "\nRefused while a running process can't read the new format. The switch is permanent.\nExit status: 0 if done, 1 if refused.",
    )
    .action(async () => {
      const { json = false, yes } = finish.optsWithGlobals();
      await confirm(
        "This will switch these stores to the new format permanently. The previous version can't be started on them afterwards.",
        { yes },
      );
      process.exitCode = await (await import('./upgrade.js')).upgradeFinish(await storeUrls(), { json });
    });
}

/** The same sentences are in docs/backup.md. */
const RUNNING =
  'Stop the front ends first. A worker that has stopped dealing because of the restore may run; stop one that deals.';

const withoutText = (settings: readonly CopySetting[]): string =>
  `This will give up the existing copy of ${settings.join(', ')}; the workers begin a new one. Nothing in Postgres or Redis is lost. But if Postgres has an older state, outcomes that players have seen will be dealt again, which can't be undone.`;

function addRecover(program: Command, { storeUrls, settings }: StoreSettings): void {
  const recover = withYes(
    program
      .command('recover')
      .description('say what happened to the stores and what to do; with an option, do it')
      .helpGroup(GROUP),
  )
    .option('--check', 'report the state of each cell without changing anything', false)
    .option(
      '--rebuild',
      'rebuild every cell whose data in Redis is lost and that no running worker owns',
      false,
    )
    .option(
      '--replace',
      'also rebuild refused cells, whose data belongs to another database or has entries that Postgres lacks. ' +
        'Their data in Redis is discarded',
      false,
    )
    .option(
      '--restored',
      'recover after Postgres was restored to an older state: void all outcomes that players may have seen, rebuild every cell, and suspend all ' +
        `raffles. ${RUNNING} Entries in Redis that Postgres lacks are discarded`,
      false,
    )
    .option(
      '--resume <CELL>',
      'clear the halt of a cell that you have examined (repeatable)',
      (cell: string, cells: readonly string[]) => [...cells, cell],
      [],
    )
    .option(
      '--without <SETTING>',
      'give up a copy (POSITION_FILE or LOG_COPY_DIR) that is missing, unreadable or of another server, if you are certain that Postgres has ' +
        'its newest state. Keeps everything. May run beside the service (repeatable, not with other options)',
      (setting: string, settings: readonly CopySetting[]) => [...settings, copySetting(setting)],
      [] as readonly CopySetting[],
    )
    .addHelpText(
      'after',
      `
Without an option the command changes nothing: it looks at the stores and the copies outside them, says what happened, what each way
out keeps and costs, and recommends one.

Examples:
  spindle recover
  spindle recover --check
  spindle recover --resume 3
  spindle recover --restored
  spindle recover --without POSITION_FILE
Exit status: 0 if all cells are served or can be served, 1 if some can't, or if something must be decided first.`,
    )
    .action(async () => {
      const {
        check,
        rebuild,
        replace,
        restored,
        resume,
        without,
        json = false,
        yes,
      } = recover.optsWithGlobals();
      const { recoverCells, abandonCopies } = await import('./recover.js');
      const { POSITION_FILE: positionFile, LOG_COPY_DIR: logCopy, ...config } = await settings();
      const isChange = replace || restored || resume.length > 0;
      if (without.length > 0) {
        if (check || rebuild || isChange)
          throw new UsageError("--without can't be combined with other options of recover");
        await confirm(withoutText(without), { yes });
        process.exitCode = await abandonCopies((await storeUrls()).databaseUrl, without, {
          positionFile,
          json,
        });
        return;
      }
      if (!check && !rebuild && !isChange) {
        const { adviseOnRecovery } = await import('./recoverAdvice.js');
        process.exitCode = await adviseOnRecovery(await storeUrls(), {
          positionFile,
          logCopy: logCopy ?? 'LOG_COPY_DIR',
          json,
        });
        return;
      }
      if (replace && !check)
        await confirm(
          'This will permanently discard the data of refused cells in Redis and rebuild these cells from the ledger.',
          { yes },
        );
      if (restored && !check && yes !== true) {
        const { restoredText } = await import('./recover.js');
        await confirm(await restoredText(await storeUrls(), positionFile), { yes });
      }
      const options = {
        allowVolatile: config.allowVolatileRedis,
        clockSkewMaxS: config.CLOCK_SKEW_MAX_S,
        positionFile,
        check,
        replace,
        restored,
        resume,
        json,
      };
      process.exitCode = await recoverCells(await storeUrls(), options);
    });
}

/** Adds `settlement verify` to the group `settlement`, which must already exist. */
function addVerify(program: Command, storeUrls: StoreSettings['storeUrls']): void {
  const settlement = program.commands.find((command) => command.name() === 'settlement')!;
  const verify = settlement
    .command('verify')
    .description('recompute all settlement reports and compare them')
    .helpGroup(GROUP)
    .option('--partner <ID>', 'verify only the reports of this partner')
    .option('--archive <DIR>', 'also compare reports of dropped days with the archives in this directory')
    .addHelpText(
      'after',
      `
Checks each report against the rows of the ledger, its hash, the chain from the first report on, and the audit log. The command
only reads, and may run beside the service.
Exit status: 0 if CLEAN; 1 if NOT CLEAN, or if a store does not respond.`,
    )
    .action(async () => {
      const { partner, archive, json = false } = verify.optsWithGlobals();
      const { verifyReports } = await import('./verifyReports.js');
      process.exitCode = await verifyReports(await storeUrls(), { partner, archive, json });
    });
}
