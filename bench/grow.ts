/**
 * Puts great numbers into a running service: games over its API; players and bound requestIds as records that are written
 * straight into Redis, because by spins ten million of them take ten minutes. The records are those of the scripts
 * (redis/records.ts, batch.ts); that the service takes them for its own is asked of it afterwards.
 *
 * What Redis takes for each is the growth of its `used_memory` over their number: all of it, allocator's rounding and
 * tables of a hash that is just being enlarged included.
 */
import { randomFillSync } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { writeFingerprint } from '../src/cells/batch.js';
import { bodyOf } from '../src/client/client.js';
import { firstIdAt } from '../src/domain/entryId.js';
import { FINGERPRINT_BYTES } from '../src/domain/layouts.js';
import { REQUEST_KEY_BYTES, writeRequestKey } from '../src/domain/requestKey.js';
import { cellKey, idempotencyKey, playerField, playersKey } from '../src/redis/keys.js';
import { writeBound, writePlayer } from '../src/redis/records.js';
import { readSegments, segmentNumbers } from '../src/redis/segmentRecords.js';
import { rawRedis } from '../test/support/redis.js';
import { pause } from '../test/support/wait.js';
import type { Grown } from './measurement.js';
import { playerName } from './players.js';
import type { Period } from './scenarios.js';
import type { Service } from './service.js';
import type { Stores } from './stores.js';

const FIELDS_A_CALL = 1000;
const CALLS_UNDER_WAY = 32;
const OPENING_MICROS = 1_000_000_000;

export async function grow(
  service: Service,
  { games, players, requestIds }: NonNullable<Period['grow']>,
): Promise<Grown> {
  const { stores } = service;
  await isSettled(stores);
  const startedMs = performance.now();
  const bytesBefore = await usedMemory(stores);
  const outcomesBefore = await service.outcomesReady();
  if (games !== undefined) await service.growGames(games);
  const added = players === undefined ? 0 : await addPlayers(service, players);
  if (requestIds !== undefined) await bindRequestIds(service, requestIds);
  await isSettled(stores);
  const grownBytes = (await usedMemory(stores)) - bytesBefore;
  const [what, count] =
    games !== undefined
      ? ['queued outcomes', (await service.outcomesReady()) - outcomesBefore]
      : players !== undefined
        ? ['players', added]
        : ['bound requestIds', requestIds!];
  if (players !== undefined) await knowsPlayer(service, players - 1);
  if (requestIds !== undefined) await replays(service);
  return { what, count, bytesEach: grownBytes / count, seconds: (performance.now() - startedMs) / 1000 };
}

async function usedMemory({ redis }: Stores): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))![1]);
}

/** Waits until Redis does not write its log anew: that takes memory and time of its own. */
async function isSettled({ redis }: Stores): Promise<void> {
  while (/^aof_rewrite_(in_progress|scheduled):1/m.test(await redis.info('persistence'))) await pause(100);
}

async function cellOf({ stores, partners }: Service): Promise<number> {
  const [row] = await stores.ask<{ cell: number }>(
    `SELECT cell FROM partners WHERE partner_id = ${partners[0]!.partnerId}`,
  );
  return row!.cell;
}

/**
 * Players as those that were seen once, up to `count` with those that are there, which have the numbers from 0 on.
 * @returns how many were added.
 */
async function addPlayers(service: Service, count: number): Promise<number> {
  const key = playersKey(await cellOf(service));
  const { partnerId } = service.partners[0]!;
  const entryId = firstIdAt(Date.now());
  const record = writePlayer({
    entryId,
    outcomeCode: 0,
    balanceMicros: OPENING_MICROS,
    entryNumber: 1,
    firstId: entryId,
  });
  const filler = await Filler.open(service.stores.redisUrl);
  const known = await service.stores.redis.hlen(key);
  for (let from = known; from < count; from += FIELDS_A_CALL) {
    const fields: Buffer[] = [];
    for (let number = from; number < Math.min(count, from + FIELDS_A_CALL); number++)
      fields.push(Buffer.from(playerField(partnerId, playerName(number)), 'latin1'), record);
    await filler.set(key, fields);
  }
  await filler.close();
  return count - known;
}

