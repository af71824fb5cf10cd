/**
 * Kills the worker by SIGKILL at each failpoint. The next worker must continue without losing or repeating
 * anything.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { outboxKey, playerField, playersKey } from '../../../src/engine/redis/keys.js';
import { FAILPOINTS, type Failpoint } from '../../../src/platform/failpoints.js';
import { world } from '../../setup/world.js';
import { booksHold } from '../../support/books.js';
import type { TestPartner } from '../../support/client.js';
import { auditFindings, auditReport } from '../../support/communal.js';
import { IS_WHOLE } from '../../support/root.js';
import { environment, spawnService, startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const WAGER = 0.25;
const PLAYERS = 3;

const { stores, service: front, sql, redis } = world({ ROLES: 'http' });
/** The games are in two cells, so that a flush covers several cells. */
let games: { partner: TestPartner; gameId: number }[];
let partner: TestPartner;
let gameId: number;
/** Every answered spin by requestId, with its player and the position of its game. */
const answered = new Map<string, { place: number; playerId: string; text: string }>();

/** Ends the leases of a killed worker at once, so that no test waits for them. */
const endLeases = () => sql`UPDATE cells SET lease_until = '-infinity'`;

const worker = () => startService(stores, { ROLES: 'worker' });

beforeAll(async () => {
  const first = await worker();
  games = [];
  for (let made = 0; made < 2; made++) {
    const owner = await front.newPartner({ openingBalanceUsd: 50 });
    games.push({ partner: owner, gameId: await front.newGame(owner.key, parSheet('classic-3-reel')) });
  }
  [{ partner, gameId }] = games as [(typeof games)[0]];
  await spins('first', 10);
  await until(async () => (await booked()) === answered.size, 'the first spins are booked');
  await first.stop();
});

const booked = async (): Promise<number> =>
  Number((await sql`SELECT count(*) AS count FROM ledger WHERE kind = 1`)[0]!.count);

const spin = (requestId: string, playerId: string, place = 0) => {
  const { partner: owner, gameId: its } = games[place]!;
  return front.spin(owner.key, { gameId: its, playerId, wagerUsd: WAGER, requestId });
};

async function spins(name: string, count: number): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const requestId = `${name}-${i}`;
      const playerId = `p${i % PLAYERS}`;
      const place = i % games.length;
      const { status, text } = await spin(requestId, playerId, place);
      expect(status, text).toBe(200);
      answered.set(requestId, { place, playerId, text });
    }),
  );
}

/** Waits until each game has outcomes, because Redis may have been rebuilt. */
async function areDealing(name: string): Promise<void> {
  for (const place of games.keys()) {
    const requestId = `${name}-${place}-dealing`;
    await until(async () => (await spin(requestId, 'p0', place)).status === 200, 'spins are dealt');
    const { text } = await spin(requestId, 'p0', place);
    answered.set(requestId, { place, playerId: 'p0', text });
  }
}

/**
 * Starts a worker that kills itself at the given step, runs the callback, and waits for the worker's death.
 */
async function killedAt(
  step: Failpoint,
  goOn: (isDead: () => boolean) => Promise<unknown>,
  windowSeconds = 1800,
): Promise<void> {
  const settings = { ROLES: 'worker', FAILPOINT: step, REQUEST_ID_WINDOW_S: String(windowSeconds) };
  const child = await spawnService(environment(stores, settings)).catch(
    // The worker may die before it reports that it is ready.
    (error: Error) => {
      if (!error.message.includes('SIGKILL')) throw error;
    },
  );
  const isDead = (): boolean =>
    child === undefined || child.child.exitCode !== null || child.child.signalCode !== null;
  try {
    await goOn(isDead);
    await until(isDead, `the worker is dead at ${step}`);
  } finally {
    // The worker is killed here if it never reached the step.
    child?.child.kill('SIGKILL');
  }
  await endLeases();
}

/**
 * Another worker takes over. Every answered spin must be committed once, and a repetition of it must get the
 * same response.
 */
async function allIsWell(step: Failpoint): Promise<void> {
  const next = await worker();
  try {
    await until(async () => (await front.request('GET', '/statusz')).status === 200, 'the service is ready');
    await until(async () => (await spin(`after-${step}`, 'p0')).status === 200, 'spins are dealt again');
    const { text } = await spin(`after-${step}`, 'p0');
    answered.set(`after-${step}`, { place: 0, playerId: 'p0', text });
    await until(async () => (await booked()) === answered.size, 'all is booked');
    await booksHold(sql);
    for (const [requestId, { place, playerId, text: before }] of answered) {
      expect((await spin(requestId, playerId, place)).text).toBe(before);
    }
    expect(await booked()).toBe(answered.size);
    const left = async () => (await redis.xlen(outboxKey(0))) + (await redis.xlen(outboxKey(1)));
    await until(async () => (await left()) === 0, 'the outboxes are trimmed');
    expect([...(await sql`SELECT cell, halted FROM cells WHERE halted IS NOT NULL`)]).toEqual([]);
    expect([
      ...(await sql`SELECT cell FROM recoveries JOIN cells USING (cell, epoch) WHERE finished_at IS NULL`),
    ]).toEqual([]);
  } finally {
    await next.stop();
  }
}

