/**
 * Tests proof paths of the public log that are computed from cached tiles, which may come from an older or
 * different state of the log.
 */
import { expect, test } from 'vitest';
import { checkpointText } from '../../../src/domain/publicLog/checkpoints.js';
import { signatureLine, signerOf } from '../../../src/domain/publicLog/notes.js';
import { tileOf } from '../../../src/domain/publicLog/tiles.js';
import { inclusionPath, leafHash, MemoryTree } from '../../../src/domain/publicLog/tree.js';
import { LogTiles } from '../../../src/publicLog/log/logTiles.js';

const SIZE = 66_000;
const signer = signerOf('spindle.example/log', 'log', Buffer.alloc(32, 1));

/** A log whose records come from a function of the position. */
class Log {
  readonly tree: MemoryTree;
  readonly covering: { size: number; note: string };
  constructor(readonly record: (at: number) => Buffer) {
    this.tree = new MemoryTree(Array.from({ length: SIZE }, (_, at) => leafHash(record(at))));
    const text = checkpointText({ origin: signer.name, size: SIZE, root: this.tree.root() });
    this.covering = { size: SIZE, note: `${text}\n${signatureLine(text, signer)}` };
  }

  tile(level: number, index: number): Buffer {
    const width = Math.min(256, Math.floor(SIZE / 256 ** level) - 256 * index);
    return tileOf(level, index, width, this.tree.read);
  }
}

const log = new Log((at) => Buffer.from(`record ${at}`));
const other = new Log((at) => Buffer.from(`record ${at < 40_000 ? at : -at}`));

/** A store of a log's tiles that counts how many tiles were read. */
function stored(first: Log) {
  let now = first;
  let reads = 0;
  const tiles = async (_: number, places: readonly { level: number; index: number }[]) => {
    reads += places.length;
    return new Map(places.map(({ level, index }) => [`${level}/${index}`, now.tile(level, index)]));
  };
  const replace = (by: Log): void => {
    now = by;
  };
  return { tiles, replace, reads: () => reads };
}

test.each([0, 255, 256, 40_000, 65_535, 65_536, SIZE - 1])(
  'computes a valid proof of record %i of the public log from cached tiles',
  async (logIndex) => {
    const tiles = new LogTiles(stored(log));
    const path = await tiles.path({ logId: 1, logIndex }, log.record(logIndex), log.covering);
    expect(path).toEqual(inclusionPath(logIndex, SIZE, log.tree.read));
  },
);

test("reads a tile of the public log once, and again only if it doesn't prove a record", async () => {
  const store = stored(log);
  const tiles = new LogTiles(store);
  const place = { logId: 1, logIndex: 50_000 };
  await tiles.path(place, log.record(50_000), log.covering);
  const once = store.reads();
  await tiles.path({ ...place, logIndex: 50_001 }, log.record(50_001), log.covering);
  expect(store.reads()).toBe(once);
  store.replace(other);
  const path = await tiles.path(place, other.record(50_000), other.covering);
  expect(path).toEqual(inclusionPath(50_000, SIZE, other.tree.read));
  expect(store.reads()).toBe(2 * once);
});

test("gives no proof path that doesn't prove the record of the public log", async () => {
  const tiles = new LogTiles(stored(other));
  await expect(tiles.path({ logId: 1, logIndex: 50_000 }, log.record(50_000), log.covering)).rejects.toThrow(
    'The tiles do not prove record 50000 of the public log',
  );
});