/** The key of the segment that the cell's spins bind their requestIds in. */
async function writtenSegment(service: Service): Promise<string> {
  const cell = await cellOf(service);
  const redis = rawRedis(service.stores.redisUrl);
  const segments = readSegments((await redis.hgetBuffer(cellKey(cell), 'segments'))!);
  redis.disconnect();
  return idempotencyKey(cell, segmentNumbers(segments).at(-1)!);
}

const BOUND_ID = 'bound-beforehand';

/** One that is asked for afterwards, and random ones: the names of requestIds are hashes. */
async function bindRequestIds(service: Service, count: number): Promise<void> {
  const key = await writtenSegment(service);
  const { partnerId } = service.partners[0]!;
  const fingerprint = Buffer.alloc(FINGERPRINT_BYTES);
  writeFingerprint(fingerprint, 0, service.targets[0]!.gameId, playerName(0));
  const bound = writeBound(firstIdAt(Date.now()), 0, OPENING_MICROS, fingerprint);
  const asked = Buffer.alloc(REQUEST_KEY_BYTES);
  writeRequestKey(asked, 0, partnerId, BOUND_ID);
  const filler = await Filler.open(service.stores.redisUrl);
  await filler.set(key, [asked, bound]);
  for (let made = 1; made < count; ) {
    const names = Math.min(FIELDS_A_CALL, count - made);
    const random = randomFillSync(Buffer.allocUnsafe(names * REQUEST_KEY_BYTES));
    const fields: Buffer[] = [];
    for (let at = 0; at < random.length; at += REQUEST_KEY_BYTES)
      fields.push(random.subarray(at, at + REQUEST_KEY_BYTES), bound);
    await filler.set(key, fields);
    made += names;
  }
  await filler.close();
}

/** @throws where the service does not know a player that was put in. */
async function knowsPlayer({ api, targets }: Service, number: number): Promise<void> {
  const params = { path: { playerId: playerName(number) } };
  await bodyOf(api.partner(targets[0]!.apiKey).GET('/players/{playerId}', { params }));
}

/** @throws where the service does not take a requestId that was put in for bound. */
async function replays({ api, targets }: Service): Promise<void> {
  const { apiKey, gameId, wagerUsd } = targets[0]!;
  const body = { gameId, playerId: playerName(0), wagerUsd, requestId: BOUND_ID };
  const { response, error } = await api.partner(apiKey).POST('/spin', { body });
  if (response.headers.get('Idempotent-Replayed') !== 'true') {
    const text = JSON.stringify(error);
    throw new Error(`A requestId that was put into Redis is not bound: ${response.status} ${text}`);
  }
}

/** Sets many fields of hashes: Redis's own protocol, written in whole calls, many under way at a time. */
class Filler {
  readonly #socket: Socket;
  #underWay = 0;
  #failure: Error | undefined;

  static async open(url: string): Promise<Filler> {
    const { hostname, port, password } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    const filler = new Filler(socket);
    filler.#send([Buffer.from('AUTH'), Buffer.from(decodeURIComponent(password))]);
    return filler;
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('error', (error) => {
      this.#failure ??= error;
    });
    // Each answer is one line.
    socket.on('data', (answers) => {
      const text = answers.toString('latin1');
      if (text.includes('-ERR') || text.includes('-OOM')) this.#failure ??= new Error(text);
      this.#underWay -= text.split('\n').length - 1;
      socket.emit('answered');
    });
  }

  /** @param fields name, value, name, value, … */
  async set(key: string, fields: readonly Buffer[]): Promise<void> {
    await this.#atMost(CALLS_UNDER_WAY - 1);
    this.#send([Buffer.from('HSET'), Buffer.from(key), ...fields]);
  }

  async close(): Promise<void> {
    await this.#atMost(0);
    this.#socket.destroy();
  }

  #send(parts: readonly Buffer[]): void {
    this.#underWay++;
    const bytes = parts.reduce((sum, part) => sum + part.length + 16, 16);
    const call = Buffer.allocUnsafe(bytes);
    let at = call.write(`*${parts.length}\r\n`, 'latin1');
    for (const part of parts) {
      at += call.write(`$${part.length}\r\n`, at, 'latin1');
      at += part.copy(call, at);
      at += call.write('\r\n', at, 'latin1');
    }
    this.#socket.write(call.subarray(0, at));
  }

  async #atMost(calls: number): Promise<void> {
    while (this.#underWay > calls && this.#failure === undefined) await once(this.#socket, 'answered');
    if (this.#failure !== undefined) throw this.#failure;
  }
}
