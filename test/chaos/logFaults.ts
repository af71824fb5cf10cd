/**
 * Defines the faults of the public log: processes killed at its steps, a Postgres cut off during an append,
 * and witnesses that are stopped or frozen.
 */
import { FAILPOINTS } from '../../src/platform/failpoints.js';
import { connectPostgres } from '../../src/postgres/connect.js';
import { isPostgresAway } from '../../src/postgres/postgresErrors.js';
import type { Random } from '../support/random.js';
import { pause, until } from '../support/wait.js';
import type { Arena, FaultKind } from './faultKind.js';

/** Failpoints between the sealing of a block and its publication in the public log. */
const STEPS = FAILPOINTS.filter((step) => step.startsWith('block.'));
const MET_WITHIN_MS = 30_000;
const WAITING_WITHIN_MS = 20_000;
const ASK_EVERY_MS = 50;
/** Range in ms that is longer than a check of all witnesses. */
const WITNESS_MS = [2500, 6000] as const;

/**
 * Requests more blocks for a slot game of each partner. A failure is ignored, because possibly no front end
 * is running.
 */
export async function askForBlocks({ api, targets }: Arena): Promise<void> {
  const asked = targets.map(({ games }) =>
    api.operator.POST('/games/{id}/blocks', {
      params: { path: { id: games[0]!.gameId } },
      body: { count: 1 },
    }),
  );
  await Promise.allSettled(asked);
}

/**
 * Locks the row of the public log until an append waits for the lock, or until a simultaneous fault of the
 * round stops Postgres.
 * @param then callback that runs while the append waits
 */
async function whileAppending(arena: Arena, then: () => void): Promise<void> {
  const sql = connectPostgres(arena.stores.postgres.url, { max: 2, name: 'chaos', onError: () => {} });
  try {
    await sql.begin(async (tx) => {
      await tx.patiently();
      await tx`SELECT 1 FROM logs FOR UPDATE`;
      const isWaited = async (): Promise<boolean> => {
        await askForBlocks(arena);
        const [row] = await sql<object[]>`
          SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%UPDATE logs%'`;
        return row !== undefined;
      };
      await until(isWaited, 'an append waits', WAITING_WITHIN_MS, ASK_EVERY_MS).catch((error: unknown) => {
        if (!isPostgresAway(error)) throw error;
      });
      then();
    });
  } catch (error) {
    if (!isPostgresAway(error)) throw error;
  } finally {
    await sql.end();
  }
}

/**
 * Picks one of the three witnesses, without which the quorum is still met, or two, without which it is not.
 */
const someOf = ({ witnesses }: Arena, random: Random) =>
  random.shuffled(witnesses!.all).slice(0, random.whole(1, 2));

export const LOG_FAULTS = {
  // All processes are restarted, and the first process that reaches the step is killed there.
  'kill-at-log-step': {
    subject: 'service',
    async run(arena, random) {
      const { services } = arena.fleet;
      const step = random.pick(STEPS);
      for (const service of services) service.killAt(step);
      const isMet = async (): Promise<boolean> => {
        await askForBlocks(arena);
        return services.some(({ hasMet }) => hasMet);
      };
      await until(isMet, `a process dies at ${step}`, MET_WITHIN_MS, ASK_EVERY_MS);
      for (const service of services) if (!service.hasMet) service.kill();
    },
  },
  'cut-appending': {
    subject: 'postgres-cable',
    run: (arena, random) =>
      whileAppending(arena, () => {
        for (const { postgres: cable } of arena.fleet.services) {
          if (random.chance(0.5)) cable.cut();
          else cable.tear();
        }
      }),
  },
  'witness-away': {
    subject: 'witness',
    needsWitnesses: true,
    async run(arena, random) {
      const away = someOf(arena, random);
      await Promise.all(away.map((witness) => witness.kill()));
      await askForBlocks(arena);
      await pause(random.whole(...WITNESS_MS));
      await Promise.all(away.map((witness) => witness.start()));
    },
  },
  'witness-frozen': {
    subject: 'witness',
    needsWitnesses: true,
    async run(arena, random) {
      const frozen = someOf(arena, random);
      for (const witness of frozen) witness.freeze();
      await askForBlocks(arena);
      await pause(random.whole(...WITNESS_MS));
      for (const witness of frozen) witness.thaw();
    },
  },
} as const satisfies Record<string, FaultKind>;
