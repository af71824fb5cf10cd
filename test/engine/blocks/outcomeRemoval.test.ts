/**
 * Tests the removal of outcomes of exhausted blocks in the background. Proofs and reveals draw the outcomes
 * again, and the audit reports outcomes that can't be drawn again.
 */
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { audit } from '../../../src/books/audit/audit.js';
import { BLOCK_OUTCOMES_MIN } from '../../../src/engine/blocks/blockMakers.js';
import {
  markExhausted,
  OUTCOMES_KEPT_DAYS,
  removeOutcomes,
} from '../../../src/engine/blocks/spentOutcomes.store.js';
import { world } from '../../setup/world.js';
import { load, portOf, spinRequest } from '../../support/load.js';
import { openNodes } from '../../support/redis.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const { stores, service, ownSql: sql } = world({ CELLS: '1' });
let raw: postgres.Sql;
let key: string;
let gameId: number;
let blockSize: number;
const spinIds: string[] = [];

beforeAll(async () => {
  raw = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  const partner = await service.newPartner({ spinRateLimit: 1_000_000 });
  key = partner.key;
  gameId = await service.newGame(key, parSheet('classic-3-reel'), 2 * BLOCK_OUTCOMES_MIN);
  const prizes = [{ prizeName: 'Mug', prizeTier: 2, valueUsd: 1, count: 1 }];
  const raffle = { ticketPriceUsd: 1, poolSize: 2, prizes };
  const raffleId = await service.api.newRaffle(partner.partnerId, 'sold-out', raffle);
  for (const playerId of ['a', 'b'])
    expect((await service.spin(key, { gameId: raffleId, playerId, wagerUsd: 1 })).status).toBe(200);
  const [row] = await raw`SELECT to_index FROM blocks WHERE game_id = ${gameId} AND from_index = 0`;
  blockSize = Number(row!.to_index);
  let due = blockSize + 1;
  const next = (): Buffer | undefined =>
    due-- > 0
      ? spinRequest(key, JSON.stringify({ gameId, playerId: `p${due % 50}`, wagerUsd: 0.25 }))
      : undefined;
  const onAnswer = ({ status, text }: { status: number; text: string }): void => {
    expect(status, text).toBe(200);
    spinIds.push((JSON.parse(text) as { spinId: string }).spinId);
  };
  await load({ port: portOf(service.base), connections: 16, next, onAnswer });
  await until(async () => {
    const [progress] = await raw`SELECT next_index FROM game_progress WHERE game_id = ${gameId}`;
    return Number(progress?.next_index ?? 0) > blockSize;
  }, 'the first block is booked');
});

afterAll(async () => {
  await raw?.end();
});

const ask = (path: string) =>
  service.request<Record<string, unknown>>('GET', `/api/partner/v1${path}`, { key });
const kept = async (): Promise<number[]> =>
  (await raw`SELECT octet_length(outcomes) AS bytes FROM blocks ORDER BY game_id, from_index`).map(
    ({ bytes }) => bytes as number,
  );
async function findings(redraw = false) {
  const { nodes, close } = await openNodes(stores.redisUrl);
  try {
    const report = await audit(sql, nodes, { limit: 9, redraw, onProgress: () => {} });
    expect(report.interrupted).toBeUndefined();
    return report.checks.flatMap(({ listed }) => listed);
  } finally {
    close();
  }
}

describe.sequential('removal of the outcomes of an exhausted block', () => {
  /** Proof of the first spin, taken while the outcomes of its block were still stored. */
  let proof: Record<string, unknown>;
  let block: Record<string, unknown>;
  const proofOf = async (spinId: string) => {
    const { status, body } = await ask(`/spins/${spinId}/proof`);
    expect(status).toBe(200);
    // The inclusion proof is not compared, because it changes as the checkpoint grows.
    const { tlogProof: _, ...rest } = body;
    return rest;
  };
  const blockOf = async () => {
    const { reveal, outcomes } = (await ask(`/games/${gameId}/blocks/0?outcomes=true`)).body;
    return { reveal, outcomes };
  };

  test('keeps the outcomes of a block until the block is exhausted and some days have passed', async () => {
    [proof, block] = [await proofOf(spinIds[0]!), await blockOf()];
    expect(block.reveal).not.toBeNull();
    const before = await kept();
    // Marks the block in case the service has not marked it yet.
    await markExhausted(sql);
    expect(await markExhausted(sql)).toBe(0);
    expect(await raw`SELECT game_id, from_index::int FROM blocks WHERE exhausted_at IS NOT NULL`).toEqual([
      { game_id: gameId, from_index: 0 },
    ]);
    expect(await removeOutcomes(sql, OUTCOMES_KEPT_DAYS)).toBe(0);
    await raw`UPDATE blocks SET exhausted_at = exhausted_at - make_interval(days => ${OUTCOMES_KEPT_DAYS}, mins => 1)`;
    expect(await removeOutcomes(sql, OUTCOMES_KEPT_DAYS)).toBe(1);
    expect(await removeOutcomes(sql, OUTCOMES_KEPT_DAYS)).toBe(0);
    expect(await kept()).toEqual([0, ...before.slice(1)]);
  });

  test('draws removed outcomes again for proofs and for the reveal of the block', async () => {
    expect(await proofOf(spinIds[0]!)).toEqual(proof);
    expect(await blockOf()).toEqual(block);
    for (const spinId of spinIds.slice(-3)) await proofOf(spinId);
  });

  test('the audit draws removed outcomes again and finds no problem', async () => {
    expect(await findings()).toEqual([]);
    expect(await findings(true)).toEqual([]);
  });

  test('the audit reports both the block and its spins if the seed of a block with removed outcomes was changed', async () => {
    const flip = () => raw`
      UPDATE blocks SET seed = set_byte(seed, 0, get_byte(seed, 0) # 1) WHERE game_id = ${gameId} AND from_index = 0`;
    await flip();
    const problems = (await findings()).map(({ problem }) => problem);
    await flip();
    expect(problems).toContain('the commitment does not match the block');
    expect(problems).toContain('the outcome differs from the sealed outcome');
  });

  test('the audit reports a block whose outcomes were removed before all of them were dealt', async () => {
    const [row] = await raw`
      SELECT from_index, outcomes FROM blocks WHERE game_id = ${gameId} AND from_index = ${blockSize}`;
    await raw`
      UPDATE blocks SET outcomes = ''::bytea, exhausted_at = now() WHERE game_id = ${gameId} AND from_index = ${blockSize}`;
    expect((await findings()).map(({ problem }) => problem)).toContain(
      'the outcomes were removed before all were dealt',
    );
    await raw`
      UPDATE blocks SET outcomes = ${row!.outcomes}, exhausted_at = NULL WHERE game_id = ${gameId} AND from_index = ${blockSize}`;
    expect(await findings()).toEqual([]);
  });
});
