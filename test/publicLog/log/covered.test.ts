/**
 * Kills the worker with SIGKILL at each step by which a block gets into the public log and is dealt, while
 * spins, tickets and rounds are played. A checkpoint fetched before a spin must cover the spin's block. `npm
 * run test:scale` deals 10,000 outcomes.
 */
import { beforeAll, expect, test } from 'vitest';
import type { Failpoint } from '../../../src/platform/failpoints.js';
import { examine } from '../../../verifier/verify.mjs';
import { world } from '../../setup/world.js';
import { auditFindings } from '../../support/communal.js';
import { IS_WHOLE } from '../../support/root.js';
import { deal, registerTable } from '../../support/rounds.js';
import { environment, spawnService, startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

/** Total number of outcomes to deal, and the number dealt concurrently after each checkpoint. */
const WANTED = IS_WHOLE ? 10_000 : 300;
const AT_ONCE = 10;
/** Number of proofs that are fetched and verified concurrently. */
const PROVING = 8;
/** Error codes of requests to a game that has nothing to deal yet or whose worker is dead. */
const NOT_NOW = ['KS-4203', 'KS-5002', 'KS-5004', 'KS-5012', 'KS-4110'];

/**
 * The steps at which a worker dies. `TIMES` says at which execution of the step it dies. How many of the
 * three games are loaded by then depends on that number.
 */
const KILLS: readonly Failpoint[] = [
  'block.leased',
  'block.appended',
  'block.signed',
  'block.published',
  'block.loaded',
];
const TIMES = IS_WHOLE ? [1, 2, 3] : [1];

interface Dealt {
  /** URL path of the outcome's proof. */
  readonly path: string;
  readonly answer: unknown;
  /** PAR sheet, prize table or rules of the game. */
  readonly math: Readonly<Record<string, unknown>>;
  /** The checkpoint that was fetched before the outcome was dealt. */
  readonly seen: string;
}

interface Kind {
  /** Creates a game, which has no outcomes yet. */
  make(name: string): Promise<number>;
  /** @returns the response and the path of its proof, or undefined if nothing was dealt */
  play(gameId: number, name: string): Promise<Omit<Dealt, 'seen'> | undefined>;
}

const {
  stores,
  service: front,
  partner,
  sql,
} = world({ ROLES: 'http' }, { partner: { openingBalanceUsd: 10_000 } });
let sheetId: number;

beforeAll(async () => {
  // The first worker creates the public log.
  const first = await worker();
  sheetId = await front.api.addSheet(partner.key, SHEET);
  await first.stop();
});
const worker = () => startService(stores, { ROLES: 'worker' });
const endLeases = () => sql`UPDATE cells SET lease_until = '-infinity'`;

const checkpoint = async (): Promise<string> => {
  const { status, text } = await front.request('GET', '/log/checkpoint');
  expect(status, text).toBe(200);
  return text;
};
const tiles = new Map<string, Promise<Uint8Array>>();
const readTile = (path: string): Promise<Uint8Array> => {
  const read = async () => new Uint8Array(await (await fetch(`${front.base}/log/${path}`)).arrayBuffer());
  if (!tiles.has(path)) tiles.set(path, read());
  return tiles.get(path)!;
};

/** Returns the response to a spin or deal, or undefined if there is nothing to deal at the moment. */
const dealtBy = <T>({ status, body, text }: { status: number; body: T; text: string }): T | undefined => {
  if (status < 300) return body;
  expect(NOT_NOW, text).toContain((body as { errorCode?: string }).errorCode);
  return undefined;
};
const spun = async (gameId: number, playerId: string, wagerUsd: number, math: Dealt['math']) => {
  const answer = dealtBy(await front.spin<{ spinId: string }>(partner.key, { gameId, playerId, wagerUsd }));
  return answer && { answer, math, path: `/api/partner/v1/spins/${answer.spinId}/proof` };
};
const SHEET = parSheet('classic-3-reel');
const TABLE = {
  ticketPriceUsd: 1,
  poolSize: 2 * WANTED,
  prizes: [{ prizeName: 'Mug', prizeTier: 2, valueUsd: 1, count: WANTED }],
};

const KINDS: Readonly<Record<string, Kind>> = {
  slot: {
    make: (name) => front.api.addGame(partner.key, sheetId, name),
    play: (gameId, name) => spun(gameId, name, 0.25, { sheet: SHEET }),
  },
  raffle: {
    make: (name) => front.api.addRaffle(partner.partnerId, name, TABLE),
    play: (gameId, name) => spun(gameId, name, 1, { table: TABLE }),
  },
  table: {
    make: () => registerTable(front, partner.partnerId),
    async play(gameId, name) {
      const answer = dealtBy(await deal(front, partner.key, gameId, name));
      if (answer === undefined) return undefined;
      const path = `/api/play/blackjack/rounds/${answer.roundId}`;
      const read = await front.request<{ table: { rules: unknown } }>('GET', path, { key: partner.key });
      return { answer, math: { rules: read.body.table.rules }, path: `${path}/proof` };
    },
  },
};

/**
 * Plays a game, with several concurrent plays after each checkpoint, until enough outcomes are dealt. A new
 * game has nothing to deal at first, and its first block may be loaded between a checkpoint and a spin. The
 * first outcome is therefore compared with a checkpoint that was fetched after it.
 */
async function play({ play: one }: Kind, gameId: number, count: number): Promise<Dealt[]> {
  const all: Dealt[] = [];
  await until(async () => {
    const first = await one(gameId, `p${gameId}`);
    if (first !== undefined) all.push({ ...first, seen: await checkpoint() });
    return first !== undefined;
  }, 'something is dealt');
  while (all.length < count) {
    const seen = await checkpoint();
    const dealt = Array.from({ length: AT_ONCE }, (_, i) => one(gameId, `p${gameId}-${all.length}-${i}`));
    for (const each of await Promise.all(dealt)) if (each !== undefined) all.push({ ...each, seen });
  }
  return all;
}

/**
 * Starts a worker that kills itself at a step, and then another worker.
 * @param slotId the game whose blocks bring the worker to the step
 */
async function killAt(step: string, slotId: number) {
  const doomed = await spawnService(environment(stores, { ROLES: 'worker', FAILPOINT: step })).catch(
    // The worker may die before it reports that it is ready.
    (error: Error) => {
      if (!error.message.includes('SIGKILL')) throw error;
    },
  );
  try {
    await until(async () => {
      if (doomed === undefined || doomed.child.signalCode !== null) return true;
      await front.operator('POST', `/games/${slotId}/blocks`, { count: 1 });
      return false;
    }, `the worker is dead at ${step}`);
  } finally {
    // The worker may never reach the step, so the test kills it here.
    doomed?.child.kill('SIGKILL');
  }
  await endLeases();
  return worker();
}

/**
 * Checks that each proof is valid and that the earlier checkpoint covers it.
 * @returns the proven outcomes
 */
async function proveAll(dealt: readonly Dealt[]) {
  const [{ vkeys }] = (await sql`SELECT vkeys FROM logs`) as unknown as [{ vkeys: string[] }];
  const proofs: { gameId: number; outcome?: { nonce: string }; entry: string; salt: string }[] = [];
  const left = [...dealt];
  const prove = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { path, answer, math, seen } = next;
      const proof = await front.request<(typeof proofs)[0]>('GET', path, { key: partner.key });
      expect(proof.status, proof.text).toBe(200);
      const options = { logKeys: vkeys, ...math, spin: answer, seen: [seen], readTile };
      const { faults, since } = await examine(proof.body, options);
      expect(faults, path).toEqual([]);
      expect(since, `${proof.text}\nnot in\n${seen}`).toBeDefined();
      proofs.push(proof.body);
    }
  };
  await Promise.all(Array.from({ length: PROVING }, prove));
  return proofs;
}