const of = (kind: string): Failpoint[] => FAILPOINTS.filter((step) => step.startsWith(`${kind}.`));
/**
 * Returns the failpoints of a kind that this test run tries. `npm run test:scale` tries all failpoints of the
 * kind.
 */
const some = (kind: string): Failpoint[] => of(kind).filter((step) => IS_WHOLE || OFTEN.has(step));
/**
 * Failpoints that every test run tries. The steps of a recovery are tested one after the other. The step
 * after the commit of a flush is tested together with the last ticket of a raffle.
 */
const OFTEN = new Set<Failpoint>([
  'flush.rows-copied',
  'block.leased',
  'block.appended',
  'release.marked',
  'release.committed',
  'release.released',
  'move.stopped',
  'move.switching',
  'move.switched',
]);

test('every failpoint belongs to a kind that these tests cover', () => {
  // The voids of raffles have a test of their own (raffles/raffleVoid.test.ts).
  const tried = ['flush', 'block', 'release', 'move', 'void', 'recovery'].flatMap(of);
  expect(tried).toEqual([...FAILPOINTS]);
});

describe('a worker that is killed at a failpoint', () => {
  test.each(some('flush'))(
    'all answered spins are committed once and replayed after the worker is killed at flush step %s',
    async (step) => {
      await killedAt(step, () => spins(step, 20));
      await allIsWell(step);
    },
  );

  test.each(some('block'))(
    'all answered spins are committed once and replayed after the worker is killed at block step %s',
    async (step) => {
      await killedAt(step, async () => {
        const asked = await front.operator('POST', `/games/${gameId}/blocks`, { count: 1 });
        expect(asked.status).toBe(202);
      });
      await allIsWell(step);
    },
  );

  test('request ids stay bound after workers are killed at steps of a release and Redis is emptied', async () => {
    for (const step of some('release')) {
      const goOn = async (isDead: () => boolean): Promise<void> => {
        await areDealing(`ready-${step}`);
        await spins(step, 6);
        if (step !== 'release.merged') return;
        // Requests spins until there are enough runs of request ids for a merge.
        const runs = async () =>
          String((await sql`SELECT coalesce(max(run_id), 0) AS newest FROM request_runs`)[0]!.newest);
        for (let i = 0; i < 20 && !isDead(); i++) {
          const before = await runs();
          await spins(`${step}-${i}`, 6);
          await until(async () => isDead() || (await runs()) !== before, 'request ids are released');
        }
      };
      await killedAt(step, goOn, 1);
      if (step !== 'release.committed') continue;
      // All entries must be committed first, because uncommitted entries are lost with Redis.
      await allIsWell(step);
      await redis.flushdb();
    }
    const [row] = await sql`SELECT max(handed_over_id) > 0 AS is_handed_over FROM cells`;
    expect(row).toEqual({ is_handed_over: true });
    await allIsWell('release.released');
  });

  /**
   * During a move the audit must not report the moving partner's data, and must still find problems of other
   * partners.
   */
  const auditTellsOfMove = async (isUnderWay: boolean): Promise<void> => {
    const { checks, moving } = await auditReport(stores);
    const left = moving.map(({ partnerId }) => partnerId);
    const found = checks.flatMap(({ listed }) => listed);
    const counted = checks.reduce((sum, { violations }) => sum + violations, 0);
    expect([found, counted, left]).toEqual([[], 0, isUnderWay ? [partner.partnerId] : []]);
    const [{ cell }] = (await sql`
      SELECT cell FROM partners WHERE partner_id = ${games[1]!.partner.partnerId}`) as unknown as [
      { cell: number },
    ];
    const field = playerField(games[1]!.partner.partnerId, 'p1');
    const record = (await redis.hgetBuffer(playersKey(cell), field))!;
    const wrong = Buffer.from(record);
    wrong[12]! ^= 1;
    await redis.hset(playersKey(cell), field, wrong);
    const again = await auditReport(stores);
    expect(again.violations).toBe(1);
    expect(again.checks.flatMap(({ listed }) => listed)).toMatchObject([
      { at: { partner: games[1]!.partner.partnerId, player: 'p1' } },
    ]);
    await redis.hset(playersKey(cell), field, record);
  };

  test('a partner move that is interrupted by kills of the worker at several steps is completed by the next worker', async () => {
    const partnerId = partner.partnerId;
    const movesOf = async () => [
      ...(await sql<{ cell: number; finished_at: Date | null; failure: string | null }[]>`
        SELECT cell, finished_at, failure FROM partner_moves JOIN partners USING (partner_id)
        WHERE partner_id = ${partnerId} ORDER BY move_id DESC`),
    ];
    let cell = 0;
    for (const step of some('move')) {
      cell = cell === 2 ? 3 : 2;
      await killedAt(step, async () => {
        await until(async () => (await spin(`ready-${step}`, 'p0')).status === 200, 'spins are dealt');
        answered.set(`ready-${step}`, {
          place: 0,
          playerId: 'p0',
          text: (await spin(`ready-${step}`, 'p0')).text,
        });
        await spins(step, 8);
        const begun = await front.operator('POST', `/partners/${partnerId}/move`, { cell });
        expect(begun.status, begun.text).toBe(202);
      });
      await auditTellsOfMove(step !== 'move.finished');
      const next = await worker();
      await until(async () => (await movesOf())[0]!.finished_at !== null, `the move goes on after ${step}`);
      await next.stop();
      expect((await movesOf())[0]).toMatchObject({ cell, failure: null });
      await allIsWell(step);
      expect(await auditFindings(stores)).toEqual([]);
    }
  });

  test.each(some('recovery'))(
    'all answered spins are committed once and replayed after the worker is killed at recovery step %s',
    async (step) => {
      await redis.flushdb();
      await killedAt(step, async () => {});
      await allIsWell(step);
    },
  );

  test('a recovery completes although workers are killed at several of its steps in a row', async () => {
    await redis.flushdb();
    for (const step of [
      'recovery.voided',
      'recovery.cleared',
      'recovery.players',
      'recovery.games',
    ] as const) {
      await killedAt(step, async () => {});
    }
    await allIsWell('recovery.games');
  });
});

