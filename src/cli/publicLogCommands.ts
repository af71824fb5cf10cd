/** Declares the commands of the group `log`. */
import type { Command } from 'commander';
import { confirm, withYes } from './confirm.js';
import type { LogSettings } from './publicLog.js';
import { GROUP, type StoreSettings } from './storeCommands.js';

export function addLogCommands(
  program: Command,
  { storeUrls, settings }: Pick<StoreSettings, 'storeUrls'> & { settings(): Promise<LogSettings> },
): void {
  const log = program.command('log').description('the public log').helpGroup(GROUP);
  const show = log
    .command('show')
    .description('its size, root, keys and witnesses, and whether it is halted')
    .addHelpText('after', '\nExit status: 0 it goes on; 1 it is halted.')
    .action(async () => {
      const { json = false } = show.optsWithGlobals();
      process.exitCode = await (await import('./publicLog.js')).showLog(await storeUrls(), await settings(), {
        json,
      });
    });
  const check = log
    .command('check')
    .description('whether the log contains the tree of a signed checkpoint')
    .requiredOption('--note <FILE>', 'the checkpoint, as it was shown')
    .addHelpText(
      'after',
      `
A checkpoint with the log's own signature whose tree the log does not contain halts it: nothing is appended any more, and the next start
deals nothing until the log is imported or another one begun.
Exit status: 0 contained; 1 not, and the log is halted; 2 the file is no checkpoint of this log.`,
    )
    .action(async () => {
      const { note, json = false } = check.optsWithGlobals();
      const { checkNote } = await import('./publicLog.js');
      process.exitCode = await checkNote(await storeUrls(), await settings(), { note, json });
    });
  addImport(log, { storeUrls, settings });
  addBegin(log, { storeUrls, settings });
}

type Stores = Parameters<typeof addLogCommands>[1];

function addImport(log: Command, { storeUrls, settings }: Stores): void {
  const taken = withYes(
    log.command('import').description('take over records that Postgres has lost, of a copy of the log'),
  )
    .requiredOption('--from <DIR_OR_URL>', 'LOG_COPY_DIR, a mirror, or where a copy is shown')
    .addHelpText(
      'after',
      `
For a Postgres that was restored to an older state. Each record is proven by the copy's newest checkpoint; the numbers of games that are
lost are declared so in the log; what is open is given up as by «recover --restored», and raffles are suspended. Runs beside the
service, which deals nothing before and goes on by itself. Ended anywhere, it is run again.
Exit status: 0 done; 1 there is nothing to import, or it can't be.

Examples:
  spindle log import --from /var/lib/spindle/log
  spindle log import --from https://mirror.example/log`,
    )
    .action(async () => {
      const { from, yes, json = false } = taken.optsWithGlobals();
      const what =
        'What is sealed and open is given up, what Redis holds and Postgres lacks, too, and raffles that are not closed are suspended.';
      await confirm(what, { yes });
      const { importLog } = await import('./publicLog.js');
      process.exitCode = await importLog(await storeUrls(), await settings(), { from, json });
    });
}

function addBegin(log: Command, { storeUrls, settings }: Stores): void {
  const begin = withYes(log.command('begin').description('begin another log, where this one can not go on'))
    .requiredOption('--origin <NAME>', 'its name, which no log of this database had before')
    .requiredOption('--reason <TEXT>', 'why, for the audit log')
    .addHelpText(
      'after',
      `
The first record of the new log names the old one, whose files stay below /log/<SHA-256 of its origin>/. What is open is logged again, as
late; where nothing is dealt because Postgres is of an older state, it is given up as by «recover --restored». Where LOG_KEY or
LOG_ORIGIN are set, give the command and then all workers new ones.`,
    )
    .action(async () => {
      const { origin, reason, yes, json = false } = begin.optsWithGlobals();
      await confirm('The log ends here, and everybody who verifies needs the key of the new one.', { yes });
      const { runBeginLog } = await import('./publicLog.js');
      process.exitCode = await runBeginLog(await storeUrls(), await settings(), { origin, reason, json });
    });
}