test(
  'a checkpoint fetched before a spin, ticket or round covers it, wherever the worker is killed',
  async () => {
    const count = Math.ceil(WANTED / (KILLS.length * TIMES.length * Object.keys(KINDS).length));
    const dealt: Dealt[] = [];
    for (const times of TIMES) {
      for (const step of KILLS) {
        const games = new Map<string, number>();
        for (const [name, kind] of Object.entries(KINDS))
          games.set(name, await kind.make(`covered-${name}-${step.slice(6)}-${times}`));
        const [next, ...played] = await Promise.all([
          killAt(`${step}:${times}`, games.get('slot')!),
          ...Object.entries(KINDS).map(([name, kind]) => play(kind, games.get(name)!, count)),
        ]);
        dealt.push(...played.flat());
        await next.stop();
      }
    }
    const last = await worker();
    expect(dealt.length).toBeGreaterThanOrEqual(WANTED);
    const proofs = await proveAll(dealt);
    // The published secrets of one outcome must reveal nothing about another, so all nonces and salts must
    // differ.
    const nonces = proofs.flatMap(({ outcome }) => (outcome === undefined ? [] : [outcome.nonce]));
    expect(new Set(nonces).size).toBe(nonces.length);
    const salts = new Map(proofs.map(({ entry, salt }) => [entry, salt]));
    expect(new Set(salts.values()).size).toBe(salts.size);
    await last.stop();
    expect(await auditFindings(stores)).toEqual([]);
  },
  IS_WHOLE ? 1_200_000 : undefined,
);

