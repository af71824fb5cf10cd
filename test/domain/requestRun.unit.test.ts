import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { firstIdAt } from '../../src/domain/entryId.js';
import { PAIR_BYTES, RequestPairs } from '../../src/domain/requestPairs.js';
import { findInBlock, REQUEST_HASH_BYTES, RunWriter } from '../../src/domain/requestRun.js';
import type { RequestRun } from '../../src/engine/requestIds/requestRuns.store.js';
import { runsToMerge } from '../../src/engine/requestIds/runMerging.js';

const hashOf = (name: string): Buffer => createHash('sha256').update(name).digest().subarray(0, 16);

/** Writes a run, and returns its blocks, its filter and a function that looks up a hash. */
async function runOf(pairs: readonly (readonly [hash: Buffer, id: bigint])[]) {
  const blocks: { firstHash: Buffer; pairs: Buffer }[] = [];
  const writer = new RunWriter(pairs.length, ({ firstHash, pairs }) =>
    blocks.push({ firstHash: Buffer.from(firstHash), pairs: Buffer.from(pairs) }),
  );
  const unsorted = new RequestPairs();
  for (const [hash, id] of pairs)
    unsorted.add(hash.readUInt32BE(0), hash.readUInt32BE(4), Number(id >> 32n), Number(id & 0xffff_ffffn));
  await unsorted.writeTo(writer, async () => {});
  const find = (hash: Buffer): bigint[] => {
    const block = blocks.findLast(({ firstHash }) => firstHash.compare(hash, 0, REQUEST_HASH_BYTES) <= 0);
    return findInBlock(block!.pairs, hash);
  };
  return { blocks, filter: writer.filter, find };
}

test('finds every request id of a run, and its filter accepts all of these and few others', async () => {
  const count = 5000;
  const pairs = Array.from({ length: count }, (_, i) => [hashOf(`own-${i}`), BigInt(i + 1) << 20n] as const);
  const { blocks, filter, find } = await runOf(pairs);
  const isFound = ([hash, id]: readonly [Buffer, bigint]): boolean =>
    find(hash).join() === String(id) && filter.mayHave(hash.readUInt32BE(0), hash.readUInt32BE(4));
  expect(pairs.filter((pair) => !isFound(pair))).toEqual([]);
  const all = Buffer.concat(blocks.map((block) => block.pairs));
  const hashes = Array.from({ length: count }, (_, i) =>
    all.toString('hex', i * PAIR_BYTES, i * PAIR_BYTES + 8),
  );
  expect(hashes).toEqual([...hashes].sort());
  let wrong = 0;
  for (let i = 0; i < count; i++) {
    const hash = hashOf(`other-${i}`);
    if (find(hash).length > 0) wrong = count;
    if (filter.mayHave(hash.readUInt32BE(0), hash.readUInt32BE(4))) wrong++;
  }
  expect(wrong).toBeLessThan(count / 500);
});

test('a folded filter still accepts every request id of its run, but more false ones with each fold', async () => {
  const own = Array.from({ length: 3000 }, (_, i) => hashOf(`own-${i}`));
  const others = Array.from({ length: 2000 }, (_, i) => hashOf(`other-${i}`));
  const { filter } = await runOf(own.map((hash, i) => [hash, BigInt(i + 1)] as const));
  const known = (hashes: readonly Buffer[]): number =>
    hashes.filter((hash) => filter.mayHave(hash.readUInt32BE(0), hash.readUInt32BE(4))).length;
  const taken: number[] = [];
  while (filter.bytes.length > 32) {
    const { length } = filter.bytes;
    filter.fold();
    expect(filter.bytes.length).toBeLessThan(length);
    expect(known(own)).toBe(own.length);
    taken.push(known(others));
  }
  expect(taken).toEqual([...taken].sort((a, b) => a - b));
  // The filter has 12 bits for each id, so it wrongly accepts only a few percent of other ids.
  expect(taken[0]).toBeLessThan(others.length / 20);
  expect(taken.at(-1)).toBe(others.length);
});

test('finds all request ids whose hashes begin alike, however many there are', async () => {
  const same = hashOf('same');
  const pairs = Array.from({ length: 500 }, (_, i) => [same, BigInt(i + 1)] as const);
  // These hashes have the same first 32 bits, but differ in the rest.
  const near = Array.from({ length: 300 }, (_, i) => {
    const hash = Buffer.from(same);
    hash.writeUInt32BE((i * 2_654_435_761) >>> 0, 4);
    return [hash, BigInt(1000 + i)] as const;
  });
  const { find } = await runOf([...near, ...pairs]);
  expect(find(same).sort((a, b) => Number(a - b))).toEqual(pairs.map(([, id]) => id));
  for (const [hash, id] of near) expect(find(hash)).toContain(id);
});

test('merges runs of request ids so that few runs remain and each id is copied rarely', () => {
  const nowMs = Date.now();
  let runs: RequestRun[] = [];
  let copied = 0;
  for (let window = 0; window < 500; window++) {
    runs.push({
      runId: window,
      cell: 0,
      filterBytes: 3000,
      filterHash: 0n,
      ids: 1000,
      fromId: firstIdAt(nowMs + window),
      toId: firstIdAt(nowMs + window + 1),
    });
    for (let found = runsToMerge(runs, 1e6); found !== undefined; found = runsToMerge(runs, 1e6)) {
      const merged = found;
      const ids = merged.reduce((sum, run) => sum + run.ids, 0);
      copied += ids;
      const one = { ...merged[0]!, toId: merged.at(-1)!.toId, ids };
      runs = runs.flatMap((run) => (run === merged[0] ? [one] : merged.includes(run) ? [] : [run]));
    }
  }
  expect(runs.slice(1).map(({ fromId }) => fromId)).toEqual(runs.slice(0, -1).map(({ toId }) => toId));
  expect(runs.reduce((sum, { ids }) => sum + ids, 0)).toBe(500_000);
  expect(runs.length).toBeLessThan(32);
  expect(copied / 500_000).toBeLessThan(2.5);
});
