/**
 * Defines the format in which this folder stores the Redis and Postgres data of version 1.4.0, and restores
 * the data into empty servers.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { gunzipSync } from 'node:zlib';
import type { Redis } from 'ioredis';
import type { Client } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';

/**
 * Environment with which version 1.4.0 made the stores and with which they must be opened. Request ids bind
 * for the longest permitted time.
 */
export const HELD_SETTINGS = { CELLS: '2', IDEMPOTENCY_TTL_S: '2592000' };

/** Format in which version 1.4.0 wrote the stores. */
export const HELD_FORMAT = 1;

export interface HeldStores {
  /** Keys of Redis with the base64 text of their DUMP. No key expires. */
  readonly redis: readonly (readonly [key: string, dump: string])[];
  readonly postgres: {
    readonly schema: readonly string[];
    /** Rows of each table in the text format of COPY. */
    readonly tables: readonly {
      readonly name: string;
      readonly columns: readonly string[];
      readonly rows: string;
    }[];
    readonly sequences: readonly { readonly name: string; readonly value: string }[];
  };
}

export interface SpinBody {
  readonly gameId: number;
  readonly playerId: string;
  readonly wagerUsd: number;
  readonly requestId: string;
}

/** A spin that version 1.4.0 answered with 200, and the body of the response. */
export interface Sent {
  readonly body: SpinBody;
  readonly text: string;
}

/** Requests to version 1.4.0 and its responses. */
export interface Answers {
  readonly apiKey: string;
  readonly partnerId: number;
  readonly gameId: number;
  readonly raffleId: number;
  readonly communalId: number;
  readonly tableId: number;
  readonly wagerUsd: number;
  readonly poolTickets: number;
  readonly prizes: readonly { readonly prizeName: string; readonly count: number }[];
  readonly sent: readonly Sent[];
  /** Blackjack rounds with the bodies of the responses to their deals. */
  readonly deals: readonly { readonly playerId: string; readonly requestId: string; readonly text: string }[];
  readonly openRounds: number;
  /**
   * A ticket that was dealt but whose response was never sent, because no worker committed entries at that
   * time.
   */
  readonly unconfirmed: SpinBody;
  readonly adjustments: readonly { readonly path: string; readonly body: object; readonly text: string }[];
  readonly players: readonly { readonly path: string; readonly text: string }[];
  readonly pool: string;
  readonly webhooks: string;
  readonly outboxEntries: number;
}

const readHeld = async (file: string): Promise<unknown> =>
  JSON.parse(gunzipSync(await readFile(join(import.meta.dirname, file))).toString());

export const readAnswers = async (): Promise<Answers> => (await readHeld('answers.json.gz')) as Answers;

/**
 * Binding time of the request ids in the recorded stores. It is 50 years, so that the test passes in any
 * year.
 */
const BINDING_SECONDS = 50 * 365 * 86_400;

/** Fills an empty Redis database and an empty Postgres database with the recorded stores. */
export async function restoreHeld(redis: Redis, pg: Client): Promise<void> {
  const held = (await readHeld('stores.json.gz')) as HeldStores;
  for (const [key, dump] of held.redis) await redis.restore(key, 0, Buffer.from(dump, 'base64'));
  for (const statements of held.postgres.schema) await pg.query(statements);
  // Foreign keys are disabled because the migrations have inserted rows and the tables are not in the order
  // of their foreign keys.
  await pg.query("SET session_replication_role = 'replica'");
  for (const { name, columns, rows } of held.postgres.tables) {
    await pg.query(`DELETE FROM ${name}`);
    const list = columns.map((column) => `"${column}"`).join();
    await pipeline(Readable.from(Buffer.from(rows)), pg.query(copyFrom(`COPY ${name} (${list}) FROM STDIN`)));
  }
  for (const { name, value } of held.postgres.sequences)
    await pg.query('SELECT setval($1::regclass, $2::bigint)', [name, value]);
  await pg.query('UPDATE request_id_times SET seconds = $1', [BINDING_SECONDS]);
}