test('a worker loads blocks that a killed worker had leased, or opens its raffle, only behind a checkpoint', async () => {
  const slotId = await KINDS.slot!.make('held-slot');
  const first = await spawnService(environment(stores, { ROLES: 'worker' }));
  const isOpen = async (): Promise<boolean> => {
    const [row] = await sql`SELECT 1 FROM raffles WHERE game_id = ${raffleId} AND sealed_at IS NOT NULL`;
    return row !== undefined;
  };
  let raffleId = 0;
  const leased = async (gameId: number): Promise<number> =>
    (await sql`SELECT 1 FROM log_entries WHERE game_id = ${gameId} AND kind <= 3`).length;
  // The next worker can read a full queue at once. A queue that is not full would need further blocks, and
  // these would wait for a checkpoint that this test prevents. No outcome was dealt, so a full queue has only
  // the reserve.
  const isFull = async (): Promise<boolean> => {
    const [row] = await sql<{ is_full: boolean }[]>`
      SELECT count(*) > max(min_ready_blocks) AND bool_and(coalesce(log_index < (
        SELECT max(size) FROM log_checkpoints WHERE published_at IS NOT NULL), false)) AS is_full
      FROM log_entries JOIN games USING (game_id) JOIN partners USING (partner_id) WHERE game_id = ${slotId}`;
    return row!.is_full;
  };
  await until(isFull, 'the reserve of the slot game is in the published log');
  await sql.begin(async (tx) => {
    await tx`SELECT 1 FROM logs FOR UPDATE`;
    raffleId = await KINDS.raffle!.make('held-raffle');
    await until(async () => (await leased(raffleId)) === 1, 'the pool waits for the log');
    expect(await isOpen()).toBe(false);
    first.child.kill('SIGKILL');
    await first.ended;
    // The last statement of the killed worker may still wait for the lock, and would run once the lock is
    // free.
    await tx`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%UPDATE logs%'`;
    await tx`SELECT 1`;
    await endLeases();
    await front.operator('POST', `/games/${slotId}/blocks`, { count: 1 });
    const before = await leased(slotId);
    const second = spawnService(environment(stores, { ROLES: 'worker' }));
    try {
      await until(
        async () => (await leased(slotId)) > before,
        'the next worker has read what was leased, and makes a block',
      );
      expect(await isOpen()).toBe(false);
      expect(await KINDS.raffle!.play(raffleId, 'early')).toBeUndefined();
    } finally {
      (await second).child.kill('SIGKILL');
    }
    await endLeases();
  });
  const last = await worker();
  const [ticket] = await play(KINDS.raffle!, raffleId, 1);
  expect(await isOpen()).toBe(true);
  const pool = await front.partner<{ status: string }>('GET', `/games/${raffleId}/pool`, partner.key);
  expect(pool.body.status).toBe('ACTIVE');
  await proveAll([ticket!]);
  await last.stop();
});
