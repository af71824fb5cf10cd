/** `spindle recover` with an option: compares Redis with the ledger, and rebuilds the cells that differ. */
import { randomUUID } from 'node:crypto';
import {
  acquireCells,
  type CellLease,
  cellLeases,
  clearHalt,
  releaseCells,
  renewCells,
} from '../engine/cells/cells.store.js';
import { EventEmitter } from '../engine/processEvents.js';
import { examine, type Finding } from '../engine/recovery/handshake.js';
import { installation } from '../engine/recovery/installation.store.js';
import { LedgerScan } from '../engine/recovery/ledgerScan.js';
import { findObstacles } from '../engine/recovery/obstacles.store.js';
import { type CopySetting, giveCopyUp } from '../engine/recovery/outsideCopies.store.js';
import { findPosition } from '../engine/recovery/positionDifference.js';
import type { Position } from '../engine/recovery/positionFile.js';
import { openFinding } from '../engine/recovery/positionFindings.store.js';
import { acceptPositions, type RestoredState } from '../engine/recovery/positions.store.js';
import { prepareCell } from '../engine/recovery/prepare.js';
import {
  RESTORED_COMMAND,
  type RestoreCosts,
  restoreCosts,
  waitingText,
} from '../engine/recovery/restoreCosts.js';
import type { Clocks } from '../engine/redis/clockSkew.js';
import type { RedisNodes } from '../engine/redis/nodes.js';
import { openNodes } from '../engine/redis/openNodes.js';
import { FairQueue } from '../platform/runtime/fairQueue.js';
import { lineOf } from '../platform/secretsInLogs.js';
import type { Sql } from '../postgres/connection.js';
import { FaultsError, type StoreUrls, UsageError, whole } from './command.js';
import { openPostgres, openStores, postgresAnswers } from './openPostgres.store.js';

export interface RecoverOptions {
  /** True if the command only checks and changes nothing. */
  readonly isCheck: boolean;
  /**
   * True if the command also rebuilds cells that must not be repaired automatically. Their data in Redis is
   * discarded.
   */
  readonly isToReplace: boolean;
  /**
   * Present if Postgres was restored to an older state. Every cell then continues above all outcome indices
   * that players may have seen.
   */
  readonly restored?: RestoredState;
  /** True if the command also prepares a Redis that may lose acknowledged data. */
  readonly isVolatileAllowed: boolean;
  readonly clocks: Clocks;
  /** Halted cells that a person has examined and that may continue. */
  readonly resume: readonly number[];
  readonly progress: (line: string) => void;
}

export interface CellState {
  readonly cell: number;
  /**
   * State of the cell: `ready`, `new` (never used), `rebuilt`, `repaired`, `lost`, `promoted`, `foreign`,
   * `halted`, `held` (by a running worker) or `failed`.
   */
  readonly state: string;
  readonly note: string;
}

const COUNTED_WITHIN_MS = 60_000;
const LEASE_MS = 5000;
/**
 * Maximum time to acquire a cell, in ms. A running worker that can't serve a cell releases it between its
 * attempts.
 */
const PATIENCE_MS = 8000;
/** Maximum number of comparisons of one cell whose worker keeps committing. */
const LOOKS_MAX = 20;

/**
 * Compares a cell while its worker is running. A difference is ignored if entries were committed during the
 * comparison.
 */
async function examineLive(sql: Sql, nodes: RedisNodes, lease: CellLease): Promise<Finding> {
  let looked = lease;
  for (let look = 0; look < LOOKS_MAX; look++) {
    const finding = await examine(sql, nodes.cell(lease.cell), looked);
    if (!('reason' in finding)) return finding;
    const now = (await cellLeases(sql)).find(({ cell }) => cell === lease.cell);
    if (now === undefined || (now.cursorId === looked.cursorId && now.epoch === looked.epoch)) return finding;
    looked = now;
  }
  throw new Error(
    `Cell ${lease.cell} changed during each of ${LOOKS_MAX} comparisons, so its state is unknown. ` +
      'Run the command again with less traffic, or with the workers stopped.',
  );
}

