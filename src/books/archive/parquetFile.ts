/**
 * Reads and writes Parquet files one row group at a time, so that memory is bounded for a day of any size.
 * The compression library has a fixed version, so that the same rows give the same bytes on every machine and
 * Node version.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { compress, decompress, init } from '@bokuweb/zstd-wasm';
import {
  type AsyncBuffer,
  type FileMetaData,
  parquetMetadataAsync,
  parquetRead,
  type SchemaElement,
} from 'hyparquet';
import { ByteWriter, type ColumnSource, ParquetWriter } from 'hyparquet-writer';
import type { FileSeal } from '../../domain/ledgerDay.js';
import { openPrivate } from '../../platform/files.js';
import type { CopyRow } from '../../postgres/copy.js';

/** One group is held in memory at a time, about 16 MB. */
const GROUP_ROWS = 65_536;
/**
 * Capacity of the row buffer, in rows: a full row group, plus the rows of one network chunk of 64 KB. Such a
 * chunk has fewer than 65,536 rows, because a row has 30 bytes or more.
 */
const ROWS_HELD = GROUP_ROWS + 65_536;
const ZSTD_LEVEL = 1;
/** Value of created_by in the file metadata, in place of the name of the Parquet library. */
const CREATED_BY = 'spindle';

let loading: Promise<void> | undefined;
/** Initializes the zstd library once, because a second initialization breaks it. */
const loaded = (): Promise<void> => {
  loading ??= init();
  return loading;
};

/**
 * Column types. int64 is a `bigint` of Postgres; int32 and smallInt32 are an `integer` or `smallint`. A
 * dictionary column holds text with few distinct values.
 */
type ColumnType = 'int64' | 'int32' | 'smallInt32' | 'text' | 'dictionary';

export interface ParquetColumn {
  readonly name: string;
  readonly type: ColumnType;
  readonly isNullable?: boolean;
}

const ENCODINGS = {
  int64: 'DELTA_BINARY_PACKED',
  int32: 'DELTA_BINARY_PACKED',
  smallInt32: 'RLE_DICTIONARY',
  text: 'PLAIN',
  dictionary: 'RLE_DICTIONARY',
} as const satisfies Record<ColumnType, ColumnSource['encoding']>;

function schemaOf(columns: readonly ParquetColumn[]): SchemaElement[] {
  return [
    { name: 'schema', num_children: columns.length },
    ...columns.map(({ name, type, isNullable }): SchemaElement => {
      const repetition_type = isNullable ? 'OPTIONAL' : 'REQUIRED';
      if (type === 'int64') return { name, type: 'INT64', repetition_type };
      if (type === 'int32' || type === 'smallInt32') return { name, type: 'INT32', repetition_type };
      return { name, type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type };
    }),
  ];
}

type Values = BigInt64Array | Int32Array | (bigint | string | Uint8Array | null)[];

const emptyValues = ({ type, isNullable }: ParquetColumn): Values => {
  if (isNullable || type === 'text' || type === 'dictionary') return new Array(ROWS_HELD).fill(null);
  return type === 'int64' ? new BigInt64Array(ROWS_HELD) : new Int32Array(ROWS_HELD);
};

export class ParquetFile {
  readonly #values: readonly Values[];
  readonly #out = new ByteWriter(4_194_304);
  readonly #parquet: ParquetWriter;
  readonly #digest = createHash('sha256');
  #held = 0;
  #rows = 0;
  #bytes = 0;

