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
    .description('show the size, root, keys and witnesses of the log, and whether it is halted')
    .addHelpText('after', '\nExit status: 0 if the log is running, 1 if it is halted.')
    .action(async () => {
      const { json = false } = show.optsWithGlobals();
      process.exitCode = await (await import('./publicLog.js')).showLog(await storeUrls(), await settings(), {
        json,
      });
    });
  const check = log
    .command('check')
    .description('check that the log contains the tree of a signed checkpoint')
    .requiredOption('--note <FILE>', 'file with the complete checkpoint note')
    .addHelpText(
      'after',
      `
If the log signed the checkpoint but does not contain its tree, this command halts the log. No records are then appended, and
the next start deals nothing until you import a copy or begin a new log.
Exit status: 0 if contained; 1 if not, and the log is halted; 2 if the file is not a checkpoint of this log.`,
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
    log.command('import').description('import records that Postgres has lost from a copy of the log'),
  )
    .requiredOption(
      '--from <DIR_OR_URL>',
      'folder or URL of the copy: LOG_COPY_DIR, a mirror, or a published copy',
    )
    .addHelpText(
      'after',
      `
For a Postgres that was restored to an older state. The newest checkpoint of the copy proves each record. Entries of games whose
openings are lost are declared lost in the log. Open outcomes are voided as with «recover --restored», and raffles are suspended.
The service may run meanwhile; it deals nothing until the import is done, then it resumes. If the command is interrupted, run it
again.
Exit status: 0 if done; 1 if there is nothing to import or the import is impossible.

Examples:
  spindle log import --from /var/lib/spindle/log
  spindle log import --from https://mirror.example/log`,
    )
    .action(async () => {
      const { from, yes, json = false } = taken.optsWithGlobals();
      if (yes !== true) {
        const { restoredText } = await import('./recover.js');
        const plan = await restoredText(await storeUrls(), (await settings()).POSITION_FILE);
        await confirm(
          `This will import the lost records of the public log, and declare the lost outcomes.\n${plan}`,
          { yes },
        );
      }
      const { importLog } = await import('./publicLog.js');
      process.exitCode = await importLog(await storeUrls(), await settings(), { from, json });
    });
}

function addBegin(log: Command, { storeUrls, settings }: Stores): void {
  const begin = withYes(log.command('begin').description("begin a new log if this log can't continue"))
    .requiredOption('--origin <NAME>', 'name of the new log; no earlier log of this database may have had it')
    .requiredOption('--reason <TEXT>', 'reason, for the audit log')
    .addHelpText(
      'after',
      `
The first record of the new log names the old log, whose files stay available at /log/<SHA-256 of its origin>/. Open blocks are
logged again and marked as late. If dealing is stopped because Postgres has an older state, open outcomes are voided as with
«recover --restored». If LOG_KEY or LOG_ORIGIN are set, set new values for this command and then for all workers.`,
    )
    .action(async () => {
      const { origin, reason, yes, json = false } = begin.optsWithGlobals();
      await confirm(
        'This will end the current public log permanently and begin a new one. All verifiers will need the key of the new log.',
        { yes },
      );
      const { runBeginLog } = await import('./publicLog.js');
      process.exitCode = await runBeginLog(await storeUrls(), await settings(), { origin, reason, json });
    });
}
