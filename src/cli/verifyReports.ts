/**
 * `spindle settlement verify`: recomputes the reports from the ledger and prints the differences
 * (src/books/settlement/verify.ts).
 */

import { type Difference, type Verification, verifySettlements } from '../books/settlement/verify.js';
import { isPartner } from '../engine/catalog/partners.store.js';
import { NotFoundError, type StoreUrls, whole } from './command.js';
import { openPostgres } from './openPostgres.store.js';
import { Progress } from './progress.js';

/** @returns the exit status: 0 if there are no differences, 1 if there are */
export async function verifyReports(
  { databaseUrl }: Pick<StoreUrls, 'databaseUrl'>,
  options: {
    readonly partner: string | undefined;
    readonly archive: string | undefined;
    readonly json: boolean;
  },
): Promise<number> {
  const partnerId = options.partner === undefined ? undefined : whole(options.partner, '--partner');
  const sql = openPostgres(databaseUrl, 'settlement', 1);
  const progress = new Progress(process.stderr);
  try {
    if (partnerId !== undefined) {
      if (!(await isPartner(sql, partnerId))) throw new NotFoundError(`Partner ${partnerId} does not exist`);
    }
    const { archive } = options;
    const verification = await verifySettlements(sql, partnerId, {
      onProgress: (days, total) => progress.show('days', days, total),
      ...(archive !== undefined && {
        archive: (await import('../books/archive/readArchive.js')).archiveTotals(archive),
      }),
    });
    progress.end();
    process.stdout.write(options.json ? `${JSON.stringify(verification)}\n` : plain(verification));
    return verification.differences.length === 0 ? 0 : 1;
  } finally {
    progress.end();
    // A connection to a hanging server never closes, so the program exits without waiting for it (cli.ts).
    sql.end().catch(() => {});
  }
}

function plain({ reports, partners, days, rows, seconds, differences }: Verification): string {
  const many = (count: number): string => count.toLocaleString('en');
  const work = `${many(reports)} reports of ${many(partners)} partners over ${many(days)} days, ${many(rows)} ledger rows, ${seconds.toFixed(1)} s`;
  const verdict = differences.length === 0 ? 'CLEAN' : `NOT CLEAN: ${many(differences.length)} differences`;
  return [...differences.map(lineOf), `${verdict}: ${work}`, ''].join('\n');
}

function lineOf({ partnerId, date, revision, problem, expected, found }: Difference): string {
  const which = `partner ${partnerId} ${date}${revision === undefined ? '' : ` revision ${revision}`}`;
  return `${which}: ${problem}: expected ${expected ?? 'nothing'}, found ${found ?? 'nothing'}`;
}