  private constructor(
    private readonly handle: FileHandle,
    private readonly columns: readonly ParquetColumn[],
  ) {
    this.#values = columns.map(emptyValues);
    this.#parquet = new ParquetWriter({
      writer: this.#out,
      schema: schemaOf(columns),
      codec: 'ZSTD',
      compressors: { ZSTD: (bytes) => compress(bytes as Buffer, ZSTD_LEVEL) },
      createdBy: CREATED_BY,
      statistics: true,
    });
  }

  static async create(path: string, columns: readonly ParquetColumn[]): Promise<ParquetFile> {
    await loaded();
    return new ParquetFile(await openPrivate(path, 'w'), columns);
  }

  /**
   * Adds a row whose fields are in the order of the columns. The caller must wait for {@link flushFull} after
   * each chunk of rows.
   */
  add(row: CopyRow): void {
    if (this.#held === ROWS_HELD) throw new RangeError('Too many rows were added at once');
    const at = this.#held++;
    for (let i = 0; i < this.columns.length; i++) {
      const { type } = this.columns[i]!;
      const values = this.#values[i]! as (bigint | number | string | Uint8Array | null)[];
      if (row.isNull(i)) values[at] = null;
      else if (type === 'int64') values[at] = row.big(i);
      else if (type === 'text') values[at] = row.bytes(i);
      else values[at] = type === 'dictionary' ? row.text(i) : row.int(i);
    }
  }

  /**
   * Writes all full row groups. The groups are the same regardless of the chunks in which the rows arrived.
   */
  async flushFull(): Promise<void> {
    while (this.#held >= GROUP_ROWS) await this.#write(GROUP_ROWS);
  }

  async #write(rows: number): Promise<void> {
    const columnData = this.columns.map(
      ({ name, type }, i): ColumnSource => ({
        name,
        data: this.#values[i]!.slice(0, rows),
        encoding: ENCODINGS[type],
        // Statistics of the entry id let a reader skip row groups that can't contain an entry. Statistics of
        // other columns would cost more than they save.
        statistics: name === 'entry_id',
        offsetIndex: false,
      }),
    );
    this.#parquet.write({ columnData, rowGroupSize: GROUP_ROWS });
    for (const values of this.#values) values.copyWithin(0, rows, this.#held);
    this.#rows += rows;
    this.#held -= rows;
    await this.#drain();
  }

  /** Completes the Parquet file and syncs it to disk. */
  async end(): Promise<FileSeal> {
    await this.flushFull();
    if (this.#held > 0) await this.#write(this.#held);
    this.#parquet.finish();
    await this.#drain();
    await this.handle.sync();
    await this.handle.close();
    return { rows: this.#rows, bytes: this.#bytes, sha256: this.#digest.digest('hex') };
  }

  async abandon(): Promise<void> {
    await this.handle.close();
  }

  async #drain(): Promise<void> {
    const bytes = Buffer.from(this.#out.getBytes());
    // The Parquet library reuses its buffer from the beginning, while its file offset stays unchanged.
    (this.#out as unknown as { index: number }).index = 0;
    this.#digest.update(bytes);
    this.#bytes += bytes.length;
    await this.handle.writeFile(bytes);
  }
}

/** Values of each requested column in a row group that was read. */
export type Group = ReadonlyMap<string, ArrayLike<bigint | number | string | null>>;

/**
 * Reads the given columns of a Parquet file, one row group at a time.
 * @returns number of rows
 * @throws Error if the file is not a Parquet file or lacks a column
 */
export async function readGroups(
  path: string,
  columns: readonly string[],
  onGroup: (group: Group, rows: number) => void,
): Promise<number> {
  await loaded();
  const handle = await open(path, 'r');
  try {
    const file = bufferOf(handle, (await handle.stat()).size);
    const metadata = await parquetMetadataAsync(file);
    let rowStart = 0;
    for (const group of metadata.row_groups) {
      const rows = Number(group.num_rows);
      onGroup(await readGroup(file, metadata, columns, rowStart, rowStart + rows), rows);
      rowStart += rows;
    }
    return rowStart;
  } finally {
    await handle.close();
  }
}

async function readGroup(
  file: AsyncBuffer,
  metadata: FileMetaData,
  columns: readonly string[],
  rowStart: number,
  rowEnd: number,
): Promise<Group> {
  const pieces = new Map<string, ArrayLike<bigint | number | string | null>[]>(
    columns.map((name) => [name, []]),
  );
  await parquetRead({
    file,
    metadata,
    columns: [...columns],
    rowStart,
    rowEnd,
    compressors: { ZSTD: (bytes) => decompress(bytes as Buffer) },
    onChunk: ({ columnName, columnData }) => pieces.get(columnName)?.push(columnData as never),
  });
  return new Map(
    [...pieces].map(([name, parts]) => {
      if (parts.length === 1) return [name, parts[0]!];
      return [name, parts.flatMap((part) => Array.from(part))];
    }),
  );
}

const bufferOf = (handle: FileHandle, byteLength: number): AsyncBuffer => ({
  byteLength,
  async slice(start, end = byteLength) {
    const bytes = new Uint8Array(end - start);
    for (let at = 0; at < bytes.length; ) {
      const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at);
      if (bytesRead === 0) throw new Error('The file is shorter than expected');
      at += bytesRead;
    }
    return bytes.buffer;
  },
});