/** Returns the state of each cell without changing anything. */
export async function check(sql: Sql, nodes: RedisNodes): Promise<CellState[]> {
  const states: CellState[] = [];
  for (const lease of await cellLeases(sql)) {
    const finding = await examineLive(sql, nodes, lease);
    const { cell, halted } = lease;
    if (halted !== null) states.push({ cell, state: 'halted', note: halted });
    else states.push({ cell, state: finding.state, note: 'reason' in finding ? finding.reason : '' });
  }
  return states;
}

/** Returns the reason why nothing may be dealt until an operator decides, or undefined. */
async function holdOf(sql: Sql): Promise<string | undefined> {
  const { hold, missingCopies } = await findObstacles(sql);
  return missingCopies.length > 0 ? missingCopies.map(({ message }) => message).join('; then: ') : hold;
}

export async function recover(sql: Sql, nodes: RedisNodes, options: RecoverOptions): Promise<CellState[]> {
  if (options.isCheck) return check(sql, nodes);
  for (const cell of options.resume) await clearHalt(sql, cell);
  // Refuses stores whose format this build can't read.
  await installation(sql);
  const owner = randomUUID();
  const held = new Set<number>();
  const renewal = setInterval(() => {
    renewCells(sql, owner, [...held], LEASE_MS).catch(() => {});
  }, LEASE_MS / 4);
  const states = new Map<number, CellState>();
  const set = (cell: number, state: string, note = ''): void => void states.set(cell, { cell, state, note });
  const events = new EventEmitter((error) => {
    throw error;
  });
  events.on('RebuildStarted', ({ cell, reason, isRepair }) =>
    options.progress(
      `cell ${cell}: ${reason}, ${isRepair ? 'repairing' : 'rebuilding'} it from the ledger …`,
    ),
  );
  events.on('CellRebuilt', ({ cell, isRepair, players, requests, voided, seconds }) => {
    const note = `${players} players, ${requests} requests, ${voided} outcomes voided, ${seconds.toFixed(1)} s`;
    set(cell, isRepair ? 'repaired' : 'rebuilt', note);
  });
  const deadline = performance.now() + PATIENCE_MS;
  try {
    for (;;) {
      for (const lease of await acquireCells(sql, owner, LEASE_MS)) {
        const { cell } = lease;
        held.add(cell);
        set(cell, 'ready');
        await prepareCell(
          {
            sql,
            nodes,
            store: nodes.cell(cell),
            isToReplace: options.isToReplace,
            ...(options.restored !== undefined && { restored: options.restored }),
            volatile: async () => (options.isVolatileAllowed ? [] : nodes.of(cell).durability.find()),
            clocks: options.clocks,
            hold: () => holdOf(sql),
            turns: new FairQueue({ atOnce: 1 }),
            scan: new LedgerScan(sql),
            onFailpoint: () => {},
            events,
          },
          lease,
        ).catch((error: unknown) => set(cell, lease.halted === null ? 'failed' : 'halted', lineOf(error)));
      }
      // Cells held by other workers are examined too. A cell that its worker serves needs no recovery.
      const waiting: number[] = [];
      for (const lease of await cellLeases(sql)) {
        if (states.has(lease.cell) && states.get(lease.cell)!.state !== 'held') continue;
        const finding = await examineLive(sql, nodes, lease);
        const isWaitedFor = 'reason' in finding || options.restored !== undefined;
        const held =
          options.restored === undefined
            ? 'by a running worker, which recovers it by itself'
            : 'A running worker owns this cell. Stop it, then run this again.';
        set(lease.cell, 'held', 'reason' in finding ? finding.reason : held);
        if (isWaitedFor) waiting.push(lease.cell);
      }
      if (waiting.length === 0 || performance.now() > deadline) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  } finally {
    clearInterval(renewal);
    await releaseCells(sql, owner);
  }
  return [...states.values()].sort((a, b) => a.cell - b.cell);
}

/** Returns the end of each game's leases, from the position file outside both stores. */
function floorsOf(position: Position | undefined, datasetId: string): Map<number, number> {
  const leases = position?.dataset === datasetId ? Object.entries(position.leases) : [];
  return new Map(leases.map(([gameId, end]) => [Number(gameId), end]));
}

/**
 * @param unknownLeases why nothing says up to which index each game may have been dealt; undefined if a
 * position file does
 */
function planText({ plan, waiting }: RestoreCosts, unknownLeases: string | undefined): string {
  const { cells, games, outcomes, raffles, raffleCount, rounds } = plan;
  const named = raffles.map(({ gameId, name }) => `${name} (${gameId})`);
  if (raffleCount > named.length) named.push(`and ${raffleCount - named.length} more`);
  const above =
    unknownLeases === undefined
      ? 'the last leased index in the position file'
      : `2^32 indices, because ${unknownLeases}`;
  return [
    'This will permanently',
    `  void ${outcomes} sealed outcomes of ${games} games that are not in the ledger, and continue above ${above};`,
    `  suspend ${raffleCount} raffles${named.length > 0 ? `: ${named.join(', ')}` : ''};`,
    `  void ${rounds} open rounds of blackjack and refund their stakes;`,
    `  discard all entries in Redis that Postgres lacks: ${waitingText(waiting)} that wait there to be flushed;`,
    `  rebuild ${cells} cells from the ledger.`,
  ].join('\n');
}

/** Returns what `recover --restored` would change, for the operator who confirms it. */
export async function restoredText(
  { redisUrl, databaseUrl }: StoreUrls,
  positionFile: string | undefined,
): Promise<string> {
  const sql = openPostgres(databaseUrl, 'recover', 1);
  const nodes = await openNodes(redisUrl, () => {}).catch(() => undefined);
  try {
    const { position, damage, path } = await findPosition(sql, positionFile);
    const { datasetId } = await installation(sql);
    const unknownLeases =
      damage !== undefined
        ? `the position file ${path} can't be read: ${damage}`
        : position?.dataset === datasetId
          ? undefined
          : 'there is no position file that says how far they were dealt';
    return planText(await restoreCosts(sql, nodes, COUNTED_WITHIN_MS), unknownLeases);
  } finally {
    nodes?.close();
    await sql.end();
  }
}

/** Returns whether nothing more has to be done for a cell. */
const isWell = ({ state, note }: CellState): boolean =>
  ['ready', 'new', 'rebuilt'].includes(state) || (state === 'held' && note.startsWith('by a running worker'));

export interface RestoredOptions {
  readonly allowVolatile: boolean;
  readonly clockSkewMaxS: number;
  readonly positionFile: string | undefined;
  readonly progress: (line: string) => void;
}

/**
 * Recovers all cells after Postgres was restored to an older state, so that every cell continues above all
 * outcome indices that players may have seen.
 * @returns the cells from which nothing can be dealt yet. If the list is empty, the restore is recorded as
 * resolved.
 */
export async function recoverRestored(
  sql: Sql,
  nodes: RedisNodes,
  { allowVolatile, clockSkewMaxS, positionFile, progress }: RestoredOptions,
): Promise<CellState[]> {
  const { position } = await findPosition(sql, positionFile);
  const states = await recover(sql, nodes, {
    isCheck: false,
    isToReplace: false,
    isVolatileAllowed: allowVolatile,
    resume: [],
    progress,
    restored: { floors: floorsOf(position, (await installation(sql)).datasetId) },
    clocks: { now: Date.now, skewMaxMs: clockSkewMaxS * 1000 },
  });
  const unwell = states.filter((state) => !isWell(state));
  if (unwell.length === 0) await acceptPositions(sql, position?.id);
  return unwell;
}

/**
 * Runs `recover --without`: an operator gives up copies outside the stores, and confirms that Postgres has
 * its newest state. This settles everything that workers have found about the copies.
 * @returns the exit status: 0 if the service may deal, 1 if something else must be settled first
 * @throws FaultsError if the position file proves that Postgres lacks something
 */
export async function abandonCopies(
  databaseUrl: string,
  settings: readonly CopySetting[],
  { positionFile, json }: { readonly positionFile: string | undefined; readonly json: boolean },
): Promise<number> {
  const sql = openPostgres(databaseUrl, 'recover', 1);
  try {
    await postgresAnswers(sql, databaseUrl);
    const states: { setting: CopySetting; state: string }[] = [];
    for (const setting of settings) {
      const { position, difference } = await findPosition(sql, positionFile);
      const known = [difference, await openFinding(sql)].find((each) => each?.mayBeNewest === false);
      if (setting === 'POSITION_FILE' && known !== undefined)
        throw new FaultsError(
          `The position file can't be given up, because it proves that Postgres lacks something. Run \`${RESTORED_COMMAND}\`.`,
          [known.text],
        );
      const isGivenUp = await giveCopyUp(sql, setting, difference && position?.id);
      states.push({ setting, state: isGivenUp ? 'given up' : 'not on record' });
    }
    const lines = states.map(({ setting, state }) => `${setting}  ${state}`);
    process.stdout.write(`${json ? JSON.stringify(states) : lines.join('\n')}\n`);
    return await tellHold(sql);
  } finally {
    await sql.end();
  }
}

/** Says what must still be settled before the service deals. */
async function tellHold(sql: Sql): Promise<0 | 1> {
  const hold = await holdOf(sql);
  if (hold === undefined) return 0;
  process.stderr.write(`Nothing is dealt yet: ${hold}\n`);
  return 1;
}

/**
 * Says what must still be settled after `--restored`. A copy may have been put back since a worker missed it,
 * and the next start of a worker looks for it again, so a missing copy is only mentioned.
 */
async function tellHoldOfRestored(sql: Sql): Promise<0 | 1> {
  const { hold, missingCopies } = await findObstacles(sql);
  for (const { message } of missingCopies)
    process.stderr.write(`When a worker last looked for it: ${message}\n`);
  if (hold === undefined) return 0;
  process.stderr.write(`Nothing is dealt yet: ${hold}\n`);
  return 1;
}

/** @returns the exit status: 0 if outcomes can be dealt from all cells, 1 if not */
export async function recoverCells(
  urls: StoreUrls,
  options: {
    readonly check: boolean;
    readonly replace: boolean;
    readonly restored: boolean;
    readonly allowVolatile: boolean;
    readonly clockSkewMaxS: number;
    readonly positionFile: string | undefined;
    readonly resume: readonly string[];
    readonly json: boolean;
  },
): Promise<number> {
  if (options.check && (options.replace || options.restored || options.resume.length > 0)) {
    throw new UsageError(
      "--check changes nothing, so it can't be combined with --replace, --restored or --resume",
    );
  }
  const resume = options.resume.map((cell) => whole(cell, '--resume'));
  const { sql, nodes } = await openStores(urls);
  try {
    nodes.writtenFormat = (await installation(sql)).format;
    const { position, damage, path } = await findPosition(sql, options.positionFile);
    if (damage !== undefined) process.stderr.write(`The position file ${path} can't be read: ${damage}\n`);
    const states = await recover(sql, nodes, {
      isCheck: options.check,
      isToReplace: options.replace,
      ...(options.restored && {
        restored: { floors: floorsOf(position, (await installation(sql)).datasetId) },
      }),
      isVolatileAllowed: options.allowVolatile,
      clocks: { now: Date.now, skewMaxMs: options.clockSkewMaxS * 1000 },
      resume,
      progress: (line) => void process.stderr.write(`${line}\n`),
    });
    if (options.restored && states.every(isWell)) {
      await acceptPositions(sql, position?.id);
      process.stderr.write(
        'Next: start the processes of the service, wait until /statusz is 200, and run `spindle audit`.\n',
      );
    }
    const line = ({ cell, state, note }: CellState): string =>
      `cell ${String(cell).padStart(3)}  ${state.padEnd(8)} ${note}`.trimEnd();
    process.stdout.write(options.json ? `${JSON.stringify(states)}\n` : `${states.map(line).join('\n')}\n`);
    let held: 0 | 1 = 0;
    if (options.check) held = await tellHold(sql);
    else if (options.restored) held = await tellHoldOfRestored(sql);
    return states.every(isWell) ? held : 1;
  } finally {
    nodes.close();
    await sql.end();
  }
}
