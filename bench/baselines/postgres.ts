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
import postgres from 'postgres';
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
 * On two cores the fastest of those tried: of this driver, which sends one query after the other without waiting, 1 and 2 did
 * 3,300 spins/s, 8 did 2,900; of pg, which waits, 2 did 2,870, 4 did 2,540, 16 did 1,720. Transactions wait for each other at
 * the game's counter, and more of them only wait with more processes.
 */
const CONNECTIONS = 2;
const READY_MIN = 100_000;
const INSERTED_AT_ONCE = 5000;
const REFILL_MS = 200;
const UNIQUE_VIOLATION = '23505';

const { DATABASE_URL, BASELINES_DIR } = process.env as Record<string, string>;

const BIGINT = 20;
const sql = postgres(DATABASE_URL!, {
  max: CONNECTIONS,
  onnotice: () => {},
  // A row's numbers are read as numbers: all of them are within the safe range.
  types: { bigint: { to: BIGINT, from: [BIGINT], parse: Number, serialize: String } },
});

interface Row {
  readonly status: Dealt['status'];
  readonly used: number;
  readonly spin_id: number;
  readonly outcome: number;
  readonly balance_micros: number;
}

async function deal({ playerId, requestId }: SpinBody): Promise<Dealt> {
  const minute = Math.floor(Date.now() / 1000 / WINDOW_SECONDS);
  for (;;) {
    try {
      const [row] = await sql<Row[]>`
        SELECT status, used, spin_id, outcome, balance_micros FROM spin(${PARTNER_ID}, ${LIMIT}, ${minute}, ${GAME_ID},
          ${playerId}, ${wagerMicros}, ${OPENING_MICROS}, ${requestId ?? null})`;
      const { status, used, spin_id, outcome, balance_micros } = row!;
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
  const [game] = await sql<{ next_index: number }[]>`SELECT next_index FROM games WHERE game_id = ${GAME_ID}`;
  while (made - game!.next_index < READY_MIN) {
    const drawn = drawOutcomes(INSERTED_AT_ONCE);
    await sql`
      INSERT INTO outcomes SELECT ${GAME_ID}, ${made}::bigint + ordinality - 1, outcome, payout
      FROM unnest(${drawn.map(({ code }) => code)}::int[], ${drawn.map(({ payoutMicros }) => payoutMicros)}::bigint[])
        WITH ORDINALITY AS t(outcome, payout, ordinality)`;
    made += INSERTED_AT_ONCE;
  }
}

await sql.unsafe(readFileSync(join(BASELINES_DIR!, 'postgresSpin.sql'), 'utf8'));
await sql`INSERT INTO games (game_id) VALUES (${GAME_ID})`;
await refill();
const refillLater = (): void =>
  void setTimeout(() => refill().catch(console.error).finally(refillLater), REFILL_MS);
refillLater();
await serve(deal);
