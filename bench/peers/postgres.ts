/**
 * The plain design without Redis, to compare with: Fastify, and a Postgres transaction a spin. Its guarantees are the
 * service's: acknowledged once it is committed (`synchronous_commit` on), one result per requestId, a window that is
 * counted exactly, outcomes made beforehand and dealt in order, none skipped, a balance and a row of the ledger for each.
 *
 * It is made well: the whole transaction is one call of a function, prepared, in one round trip (postgresSpin.sql); rows
 * that are written again and again are updated in place. Where a choice was open, the cheaper one was taken, as in fastify.ts.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import {
  type Dealt,
  drawOutcomes,
  GAME_ID,
  LIMIT,
  OPENING_MICROS,
  type SpinBody,
  serve,
  WINDOW_SECONDS,
  wagerMicros,
} from './plainServer.js';

const PARTNER_ID = 1;
/**
 * On two cores the fastest of those tried: 2 did 2,870 spins/s, 4 did 2,540, 8 did 2,100, 16 did 1,720. Transactions wait for
 * each other at the game's counter, and more of them only wait with more processes.
 */
const CONNECTIONS = 2;
const READY_MIN = 100_000;
const INSERTED_AT_ONCE = 5000;
const REFILL_MS = 200;
const UNIQUE_VIOLATION = '23505';

const { DATABASE_URL, PEERS_DIR } = process.env as Record<string, string>;

// A row's numbers are read as numbers: all of them are within the safe range.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
const pool = new pg.Pool({ connectionString: DATABASE_URL!, max: CONNECTIONS });
pool.on('error', console.error);

const SPIN = {
  name: 'spin',
  text: 'SELECT status, used, spin_id, outcome, balance_micros FROM spin($1, $2, $3, $4, $5, $6, $7, $8)',
};
interface Row {
  readonly status: Dealt['status'];
  readonly used: number;
  readonly spin_id: number;
  readonly outcome: number;
  readonly balance_micros: number;
}

async function deal(body: SpinBody): Promise<Dealt> {
  const minute = Math.floor(Date.now() / 1000 / WINDOW_SECONDS);
  const values = [
    PARTNER_ID,
    LIMIT,
    minute,
    GAME_ID,
    body.playerId,
    wagerMicros,
    OPENING_MICROS,
    body.requestId ?? null,
  ];
  for (;;) {
    try {
      const { rows } = await pool.query<Row>({ ...SPIN, values });
      const { status, used, spin_id, outcome, balance_micros } = rows[0]!;
      if (status !== 'dealt') return { status, used };
      return { status, used, spinId: String(spin_id), code: outcome, balanceMicros: balance_micros };
    } catch (error) {
      // The same requestId came twice at once: the other one is committed, and is found now.
      if ((error as { code?: string }).code !== UNIQUE_VIOLATION) throw error;
    }
  }
}

let made = 0;
/** Keeps outcomes ready. */
async function refill(): Promise<void> {
  const { rows } = await pool.query<{ next_index: number }>(
    'SELECT next_index FROM games WHERE game_id = $1',
    [GAME_ID],
  );
  while (made - rows[0]!.next_index < READY_MIN) {
    const drawn = drawOutcomes(INSERTED_AT_ONCE);
    await pool.query(
      `INSERT INTO outcomes SELECT $1, $2::bigint + ordinality - 1, outcome, payout
       FROM unnest($3::int[], $4::bigint[]) WITH ORDINALITY AS t(outcome, payout, ordinality)`,
      [GAME_ID, made, drawn.map(({ code }) => code), drawn.map(({ payoutMicros }) => payoutMicros)],
    );
    made += INSERTED_AT_ONCE;
  }
}

await pool.query(readFileSync(join(PEERS_DIR!, 'postgresSpin.sql'), 'utf8'));
await pool.query('INSERT INTO games (game_id) VALUES ($1)', [GAME_ID]);
await refill();
const refillLater = (): void =>
  void setTimeout(() => refill().catch(console.error).finally(refillLater), REFILL_MS);
refillLater();
await serve(deal);
