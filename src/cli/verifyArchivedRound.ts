/** `spindle verify-round --archive`: proves a round of an archived day from its archive and the database. */
import { archivedRound } from '../books/archive/archivedRound.js';
import { SpinIds } from '../domain/spinId.js';
import { installation } from '../engine/recovery/installation.store.js';
import { type StoreUrls, UsageError } from './command.js';
import { openPostgres } from './openPostgres.store.js';
import { printable } from './output.js';
import { exchanged, publishedOf, told } from './verifyRound.js';

export interface ArchivedRoundOptions {
  /** Folder of the archives. */
  readonly archive: string;
  readonly commitment?: string;
  readonly json?: boolean;
}

/** @returns the exit status: 0 if proven, 1 if not */
export async function verifyArchivedRound(
  { databaseUrl }: Pick<StoreUrls, 'databaseUrl'>,
  roundId: string,
  options: ArchivedRoundOptions,
): Promise<number> {
  const published = publishedOf(options);
  const sql = openPostgres(databaseUrl, 'verify', 2);
  try {
    const named = new SpinIds((await installation(sql)).spinIdKey).decode(roundId);
    if (named === undefined) throw new UsageError(`${printable(roundId)} is not the id of a round`);
    const found = await archivedRound(sql, options.archive, { dealId: named.entryId, roundId });
    const say = { json: options.json, published };
    if (!('record' in found)) return told(found, undefined, say);
    const { record, commitment, faults } = found;
    const other =
      published === undefined || published === commitment ? [] : [exchanged(published, commitment)];
    const { gameId, shoeIndex: index, moves } = record;
    return told([...other, ...faults], { roundId, gameId, index, actions: moves.length, commitment }, say);
  } finally {
    // A connection to a hanging server never closes, so the program exits without waiting for it (cli.ts).
    sql.end().catch(() => {});
  }
}