describe('a raffle whose worker is killed at a failpoint', () => {
  const body = (configName: string) => ({
    displayName: 'A raffle',
    configName,
    ticketPriceUsd: 0.5,
    poolSize: 6,
    prizes: [{ prizeName: 'Car', prizeTier: 6, valueUsd: 5, count: 2 }],
  });
  const newRaffle = async (configName: string): Promise<number> => {
    const path = `/partners/${partner.partnerId}/raffles`;
    const made = await front.operator<{ gameConfigId: number }>('POST', path, body(configName));
    expect(made.status, made.text).toBe(201);
    return made.body.gameConfigId;
  };
  const pool = (raffleId: number) =>
    front.partner<{ status: string; poolCommitment: string | null }>(
      'GET',
      `/games/${raffleId}/pool`,
      partner.key,
    );
  /** Buys one ticket and retries until it gets a final answer. */
  const ticket = async (raffleId: number, requestId: string) => {
    const buy = () =>
      front.spin<{ errorCode?: string; presentation: { prizeName: string } }>(partner.key, {
        gameId: raffleId,
        playerId: requestId,
        wagerUsd: 0.5,
        requestId,
      });
    let answer = await buy();
    await until(async () => {
      if (answer.status < 500 && answer.body.errorCode !== 'KS-4110') return true;
      answer = await buy();
      return false;
    }, `${requestId} is told`);
    return answer;
  };
  const isSoldExactly = async (raffleId: number, name: string): Promise<void> => {
    const answers = [];
    for (let i = 0; i < 8; i++) answers.push(await ticket(raffleId, `${name}-${i}`));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200, 410, 410]);
    const names = answers.slice(0, 6).map(({ body }) => body.presentation.prizeName);
    expect(names.filter((prizeName) => prizeName === 'Car').length).toBe(2);
    expect((await pool(raffleId)).body.status).toBe('CLOSED');
    await booksHold(sql);
  };

  test.each(some('block'))(
    'a raffle is sealed once although the worker is killed at %s of its sealing',
    async (step) => {
      const name = `SEAL_${step.slice(6).toUpperCase()}`;
      let raffleId = 0;
      await killedAt(step, async () => {
        raffleId = await newRaffle(name);
      });
      const before = await sql<
        { commitment: Buffer }[]
      >`SELECT commitment FROM blocks WHERE game_id = ${raffleId}`;
      // If the worker has died at the same step of a slot game's block, nothing is leased for the raffle yet.
      expect(before.length).toBeLessThanOrEqual(step === 'block.made' ? 0 : 1);
      const next = await worker();
      try {
        await until(async () => (await pool(raffleId)).body.status === 'ACTIVE', 'it is open');
        const { poolCommitment } = (await pool(raffleId)).body;
        if (before[0] !== undefined) expect(poolCommitment).toBe(before[0].commitment.toString('hex'));
        await isSoldExactly(raffleId, name);
      } finally {
        await next.stop();
      }
    },
  );

  // One of the two steps is before the transaction that closes the raffle, the other after it.
  test.each(['flush.totals-added', 'flush.committed'] as const)(
    'a raffle closes exactly at its last ticket although the worker is killed at %s of the flush',
    async (step) => {
      const name = `CLOSE_${step.slice(6).replace('-', '_').toUpperCase()}`;
      const first = await worker();
      const raffleId = await newRaffle(name);
      await until(async () => (await pool(raffleId)).body.status === 'ACTIVE', 'it is open');
      for (let i = 0; i < 5; i++) expect((await ticket(raffleId, `${name}-${i}`)).status).toBe(200);
      await first.stop();
      const last = ticket(raffleId, `${name}-5`);
      await killedAt(step, async () => {});
      const next = await worker();
      try {
        expect((await last).status).toBe(200);
        await isSoldExactly(raffleId, name);
      } finally {
        await next.stop();
      }
    },
  );
});
