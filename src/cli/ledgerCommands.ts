/** Declares the commands of the group `ledger`. */
import type { Command } from 'commander';
import { confirm, withYes } from './confirm.js';
import { GROUP, type StoreSettings } from './storeCommands.js';

export function addLedgerCommands(program: Command, { storeUrls, settings }: StoreSettings): void {
  const ledger = program.command('ledger').description('days of the ledger').helpGroup(GROUP);
  const days = ledger.command('days').description('list the days with their state, entries and bytes');
  days.action(async () => {
    const { json = false } = days.optsWithGlobals();
    process.exitCode = await (await import('./ledger.js')).listDays(await storeUrls(), { json });
  });

  const archive = ledger
    .command('archive')
    .description('write a day to Parquet files; the oldest day comes first')
    .requiredOption('--day <DAY>', 'UTC day, YYYY-MM-DD')
    .requiredOption('--to <DIR>', 'directory of the archives; the files are written to DIR/DAY')
    .option(
      '--replace',
      'replace a different archive of the day in DIR, and keep it as DIR/DAY.replaced-…',
      false,
    )
    .addHelpText(
      'after',
      `
Writes the ledger, rounds, voids and large wins of the day with a manifest, reads the files back and compares them with the
database. A repetition gives the same bytes. The command refuses a DIR with a different archive of the day, or with archives of
another database. The service keeps running. Postgres sorts the day, and needs the size of the day as temporary disk space.`,
    )
    .action(async () => {
      const { day, to, replace: isToReplace, json = false } = archive.optsWithGlobals();
      const clockSkewMaxMs = (await settings()).CLOCK_SKEW_MAX_S * 1000;
      const options = { day, to, clockSkewMaxMs, isToReplace, json };
      process.exitCode = await (await import('./ledger.js')).archive(await storeUrls(), options);
    });

  const verify = ledger
    .command('verify')
    .description('verify the chain, hashes and totals of archives')
    .requiredOption('--from <DIR>', 'the directory of the archives')
    .option('--stores', 'also compare the archives with the records in the database', false)
    .addHelpText(
      'after',
      `
Without --stores the command needs no store. With --stores it also detects a replaced newest manifest, which no later
manifest names.
Exit status: 0 if WHOLE, 1 if NOT WHOLE.`,
    )
    .action(async () => {
      const { from, stores, json = false } = verify.optsWithGlobals();
      const database = stores ? storeUrls : undefined;
      process.exitCode = await (await import('./ledger.js')).verify(database, { from, json });
    });

  const drop = withYes(
    ledger
      .command('drop')
      .description('drop a day from Postgres after verifying its archive; the oldest day comes first'),
  )
    .requiredOption('--day <DAY>', 'UTC day, YYYY-MM-DD')
    .requiredOption('--from <DIR>', 'the directory of the archives')
    .action(async () => {
      const { day, from, yes, json = false } = drop.optsWithGlobals();
      const { drop: run, dayGiven } = await import('./ledger.js');
      await confirm(
        `This will delete the ledger of ${dayGiven(day)} from Postgres permanently. After that, only the archive contains it.`,
        { yes },
      );
      const { LEDGER_KEEP_DAYS: keepDays } = await settings();
      process.exitCode = await run(await storeUrls(), { day, from, keepDays, json });
    });
}
