/**
 * Rebuilds a cell of Redis, claimed before (prepare.ts), from the ledger.
 *
 *   fenced ──> voided (Postgres: next epoch; leased and not booked outcomes are given up, in writing) ──> cleared
 *     ──> partners ──> players ──> requests ──> games ──> installed (the epoch, last of all) ──> recorded
 *
 * Ended anywhere, it is begun again from the start, under another epoch. What a slower worker still writes is refused:
 * by the fence in Redis, and by the fence in Postgres.
 */

import {
  FINGERPRINT_BYTES,
  REQUEST_KEY_BYTES,
  writeFingerprint,
  writeRequestKey,
} from '../cells/batchCodec.js';
import { entryTimeMs, firstIdAt } from '../domain/entryId.js';
import { entryOfCode } from '../domain/ledgerEntry.js';
import type { OnFailpoint } from '../failpoints.js';
import type { CellLease } from '../postgres/cells.js';
import type { Sql } from '../postgres/client.js';
import {
  beginRecovery,
  type PlayerState,
  partnerNets,
  readCheckpoint,
  readEntriesFrom,
  recordRecovery,
  resumptionsOf,
  uncheckedFrom,
} from '../postgres/recoveries.js';
import type { RedisClient } from '../redis/client.js';
import {
  cellKey,
  cellKeysPattern,
  gamesKey,
  idempotencyKey,
  partnersKey,
  playerField,
  playersKey,
} from '../redis/keys.js';
import {
  adjustmentFingerprint,
  adjustmentKey,
  NO_TOTALS,
  writeBooked,
  writeBound,
  writeGame,
  writeLast,
  writePartner,
  writePlayer,
} from '../redis/records.js';
import { type CellOwner, cellToken, type Scripts } from '../redis/scripts.js';
import type { Unfit } from './handshake.js';

export interface RebuildOptions {
  readonly idempotencyPeriodSeconds: number;
  readonly onFailpoint: OnFailpoint;
}

/** What a rebuild came to. */
export interface Rebuilt {
  readonly lease: CellLease;
  readonly voided: number;
  readonly players: number;
  readonly requests: number;
  readonly seconds: number;
}

interface Parts extends RebuildOptions {
  readonly sql: Sql;
  readonly redis: RedisClient;
  readonly scripts: Scripts;
}

/** @throws OutrunError, FencedError where another owner came. Any other error: a store failed. */
export async function rebuild(
  parts: Parts,
  lease: CellLease,
  owner: CellOwner,
  { reason, token }: Unfit,
): Promise<Rebuilt> {
  const { sql, redis, scripts, onFailpoint } = parts;
  const { cell } = lease;
  const started = performance.now();
  const begun = await beginRecovery(sql, lease, reason, BigInt(token?.split(':')[1] ?? 0));
  onFailpoint('recovery.voided');
  await scripts.claimCell(owner, await keysOf(redis, cell));
  onFailpoint('recovery.cleared');
  const filled = { players: 0, requests: 0 };
  const record = (step: string, isFinished = false): Promise<void> =>
    recordRecovery(sql, begun.lease, { step, isFinished, ...filled });

  await fillPartners(parts, owner);
  onFailpoint('recovery.partners');
  await record('players and requests');
  const progress = setInterval(() => record('players and requests').catch(() => {}), PROGRESS_MS);
  try {
    await fillPlayersAndRequests(parts, owner, filled);
  } finally {
    clearInterval(progress);
  }
  await record('games');
  await fillGames(parts, owner);
  onFailpoint('recovery.games');

  const { cursorId } = begun.lease;
  const [seconds, microseconds] = await redis.time();
  // Ids go on after all that is booked, and after all that was acknowledged and is lost.
  const nowMs = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  const last = writeLast(Math.max(entryTimeMs(cursorId), nowMs));
  const booked = writeBooked({ id: cursorId, totals: NO_TOTALS });
  const epoch = cellToken(begun.lease.token, owner.serverId!);
  await scripts.fencedSet(owner, cellKey(cell), ['last', last, 'booked', booked, 'epoch', epoch]);
  onFailpoint('recovery.installed');
  await record('finished', true);
  onFailpoint('recovery.recorded');
  return { ...begun, ...filled, seconds: (performance.now() - started) / 1000 };
}

/** All keys of a cell but {@link cellKey}. */
async function keysOf(redis: RedisClient, cell: number): Promise<string[]> {
  const keys = new Set<string>();
  let cursor = '0';
  do {
    const [next, found] = await redis.scan(cursor, 'MATCH', cellKeysPattern(cell), 'COUNT', 1000);
    for (const key of found) keys.add(key);
    cursor = next;
  } while (cursor !== '0');
  keys.delete(cellKey(cell));
  return [...keys];
}

async function fillPartners({ sql, scripts }: Parts, owner: CellOwner): Promise<void> {
  const filler = new Filler(scripts, owner);
  for (const { partnerId, netMicros } of await partnerNets(sql, owner.cell)) {
    filler.set(partnersKey(owner.cell), String(partnerId), writePartner(netMicros));
  }
  await filler.finish();
}

/**
 * A slot game goes on after all that was ever leased, a raffle at the ticket after the last one that is booked; with an empty
 * queue: the block keeper fills it.
 */
async function fillGames({ sql, scripts }: Parts, owner: CellOwner): Promise<void> {
  const filler = new Filler(scripts, owner);
  for (const { gameId, nextIndex, queueEnd } of await resumptionsOf(sql, owner.cell)) {
    filler.set(gamesKey(owner.cell), String(gameId), writeGame(nextIndex, queueEnd));
  }
  await filler.finish();
}

