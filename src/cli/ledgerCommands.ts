/** Declares the commands of the group `ledger`. */
import type { Command } from 'commander';
import { confirm, withYes } from './confirm.js';
import { GROUP, type StoreSettings } from './storeCommands.js';

export function addLedgerCommands(program: Command, { storeUrls, settings }: StoreSettings): void {
  const ledger = program.command('ledger').description('days of the ledger').helpGroup(GROUP);
  const days = ledger.command('days').description('each day with its state, entries and bytes');
  days.action(async () => {
    const { json = false } = days.optsWithGlobals();
    process.exitCode = await (await import('./ledger.js')).listDays(await storeUrls(), { json });
  });

  const archive = ledger
    .command('archive')
    .description('write a day to Parquet files, oldest day first')
    .requiredOption('--day <DAY>', 'YYYY-MM-DD')
    .requiredOption('--to <DIR>', 'the files lie in DIR/DAY')
    .option('--replace', 'keep another archive of the day that DIR has as DIR/DAY.replaced-…', false)
    .addHelpText(
      'after',
      `
Writes ledger, rounds, voids and large wins with a manifest, reads them back and compares them with the database. Repeated, it
gives the same bytes; where DIR has another archive of the day, or archives of another dataset, it refuses. The service goes on meanwhile; Postgres sorts the day and needs its size in temporary disk space.`,
    )
    .action(async () => {
      const { day, to, replace: isToReplace, json = false } = archive.optsWithGlobals();
      const clockSkewMaxMs = (await settings()).CLOCK_SKEW_MAX_S * 1000;
      const options = { day, to, clockSkewMaxMs, isToReplace, json };
      process.exitCode = await (await import('./ledger.js')).archive(await storeUrls(), options);
    });

  const verify = ledger
    .command('verify')
    .description('prove archives: chain, hashes, totals')
    .requiredOption('--from <DIR>', 'the directory of the archives')
    .option('--stores', 'also against what the database has on record', false)
    .addHelpText(
      'after',
      `
Needs no store without --stores. Only the record tells whether the newest manifest was replaced: no later one names it.
Exit status: 0 WHOLE, 1 NOT WHOLE.`,
    )
    .action(async () => {
      const { from, stores, json = false } = verify.optsWithGlobals();
      const database = stores ? storeUrls : undefined;
      process.exitCode = await (await import('./ledger.js')).verify(database, { from, json });
    });

  const drop = withYes(ledger.command('drop').description('drop a day whose archive verifies, oldest first'))
    .requiredOption('--day <DAY>', 'YYYY-MM-DD')
    .requiredOption('--from <DIR>', 'the directory of the archives')
    .action(async () => {
      const { day, from, yes, json = false } = drop.optsWithGlobals();
      const { drop: run, dayGiven } = await import('./ledger.js');
      await confirm(`The ledger of ${dayGiven(day)} leaves Postgres; only its archive has it then.`, { yes });
      const { LEDGER_KEEP_DAYS: keepDays } = await settings();
      process.exitCode = await run(await storeUrls(), { day, from, keepDays, json });
    });
}
