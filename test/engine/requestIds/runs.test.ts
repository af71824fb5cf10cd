/** Tests runs of request ids in Postgres: they are written from committed entries, merged and searched. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeEntryId } from '../../../src/domain/entryId.js';
import { RequestFilter } from '../../../src/domain/requestFilter.js';
import { RequestPairs } from '../../../src/domain/requestPairs.js';
import { findInBlock, REQUEST_HASH_BYTES } from '../../../src/domain/requestRun.js';
import { FencedError } from '../../../src/engine/cells/cells.store.js';
import { install } from '../../../src/engine/recovery/installation.store.js';
import { RequestRunReads } from '../../../src/engine/requestIds/requestRunReads.store.js';
import {
  mergeRuns,
  requestRuns,
  runsWatermarkOf,
  writeRun,
} from '../../../src/engine/requestIds/requestRuns.store.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import type { Sql } from '../../../src/postgres/connection.js';
import { world } from '../../setup/world.js';

/**
 * Numbers of ids in the runs. The largest run has several pages of blocks, and each other run has only a part
 * of a page.
 */
const SIZES = [90_000, 1, 400, 31_000, 7, 2_000];
const SAME = hashOf('same');

const { stores } = world();
let sql: Sql;

beforeAll(async () => {
  sql = connectPostgres(stores.databaseUrl, { max: 2, name: 'runs', onError: () => {} });
  await install(sql, { cells: 1, idempotencyTtlSeconds: 86_400 });
});

afterAll(async () => {
  await sql.end();
});

function hashOf(name: string): Buffer {
  return createHash('sha256').update(name).digest().subarray(0, REQUEST_HASH_BYTES);
}

const idOf = (run: number, i: number): bigint =>
  makeEntryId({ timeMs: 1_800_000_000_000 + run * 1_000_000 + i, cell: 0, sequence: 1 });

/** The last request id of every run has the same hash. */
const nameOf = (run: number, i: number): string => (i === SIZES[run]! - 1 ? 'same' : `request-${run}-${i}`);

function pairsOf(run: number): RequestPairs {
  const pairs = new RequestPairs();
  for (let i = 0; i < SIZES[run]!; i++) {
    const hash = hashOf(nameOf(run, i));
    const id = idOf(run, i);
    pairs.add(hash.readUInt32BE(0), hash.readUInt32BE(4), Number(id >> 32n), Number(id & 0xffff_ffffn));
  }
  return pairs;
}

async function found(hash: Buffer): Promise<bigint[]> {
  const blocks = await new RequestRunReads(sql).blocksOf(await requestRuns(sql), hash);
  return blocks!.flatMap((block) => findInBlock(block, hash)).sort((a, b) => (a < b ? -1 : 1));
}

async function eachIsFound(): Promise<void> {
  for (let run = 0; run < SIZES.length; run++) {
    const step = Math.ceil(SIZES[run]! / 40);
    for (let i = 0; i < SIZES[run]! - 1; i += step)
      expect(await found(hashOf(nameOf(run, i)))).toEqual([idOf(run, i)]);
  }
  expect(await found(SAME)).toEqual(SIZES.map((size, run) => idOf(run, size - 1)));
  expect(await found(hashOf('never'))).toEqual([]);
}

test('every committed request id is in its run, in the merged run and in the filter, even if hashes are equal', async () => {
  await sql`UPDATE cells SET cursor_id = ${idOf(SIZES.length, 0)}`;
  let from = 0n;
  for (let run = 0; run < SIZES.length; run++) {
    const to = idOf(run, SIZES[run]! - 1);
    const due = { cell: 0, fence: 0n, from, to, pairs: pairsOf(run) };
    const step = await writeRun(
      sql,
      [due],
      async () => {},
      () => {},
    );
    expect(step).toEqual({ ids: SIZES[run], isMore: false });
    expect(await runsWatermarkOf(sql, 0)).toBe(to);
    from = to;
  }
  await eachIsFound();
  const runs = await requestRuns(sql);
  expect(runs.map(({ ids }) => ids)).toEqual(SIZES);
  const merge = (fence: bigint): Promise<void> => mergeRuns(sql, { cell: 0, fence }, runs, async () => {});
  await expect(merge(7n)).rejects.toThrow(FencedError);
  expect(await requestRuns(sql)).toEqual(runs);
  await merge(0n);
  const [merged, ...more] = await requestRuns(sql);
  expect(more).toEqual([]);
  expect(merged).toMatchObject({ fromId: 0n, toId: from, ids: SIZES.reduce((sum, size) => sum + size, 0) });
  await eachIsFound();
  // The merged runs are gone, and no pair was lost or duplicated.
  const [blocks] = await sql<{ pairs: bigint; runs: bigint }[]>`
    SELECT sum(octet_length(pairs)) / 16 AS pairs, count(DISTINCT run_id) AS runs FROM request_blocks`;
  expect(blocks).toEqual({ pairs: BigInt(merged!.ids), runs: 1n });
  let filter: RequestFilter | undefined;
  await new RequestRunReads(sql).read((read) => ({
    wanted: read.runs,
    take: (run, at, bits) => {
      filter ??= new RequestFilter(run.filterBytes);
      filter.take(at, bits);
    },
    end: () => {},
  }));
  for (let run = 0; run < SIZES.length; run++)
    for (let i = 0; i < SIZES[run]!; i++) {
      const hash = hashOf(nameOf(run, i));
      if (!filter!.mayHave(hash.readUInt32BE(0), hash.readUInt32BE(4)))
        throw new Error(`The filter does not know ${nameOf(run, i)}`);
    }
});

test("a former owner can't write a run, and nobody can write a run that begins at a wrong watermark", async () => {
  const [runs, reach] = [await requestRuns(sql), await runsWatermarkOf(sql, 0)];
  await sql`UPDATE cells SET cursor_id = ${idOf(SIZES.length + 2, 0)}`;
  const to = idOf(SIZES.length + 1, 0);
  for (const wrong of [
    { fence: 1n, from: reach },
    { fence: 0n, from: reach - 1n },
  ]) {
    const due = { cell: 0, to, pairs: pairsOf(2), ...wrong };
    const writing = writeRun(
      sql,
      [due],
      async () => {},
      () => {},
    );
    await expect(writing).rejects.toThrow(FencedError);
  }
  expect([await requestRuns(sql), await runsWatermarkOf(sql, 0)]).toEqual([runs, reach]);
});
