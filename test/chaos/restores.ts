/**
 * Defines faults that lose stores and restore them from backups with the commands of docs/backup.md. Spins
 * pause and every answered spin is committed, so a restore to an older state loses exactly the entries since
 * the backup.
 */
import { execFile } from 'node:child_process';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { type Position, readPosition } from '../../src/engine/recovery/positionFile.js';
import type { ArchivedPostgres } from '../backup/archivedPostgres.js';
import { PAGE } from '../backup/page.js';
import { askOnce, plainRequest, spinRequest } from '../support/load.js';
import { cliOf, ROOT } from '../support/root.js';
import type { OwnStores } from '../support/stores.js';
import { pause, until } from '../support/wait.js';
import type { Arena, FaultKind } from './faultKind.js';
import { askForBlocks } from './logFaults.js';
import { LOG_COPY, POSITION_FILE } from './services.js';

const COMMAND_WITHIN_MS = 120_000;
/** Folder in which the copy of the public log is hidden, so that the service does not find it. */
const LOG_MIRROR = 'log-copy-away';
const REWRITTEN_WITHIN_MS = 90_000;
const ANSWER_WITHIN_MS = 3000;
const ASK_EVERY_MS = 100;
const REFUSALS = 10;
const ASKED_MAX = 300;

/** The newest entry of each cell at the time of the backup. */
export type BackedUp = ReadonlyMap<number, bigint>;

export async function backUp({ archived, stores }: Arena): Promise<BackedUp> {
  await archived!.backUp();
  await stores.copyRedis();
  const sql = postgres(stores.postgres.url, { max: 1, onnotice: () => {} });
  const cells = await sql<{ cell: number; cursor_id: string }[]>`SELECT cell, cursor_id FROM cells`;
  await sql.end();
  return new Map(cells.map(({ cell, cursor_id }) => [cell, BigInt(cursor_id)]));
}

/**
 * Runs the recovery command of docs/backup.md.
 * @returns its output
 */
async function recoverRestored(arena: Arena): Promise<string> {
  const [npx, spindle, ...words] = PAGE.recoverRestored().split(' ');
  if (npx !== 'npx' || spindle !== 'spindle')
    throw new Error('The command of docs/backup.md is no `spindle`');
  return command(arena, ...words, '--yes');
}

/**
 * Imports the records that the public log published after the restored state, if a start has detected that
 * they are missing.
 */
async function importLog(arena: Arena): Promise<void> {
  const sql = postgres(arena.stores.postgres.url, { max: 1, onnotice: () => {} });
  const held = await sql`SELECT 1 FROM logs WHERE is_held`;
  await sql.end();
  if (held.length > 0) await command(arena, 'log', 'import', '--from', join(arena.folder, LOG_COPY), '--yes');
}

/**
 * Runs a `spindle` command.
 * @returns its output.
 * @throws if its exit status is not 0
 */
async function command({ stores, folder }: Arena, ...words: readonly string[]): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [cliOf(ROOT), ...words], {
    timeout: COMMAND_WITHIN_MS,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      REDIS_URL: stores.redis.url,
      DATABASE_URL: stores.postgres.url,
      POSITION_FILE: join(folder, POSITION_FILE),
      LOG_COPY_DIR: join(folder, LOG_COPY),
    },
  });
  return stdout + stderr;
}

/**
 * Checks that nothing is dealt until the recovery command has run, if the position file is ahead of the
 * stores. Also checks that `/statusz` names the command.
 */
async function isRefused({ fleet, targets }: Arena): Promise<void> {
  for (const service of fleet.services) service.start(fleet.acknowledgement);
  const spin = (i: number): Buffer => {
    const { key, games, players } = targets[i % targets.length]!;
    const { gameId, wagerUsd } = games[i % games.length]!;
    return spinRequest(key, JSON.stringify({ gameId, playerId: players[0], wagerUsd }));
  };
  for (let asked = 0, named = 0; named < REFUSALS; asked++) {
    if (asked > ASKED_MAX) throw new Error('/statusz does not name `spindle recover --restored`');
    const answer = await askOnce(fleet.port, spin(asked), ANSWER_WITHIN_MS);
    if (answer?.status === 200) throw new Error(`dealt before the command of a restore: ${answer.text}`);
    const ready = await askOnce(fleet.port, plainRequest('GET', '/statusz', ''), ANSWER_WITHIN_MS);
    if (ready?.status === 200) throw new Error('ready before the command of a restore');
    if (ready?.text.includes('spindle recover --restored')) named++;
    await pause(ASK_EVERY_MS);
  }
  await fleet.stop();
}

