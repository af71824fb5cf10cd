/** What is done to the public log: processes that die at its steps, Postgres cut off in the middle of an append, witnesses that are away or frozen. */
import { FAILPOINTS } from '../../src/platform/failpoints.js';
import { connectPostgres } from '../../src/postgres/connect.js';
import { isPostgresAway } from '../../src/postgres/postgresErrors.js';
import type { Random } from '../support/random.js';
import { pause, until } from '../support/wait.js';
import type { Arena, FaultKind } from './faultKind.js';

/** The way of a block through the log. */
const STEPS = FAILPOINTS.filter((step) => step.startsWith('block.'));
const MET_WITHIN_MS = 30_000;
const WAITING_WITHIN_MS = 20_000;
const ASK_EVERY_MS = 50;
/** Longer than a look at all witnesses takes. */
const WITNESS_MS = [2500, 6000] as const;

/** Has more blocks made of a slot game of each partner; nobody may be there who takes the request. */
async function askForBlocks({ api, targets }: Arena): Promise<void> {
  const asked = targets.map(({ games }) =>
    api.operator.POST('/games/{id}/blocks', {
      params: { path: { id: games[0]!.gameId } },
      body: { count: 1 },
    }),
  );
  await Promise.allSettled(asked);
}

/**
 * Holds the log's row until an append waits for it, or until Postgres is taken away by another fault: then there is none to wait for.
 * @param then what is done meanwhile
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

/** One witness of three, which the quorum does without, or two, which it waits for. */
const someOf = ({ witnesses }: Arena, random: Random) =>
  random.shuffled(witnesses!.all).slice(0, random.whole(1, 2));

export const LOG_FAULTS = {
  // All of them are started anew, and the first that comes to the step dies there.
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