async function fillPlayersAndRequests(
  { sql, redis, scripts, idempotencyPeriodSeconds, onFailpoint }: Parts,
  owner: CellOwner,
  filled: { players: number; requests: number },
): Promise<void> {
  const { cell } = owner;
  const filler = new Filler(scripts, owner);
  const [seconds] = await redis.time();
  const period = Math.floor(Number(seconds) / idempotencyPeriodSeconds);
  const boundFrom = firstIdAt((period - 1) * idempotencyPeriodSeconds * 1000);
  const unchecked = await uncheckedFrom(sql, cell);
  const players = new Map<string, PlayerState>();
  const pause = (): Promise<void> => filler.pause();

  // One pass over what no checkpoint holds and what binds.
  await readEntriesFrom(
    sql,
    cell,
    unchecked === undefined || boundFrom < unchecked ? boundFrom : unchecked,
    (row) => {
      const entryId = row.big(0);
      const partnerId = row.int(1);
      const playerId = row.text(2);
      if (unchecked !== undefined && entryId >= unchecked) {
        const field = playerField(partnerId, playerId);
        const known = players.get(field);
        const entryNumber = row.int(3);
        const firstId = entryOfCode(row.int(8)).opensPlayer ? entryId : known?.firstId;
        if (known === undefined || known.entryId < entryId) {
          players.set(field, {
            partnerId,
            playerId,
            entryId,
            entryNumber,
            outcomeCode: row.int(4),
            balanceMicros: row.safe(5),
            firstId,
          });
        } else if (firstId !== known.firstId) {
          players.set(field, { ...known, firstId });
        }
      }
      if (entryId >= boundFrom && !row.isNull(7)) {
        const [key, fingerprint] =
          entryOfCode(row.int(8)).requestIds === 'adjustments'
            ? [adjustmentKey(partnerId, row.text(7)), adjustmentFingerprint(playerId, row.safe(9))]
            : spinBinding(partnerId, row.text(7), row.int(6), playerId);
        const entryPeriod = Math.floor(entryTimeMs(entryId) / 1000 / idempotencyPeriodSeconds);
        const bound = writeBound(entryId, row.int(4), row.safe(5), fingerprint);
        filler.set(idempotencyKey(cell, entryPeriod), key, bound);
        filled.requests++;
      }
    },
    pause,
  );
  await filler.finish();
  onFailpoint('recovery.requests');

  const fill = (player: PlayerState): void => {
    const { partnerId, playerId, firstId } = player;
    if (firstId === undefined)
      throw new Error(`Player ${partnerId}:${playerId} has no first entry in the ledger`);
    filler.set(playersKey(cell), playerField(partnerId, playerId), writePlayer({ ...player, firstId }));
    filled.players++;
  };
  await readCheckpoint(
    sql,
    cell,
    (player) => {
      const field = playerField(player.partnerId, player.playerId);
      const later = players.get(field);
      players.delete(field);
      fill(later === undefined ? player : { ...later, firstId: player.firstId });
    },
    pause,
  );
  for (const player of players.values()) {
    fill(player);
    if (filler.isBusy) await filler.pause();
  }
  await filler.finish();
  onFailpoint('recovery.players');
}

/** How the requestId of a spin is named, and what it binds to beside its entry. */
function spinBinding(
  partnerId: number,
  requestId: string,
  gameId: number,
  playerId: string,
): [key: Buffer, fingerprint: Buffer] {
  const key = Buffer.allocUnsafe(REQUEST_KEY_BYTES);
  writeRequestKey(key, 0, partnerId, requestId);
  const fingerprint = Buffer.allocUnsafe(FINGERPRINT_BYTES);
  writeFingerprint(fingerprint, 0, gameId, playerId);
  return [key, fingerprint];
}

/** How often it is written down how far a long rebuild is. */
const PROGRESS_MS = 1000;

const FIELDS_A_CALL = 500;
const CALLS_MAX = 16;

/** Fills hashes of a cell with many fields: several calls are under way at a time. */
class Filler {
  readonly #scripts: Scripts;
  readonly #owner: CellOwner;
  readonly #gathered = new Map<string, (string | Buffer)[]>();
  readonly #calls = new Set<Promise<void>>();
  #failure: unknown;

  constructor(scripts: Scripts, owner: CellOwner) {
    this.#scripts = scripts;
    this.#owner = owner;
  }

  set(key: string, field: string | Buffer, value: Buffer): void {
    const fields = this.#gathered.get(key) ?? [];
    if (fields.length === 0) this.#gathered.set(key, fields);
    fields.push(field, value);
    if (fields.length >= FIELDS_A_CALL * 2) this.#send(key, fields);
  }

  #send(key: string, fields: (string | Buffer)[]): void {
    this.#gathered.delete(key);
    const call = this.#scripts
      .fencedSet(this.#owner, key, fields)
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => this.#calls.delete(call));
    this.#calls.add(call);
  }

  get isBusy(): boolean {
    return this.#calls.size >= CALLS_MAX;
  }

  /** Waits while too many calls are under way. @throws what one of them threw. */
  async pause(): Promise<void> {
    while (this.isBusy && this.#failure === undefined) await Promise.race(this.#calls);
    if (this.#failure !== undefined) throw this.#failure;
  }

  async finish(): Promise<void> {
    for (const [key, fields] of this.#gathered) this.#send(key, fields);
    await Promise.all(this.#calls);
    if (this.#failure !== undefined) throw this.#failure;
  }
}
