/** Tests the reader of COPY data in binary format, with chunks of the data that end anywhere. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type CopyRow, CopyRows, readRows } from '../../src/postgres/copy.js';

interface Row {
  readonly id: number;
  readonly second: Uint8Array;
  readonly third: Uint8Array;
}

const rowsOf = (lengthMax: number): fc.Arbitrary<Row[]> =>
  fc.array(
    fc.record({
      id: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
      second: fc.uint8Array({ maxLength: lengthMax, size: 'max' }),
      third: fc.uint8Array({ maxLength: 20 }),
    }),
    { maxLength: 12 },
  );

function bytesOf(rows: readonly Row[]): Buffer {
  const copy = new CopyRows();
  for (const { id, second, third } of rows) copy.add(id, Buffer.from(second), Buffer.from(third));
  return Buffer.from(copy.end());
}

/** Yields the bytes in chunks that end at the given shares of the total length. */
async function* pieces(bytes: Buffer, shares: readonly number[]): AsyncGenerator<Buffer> {
  const cuts = shares.map((share) => Math.floor(share * bytes.length)).sort((a, b) => a - b);
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    yield Buffer.from(bytes.subarray(from, to));
    from = to;
  }
}

const shares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 40 });

test('reads COPY rows correctly from any chunks, and views of their fields stay valid', async () => {
  await fc.assert(
    fc.asyncProperty(rowsOf(3000), shares, async (rows, cuts) => {
      const read: { id: number; second: Buffer; third: Buffer }[] = [];
      const take = (row: CopyRow): void => {
        read.push({ id: row.int(0), second: row.bytes(1), third: row.bytes(2) });
      };
      await readRows(pieces(bytesOf(rows), cuts), take);
      expect(read).toEqual(
        rows.map(({ id, second, third }) => ({ id, second: Buffer.from(second), third: Buffer.from(third) })),
      );
    }),
  );
});

test('rejects COPY data that ends anywhere before the end of the last row', async () => {
  const bytes = bytesOf([{ id: 1, second: Buffer.alloc(5, 7), third: Buffer.alloc(0) }]);
  for (let length = 0; length < bytes.length - 2; length++) {
    // Data that ends after the header or after a whole row lacks only the end marker, which the driver
    // checks.
    if (length === 19) continue;
    const cut = bytes.subarray(0, length);
    await expect(
      readRows(pieces(cut, [0.5]), () => {}),
      String(length),
    ).rejects.toThrow('COPY ended in the middle of a row');
  }
});
