/**
 * Declares the commands that open the stores: `show`, `audit`, `settlement`, `recover`, `upgrade`. Only these
 * commands load the database clients.
 */
import type { Command } from 'commander';
import type { CopySetting } from '../engine/recovery/outsideCopies.store.js';
import { oneOf, type StoreUrls, UsageError } from './command.js';
import { confirm, withYes } from './confirm.js';

export const GROUP = 'On the stores of REDIS_URL and DATABASE_URL, or the embedded ones of DATA_DIR:';

const copySetting = oneOf<CopySetting>({ POSITION_FILE: 'POSITION_FILE', LOG_COPY_DIR: 'LOG_COPY_DIR' });

export interface StoreSettings {
  storeUrls(): Promise<StoreUrls>;
  settings(): Promise<{
    readonly allowVolatileRedis: boolean;
    readonly CLOCK_SKEW_MAX_S: number;
    readonly POSITION_FILE?: string;
    readonly LEDGER_KEEP_DAYS: number;
  }>;
}

export function addStoreCommands(program: Command, { storeUrls, settings }: StoreSettings): void {
  const add = (parent: Command, usage: string, description: string): Command =>
    parent.command(usage).description(description).helpGroup(GROUP);

  const show = add(program, 'show', 'what Redis holds packed');
  const shown = (usage: string, description: string): Command => {
    const command = add(show, usage, description).option('--limit <N>', 'entries at the most (20)');
    return command.action(async () => {
      const { limit, json = false } = command.optsWithGlobals();
      const words = [command.name(), ...command.args];
      process.exitCode = await (await import('./show.js')).show(await storeUrls(), words, { limit, json });
    });
  };
  shown('player <PARTNER_ID> <PLAYER_ID>', 'balance and newest entry of a player');
  shown('game <GAME_ID>', 'counter and queue of a game');
  shown('outbox <CELL>', 'entries that are not in Postgres yet');
  shown('lost', 'acknowledged spins that were lost with a primary (ACK=redis), newest first');

  const audit = add(program, 'audit', 'check the stores against each other')
    .option('--redraw', 'draw every block again from its seed, too', false)
    .option('--limit <N>', 'violations listed of each check (100)')
    .addHelpText(
      'after',
      `
Checks balances, indices, outcomes, blocks, totals, requestIds and cursors of both stores; reads only, and may run
beside the service.
Exit status: 0 CLEAN; 1 NOT CLEAN, NOT FINISHED where a store does not answer, or NOT COMPLETE where a partner moved between
cells meanwhile.`,
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
  const group = program
    .command('upgrade')
    .description('versions that run, and the end of an upgrade')
    .helpGroup(GROUP);
  const status = group
    .command('status')
    .description('which versions run, which format is written, what is next')
    .addHelpText('after', '\nExit status: 0 no upgrade is open; 1 one is.')
    .action(async () => {
      const { upgradeStatus } = await import('./upgrade.js');
      const { json = false } = status.optsWithGlobals();
      process.exitCode = await upgradeStatus(await storeUrls(), { json });
    });
  const finish = withYes(
    group.command('finish').description('write the new format; the older version is refused from then on'),
  )
    .addHelpText(
      'after',
      '\nRefused while a process runs that does not read the new format. There is no way back afterwards.\nExit status: 0 done; 1 refused.',
    )
    .action(async () => {
      const { json = false, yes } = finish.optsWithGlobals();
      await confirm('The older version can not be started again on these stores afterwards.', { yes });
      process.exitCode = await (await import('./upgrade.js')).upgradeFinish(await storeUrls(), { json });
    });
}

const withoutText = (settings: readonly CopySetting[]): string =>
  `Nothing tells by ${settings.join(', ')} any more whether Postgres is of an older state. If it is, outcomes that were shown are dealt again.`;

function addRecover(program: Command, { storeUrls, settings }: StoreSettings): void {
  const recover = withYes(
    program.command('recover').description('make Redis what the ledger knows').helpGroup(GROUP),
  )
    .option('--check', 'look only', false)
    .option(
      '--replace',
      "rebuild also what no machine should decide about (another database's Redis; a Postgres that lacks what it had): " +
        'what Redis holds of it is given up',
      false,
    )
    .option(
      '--restored',
      'Postgres was restored to an older state: rebuild every cell, deal above all that may have been shown, and suspend the ' +
        'raffles. Run it with all processes stopped; what Redis holds and Postgres lacks is given up',
      false,
    )
    .option(
      '--resume <CELL>',
      'a halted cell that was looked into goes on; may be given again',
      (cell: string, cells: readonly string[]) => [...cells, cell],
      [],
    )
    .option(
      '--without <SETTING>',
      'POSITION_FILE or LOG_COPY_DIR: go on without the copy that Postgres has on record, where Postgres is known not to be of an older ' +
        'state; may be given again. Nothing else is done then',
      (setting: string, settings: readonly CopySetting[]) => [...settings, copySetting(setting)],
      [] as readonly CopySetting[],
    )
    .addHelpText(
      'after',
      `
Rebuilds every cell that has lost what the ledger knows and that no running worker serves.

Examples:
  spindle recover --check
  spindle recover --resume 3
  spindle recover --restored
  spindle recover --without POSITION_FILE
Exit status: 0 all cells are served, or can be; 1 some can't.`,
    )
    .action(async () => {
      const { check, replace, restored, resume, without, json = false, yes } = recover.optsWithGlobals();
      const { recoverCells, abandonCopies } = await import('./recover.js');
      if (without.length > 0) {
        if (check || replace || restored || resume.length > 0)
          throw new UsageError('--without goes with no other option of recover');
        await confirm(withoutText(without), { yes });
        process.exitCode = await abandonCopies((await storeUrls()).databaseUrl, without, json);
        return;
      }
      if (replace && !check) await confirm('What Redis holds of refused cells is given up.', { yes });
      if (restored && !check) {
        const what =
          'What Redis holds and Postgres lacks is given up, and every raffle that is not closed is suspended.';
        await confirm(what, { yes });
      }
      const {
        allowVolatileRedis,
        CLOCK_SKEW_MAX_S: clockSkewMaxS,
        POSITION_FILE: positionFile,
      } = await settings();
      const options = {
        allowVolatile: allowVolatileRedis,
        clockSkewMaxS,
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
    .description('recompute every settlement report')
    .helpGroup(GROUP)
    .option('--partner <ID>', 'the reports of this partner only')
    .option(
      '--archive <DIR>',
      'check reports of dropped days against their archives, not only what is on record',
    )
    .addHelpText(
      'after',
      `
Checks each report against the ledger's rows, its hash, the chain from the first report on, and the audit log; reads only,
and may run beside the service.
Exit status: 0 CLEAN, 1 NOT CLEAN, or a store that does not answer.`,
    )
    .action(async () => {
      const { partner, archive, json = false } = verify.optsWithGlobals();
      const { verifyReports } = await import('./verifyReports.js');
      process.exitCode = await verifyReports(await storeUrls(), { partner, archive, json });
    });
}