/** Stops all processes, restores the stores, runs the recovery command, and starts all processes again. */
async function restored(
  arena: Arena,
  restore: (archived: ArchivedPostgres, stores: OwnStores) => Promise<void>,
  takeLogOver: () => Promise<void> = () => importLog(arena),
): Promise<void> {
  const { fleet, stores, archived } = arena;
  await fleet.stop();
  await restore(archived!, stores);
  await isRefused(arena);
  await takeLogOver();
  await recoverRestored(arena);
  await fleet.startAgain();
}

async function emptyRedis({ redis, wipeRedis }: OwnStores): Promise<void> {
  await redis.stop();
  await wipeRedis();
  await redis.start();
}

const kind = { subject: 'postgres', needsArchive: true } as const;

export const DAMAGED_POSITION = {
  // The workers must write the file again, and go on making blocks.
  'damaged-position': {
    subject: 'service',
    async run(arena, random) {
      const path = join(arena.folder, POSITION_FILE);
      const before = await readPosition(path).catch(() => undefined);
      const sum = (position: Position | undefined): number =>
        Object.values(position?.leases ?? {}).reduce((all, end) => all + end, 0);
      const text = await readFile(path, 'utf8');
      await writeFile(path, text.slice(0, random.whole(0, text.length - 2)));
      const isWhole = async (): Promise<boolean> => {
        await askForBlocks(arena);
        return sum(await readPosition(path).catch(() => undefined)) > sum(before);
      };
      await until(isWhole, 'the position file has new leases', REWRITTEN_WITHIN_MS, ASK_EVERY_MS);
    },
  },
} as const satisfies Record<string, FaultKind>;

export const RESTORES = {
  // Postgres is lost, but its archived WAL is not. Redis keeps its data.
  'restore-archive': {
    ...kind,
    restores: 'all',
    run: (arena) =>
      restored(arena, async (archived, { postgres: server }) => {
        await archived.archive();
        await server.killForGood();
        await archived.restoreFromArchive();
        await server.start();
      }),
  },
  // Postgres and its archived WAL are lost.
  'restore-base': {
    ...kind,
    restores: 'backup',
    run: (arena) =>
      restored(arena, async (archived, { postgres: server }) => {
        await server.killForGood();
        await archived.restoreBaseBackup();
        await server.start();
      }),
  },
  'restore-dump': {
    ...kind,
    restores: 'backup',
    run: (arena) =>
      restored(arena, async (archived, stores) => {
        await archived.restoreDump();
        await emptyRedis(stores);
      }),
  },
  // The copies outside the stores, which would reveal the age of the restored dump, are missing. The copy of
  // the public log is found and put back later.
  'restore-dump-without-copies': {
    ...kind,
    restores: 'backup',
    run: (arena) =>
      restored(
        arena,
        async (archived, stores) => {
          await archived.restoreDump();
          await emptyRedis(stores);
          await rm(join(arena.folder, POSITION_FILE), { force: true });
          await rename(join(arena.folder, LOG_COPY), join(arena.folder, LOG_MIRROR));
        },
        async () => {
          await rm(join(arena.folder, LOG_COPY), { recursive: true, force: true });
          await rename(join(arena.folder, LOG_MIRROR), join(arena.folder, LOG_COPY));
          // Only a start with the copy can find that the restored log lacks records of it.
          await isRefused(arena);
          await importLog(arena);
        },
      ),
  },
  // Redis keeps its newer data, so it is ahead of the restored Postgres.
  'restore-dump-alone': {
    ...kind,
    restores: 'backup',
    run: (arena) => restored(arena, (archived) => archived.restoreDump()),
  },
  // Both stores are restored to the same older moment and are consistent with each other.
  'restore-both': {
    ...kind,
    restores: 'backup',
    run: (arena) =>
      restored(arena, async (archived, stores) => {
        await archived.restoreDump();
        await stores.redis.stop();
        await stores.restoreRedis();
        await stores.redis.start();
      }),
  },
} as const satisfies Record<string, FaultKind>;
