/** A partner, a game and batches of spins for tests of the operations in lua/. */
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Game, Partner } from '../../src/domain/game.js';
import { SLOT } from '../../src/domain/games/slot.js';
import { CORE } from '../../src/domain/layouts.js';
import { BatchEncoder, type BatchItem, KIND, type SpinItem } from '../../src/engine/cells/batch.js';
import { BatchReply } from '../../src/engine/cells/batchReply.js';
import type { Scripts } from '../../src/engine/redis/scripts.js';
import { ROOT } from './root.js';

export const CELL = 3;
export const GAME_ID = 9;
export const OUTBOX_MAX = { entries: 500, bytes: 1_000_000 };
let operations = 0;

export const partner: Partner = {
  partnerId: 7,
  slug: 'p',
  name: 'P',
  environment: 'sandbox',
  isActive: true,
  cell: CELL,
  spinRateLimit: 1000,
  apiRateLimit: 1000,
  openingBalanceMicros: 1_000_000,
  balanceMode: 'track',
  fundingMicros: null,
};
export const PAYOUTS = [0, 2_500_000, 77_000];
const table = Buffer.alloc(PAYOUTS.length * 8);
PAYOUTS.forEach((payout, code) => {
  table.writeBigInt64LE(BigInt(payout), code * 8);
});
export const game: Game = {
  gameId: GAME_ID,
  partnerId: 7,
  kind: SLOT,
  status: 'ACTIVE',
  wagerMicros: 250_000,
  maxPayoutMicros: 2_500_000,
  poolSize: 0,
  sealedAtMs: undefined,
  payoutTable: table,
  payoutMicros: PAYOUTS,
  fragments: [],
};

export const item = (more: Partial<SpinItem> = {}): SpinItem => ({
  kind: KIND.deal,
  isDenied: false,
  mayBeBound: false,
  partner,
  game,
  gameId: GAME_ID,
  playerId: 'alice',
  requestId: undefined,
  mayEqual: true,
  ...more,
});

/**
 * Sends a batch in one call.
 * @param options operation id, if not the next one, and epoch, if not 1
 */
export async function dealOnce(
  scripts: Scripts,
  items: BatchItem[],
  options: { operation?: number; epoch?: string; reach?: Buffer | undefined; answered?: Buffer } = {},
) {
  const partners: Partner[] = [];
  const operationId = Buffer.alloc(8);
  operationId.writeUInt32LE(options.operation ?? ++operations);
  const buffer = await scripts.command('deal', {
    cell: CELL,
    epoch: options.epoch ?? '1',
    operationField: 'op:test',
    operationId,
    ...(options.reach === undefined ? {} : { reach: options.reach }),
    ...(options.answered === undefined ? {} : { answered: options.answered }),
    args: [new BatchEncoder().encode(items, partners)],
  });
  const reply = new BatchReply(buffer, partners.length, items.length);
  return {
    buffer,
    reply,
    statuses: items.map((_, place) => reply.status(place)),
    tails: items.map((_, place) => reply.tail(place)?.toString()),
    cores: items.map((_, place) => buffer.subarray(reply.coreAt(place), reply.coreAt(place) + CORE.bytes)),
  };
}

/** Makes a copy of lua/ whose operations fail if they read after a write. */
export function watchedLua(): string {
  const dir = mkdtempSync(join(tmpdir(), 'spindle-watched-'));
  cpSync(join(ROOT, 'lua'), dir, { recursive: true });
  const library = join(dir, 'include', 'library.lua');
  const parts = readFileSync(library, 'utf8').split('local call = redis.call');
  if (parts.length !== 2) throw new Error('lua/include/library.lua has not one place that calls Redis');
  writeFileSync(library, parts.join(WATCHED_CALL.replaceAll('\n', ' ')));
  return dir;
}
const WATCHED_CALL = `
  local writes = { SET = true, HSET = true, XADD = true, UNLINK = true }
  local hasWritten = false
  local call = function(name, ...)
    if writes[name] then hasWritten = true
    elseif hasWritten then error(name .. ' is called after a write') end
    return redis.call(name, ...)
  end`;
