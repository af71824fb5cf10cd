/**
 * The ledger of the baselines that have an outbox. It writes the entries of the outbox to Postgres, rows and
 * cursor in one transaction, and trims them after the commit.
 */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Redis } from 'ioredis';
import type { Sql } from 'postgres';

const ENTRIES_MAX = 5000;
const BLOCK_MS = 200;
/** Minimum time between the starts of two flushes in ms, as in the service. */
const INTERVAL_MS = 40;

/** A stream entry. Its fields are those of the script, in the same order: name, value, name, value, … */
type Entry = [id: string, fields: string[]];
/** Formats an entry as a line for COPY. The fields are in the order of the columns of `spins`. */
type CopyLine = (entry: Entry) => string;

export async function createLedger(sql: Sql): Promise<void> {
  await sql`
    CREATE TABLE spins (
      at_ms bigint NOT NULL, seq integer NOT NULL, game_id integer NOT NULL, player_id text NOT NULL,
      outcome integer NOT NULL, wager_micros bigint NOT NULL, payout_micros bigint NOT NULL,
      balance_micros bigint NOT NULL, request_id text, PRIMARY KEY (at_ms, seq))`;
  await sql`CREATE INDEX ON spins (player_id, at_ms)`;
  await sql`CREATE TABLE outbox_cursor (only_row boolean PRIMARY KEY DEFAULT true, stream_id text NOT NULL)`;
  await sql`INSERT INTO outbox_cursor (stream_id) VALUES ('0-0')`;
}

/** Flushes the outbox in an endless loop. Entries that are not committed stay in the outbox. */
export async function flushForever(redisUrl: string, sql: Sql, line: CopyLine = copyLine): Promise<never> {
  // The flusher has its own Redis connection, because its blocking reads would delay other commands.
  const redis = new Redis(redisUrl, { protocol: 2 });
  const [row] = await sql<{ stream_id: string }[]>`SELECT stream_id FROM outbox_cursor`;
  let cursor = row!.stream_id;
  for (;;) {
    const startedMs = performance.now();
    const answer = await redis.xread('COUNT', ENTRIES_MAX, 'BLOCK', BLOCK_MS, 'STREAMS', 'outbox', cursor);
    const entries = (answer?.[0]?.[1] ?? []) as Entry[];
    if (entries.length > 0) {
      cursor = await book(sql, entries, cursor, line);
      await redis.xtrim('outbox', 'MINID', idAfter(cursor));
    }
    const restMs = INTERVAL_MS - (performance.now() - startedMs);
    if (restMs > 0) await new Promise((resolve) => setTimeout(resolve, restMs));
  }
}

async function book(sql: Sql, entries: readonly Entry[], from: string, line: CopyLine): Promise<string> {
  const to = entries.at(-1)![0];
  await sql.begin(async (tx) => {
    const moved = await tx`UPDATE outbox_cursor SET stream_id = ${to} WHERE stream_id = ${from}`;
    if (moved.count !== 1) throw new Error(`The cursor is not at entry ${from}`);
    const copy = await tx`
      COPY spins (at_ms, seq, game_id, player_id, outcome, wager_micros, payout_micros, balance_micros, request_id)
      FROM STDIN`.writable();
    await pipeline(Readable.from([entries.map(line).join('')]), copy);
  });
  return to;
}

function copyLine([id, fields]: Entry): string {
  const [, game, , player, , outcome, , wager, , payout, , balance, , request] = fields as string[];
  const requestId = request === '' ? '\\N' : escaped(request!);
  return `${id.replace('-', '\t')}\t${game}\t${escaped(player!)}\t${outcome}\t${wager}\t${payout}\t${balance}\t${requestId}\n`;
}

/** Escapes text for the text format of COPY (PostgreSQL documentation, "COPY", File Formats). */
const escaped = (text: string): string =>
  /[\\\t\n\r]/.test(text)
    ? text.replace(/[\\\t\n\r]/g, (c) => ({ '\\': '\\\\', '\t': '\\t', '\n': '\\n' })[c] ?? '\\r')
    : text;

function idAfter(id: string): string {
  const [ms, seq] = id.split('-');
  return `${ms}-${Number(seq) + 1}`;
}
