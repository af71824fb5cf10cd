/**
 * Reads and writes the binary format of COPY (PostgreSQL documentation, "COPY", File Formats), without an
 * object for each row or field. Written rows have three fields.
 */
import { type Connection, Query } from 'pg';

const HEAD_BYTES = 19;
const FIELDS_MAX = 64;

/**
 * The row that was read last. It is valid until the next row is read; views of its fields stay valid. Fields
 * are numbered from 0.
 */
export class CopyRow {
  #bytes: Buffer = Buffer.alloc(0);
  readonly #starts = new Int32Array(FIELDS_MAX);
  readonly #lengths = new Int32Array(FIELDS_MAX);

  /** Parses the row at offset `at`. Returns the offset after the row, or -1 if the row is incomplete. */
  take(bytes: Buffer, at: number): number {
    this.#bytes = bytes;
    const fields = bytes.readInt16BE(at);
    let next = at + 2;
    for (let field = 0; field < fields; field++) {
      if (next + 4 > bytes.length) return -1;
      const length = bytes.readInt32BE(next);
      this.#starts[field] = next + 4;
      this.#lengths[field] = length;
      next += 4 + Math.max(0, length);
    }
    return next > bytes.length ? -1 : next;
  }

  isNull(field: number): boolean {
    return this.#lengths[field]! < 0;
  }

  int(field: number): number {
    const at = this.#starts[field]!;
    return this.#lengths[field] === 2 ? this.#bytes.readInt16BE(at) : this.#bytes.readInt32BE(at);
  }

  big(field: number): bigint {
    return this.#bytes.readBigInt64BE(this.#starts[field]!);
  }

  /** Reads 32 bits of a field, unsigned. */
  word(field: number, at: number): number {
    return this.#bytes.readUInt32BE(this.#starts[field]! + at);
  }

  /** Reads a `bigint` field whose value is known to be a safe integer. */
  safe(field: number): number {
    const at = this.#starts[field]!;
    return this.#bytes.readInt32BE(at) * 4_294_967_296 + this.#bytes.readUInt32BE(at + 4);
  }

  text(field: number): string {
    const at = this.#starts[field]!;
    return this.#bytes.toString('utf8', at, at + this.#lengths[field]!);
  }

  /**
   * Copies the field's bytes to a target with enough room. Returns the number of bytes.
   * @param at offset in the target
   */
  copy(field: number, target: Uint8Array, at: number): number {
    const start = this.#starts[field]!;
    return this.#bytes.copy(target, at, start, start + this.#lengths[field]!);
  }

  lengthOf(field: number): number {
    return this.#lengths[field]!;
  }

  /** Returns a view of the field's bytes, which stays valid after the next row is read. */
  bytes(field: number): Buffer {
    const at = this.#starts[field]!;
    return this.#bytes.subarray(at, at + this.#lengths[field]!);
  }
}

/** Buffer for received bytes of an incomplete row. */
class Rest {
  #bytes = Buffer.alloc(0);
  #length = 0;

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /**
   * Returns the bytes that were kept, followed by the newly received bytes. If no bytes were kept, returns
   * only the received bytes.
   */
  with(piece: Buffer): Buffer {
    if (this.#length === 0) return piece;
    const length = this.#length + piece.length;
    if (length > this.#bytes.length) {
      // The buffer gets twice the needed size. A row that arrives in many pieces is thus not copied again for
      // each piece.
      const longer = Buffer.allocUnsafe(2 * length);
      this.#bytes.copy(longer, 0, 0, this.#length);
      this.#bytes = longer;
    }
    piece.copy(this.#bytes, this.#length);
    this.#length = length;
    return this.#bytes.subarray(0, length);
  }

  /**
   * Keeps the end of the bytes that {@link with} returned, from an offset on. The bytes are copied, because
   * there may be views of the preceding rows.
   */
  keep(bytes: Buffer, from: number): void {
    if (from === 0 && this.#length > 0) return;
    this.#bytes = Buffer.from(bytes.subarray(from));
    this.#length = this.#bytes.length;
  }
}

/**
 * Calls `onRow` for each row. Awaits `onPause` each time that bytes have been received, so that the caller
 * can pass the rows on.
 * @throws Error if the bytes are not in the format of COPY
 */
export async function readRows(
  pieces: AsyncIterable<Buffer>,
  onRow: (row: CopyRow) => void,
  onPause: () => Promise<void> = async () => {},
): Promise<void> {
  const row = new CopyRow();
  const rest = new Rest();
  let isHead = true;
  for await (const piece of pieces) {
    const bytes = rest.with(piece);
    let at = 0;
    if (isHead && bytes.length >= HEAD_BYTES) {
      at = HEAD_BYTES;
      isHead = false;
    }
    while (!isHead && at + 2 <= bytes.length) {
      // A number of fields of -1 marks the end of the data.
      if (bytes.readInt16BE(at) === -1) {
        at = bytes.length;
        break;
      }
      const next = row.take(bytes, at);
      if (next < 0) break;
      onRow(row);
      at = next;
    }
    rest.keep(bytes, at);
    await onPause();
  }
  if (isHead || !rest.isEmpty) throw new Error('COPY ended in the middle of a row');
}

/**
 * Yields the received pieces until `gone` rejects. After that it does not wait for another piece from the
 * source.
 */
export async function* orGone(pieces: AsyncIterable<Buffer>, gone: Promise<never>): AsyncGenerator<Buffer> {
  const iterator = pieces[Symbol.asyncIterator]();
  let isWaiting = false;
  try {
    for (;;) {
      isWaiting = true;
      const next = await Promise.race([iterator.next(), gone]);
      isWaiting = false;
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    if (!isWaiting) await iterator.return?.();
  }
}

/** Initial size of the buffer, in bytes, which is enough for few rows. */
const FIRST_BYTES = 65_536;

/**
 * Builds rows of an `integer` and two other fields for COPY (PostgreSQL documentation, "COPY", File Formats).
 */
export class CopyRows {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);
  length = COPY_HEAD.copy(this.#bytes);

  get isEmpty(): boolean {
    return this.length === COPY_HEAD.length;
  }

  add(runId: number, second: Buffer, third: Buffer): void {
    this.#ensure(18 + second.length + third.length);
    const row = this.#bytes;
    let at = row.writeInt16BE(3, this.length);
    at = row.writeInt32BE(4, at);
    at = row.writeInt32BE(runId, at);
    at = row.writeInt32BE(second.length, at);
    at += second.copy(row, at);
    at = row.writeInt32BE(third.length, at);
    this.length = at + third.copy(row, at);
  }

  /** Returns all rows as a view that is valid until the next row is added. */
  end(): Buffer {
    this.#ensure(2);
    const { length } = this;
    this.length = COPY_HEAD.length;
    return this.#bytes.subarray(0, this.#bytes.writeInt16BE(-1, length));
  }

  #ensure(bytes: number): void {
    if (this.length + bytes <= this.#bytes.length) return;
    const longer = Buffer.allocUnsafe(2 * (this.length + bytes));
    this.#bytes.copy(longer, 0, 0, this.length);
    this.#bytes = longer;
  }
}

const COPY_HEAD = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)]);

/** Methods for writing on the driver's connection, which the driver's type definitions lack. */
interface CopyConnection {
  readonly stream: { cork(): void; uncork(): void };
  query(text: string): void;
  sendCopyFromChunk(bytes: Buffer): void;
  endCopyFrom(): void;
}

/**
 * A query of the driver that runs COPY … FROM STDIN with complete data. The statement, the data and the end
 * marker leave in one write, so the query takes one round trip. A server that refuses the statement ignores
 * the data (PostgreSQL documentation, "COPY Operations"). The class extends the driver's own query class, so
 * that it can share a pipelined connection with other queries.
 */
export class CopyIn extends Query {
  /**
   * @param done called by the driver when the query has ended, also by a timeout; after a call with an error,
   * it must ignore further calls
   */
  constructor(statement: string, bytes: Buffer, done: (error: Error | null) => void) {
    super(statement, done as (error: Error | undefined) => void);
    const submit = (connection: Connection): void => {
      const writing = connection as unknown as CopyConnection;
      writing.stream.cork();
      writing.query(statement);
      writing.sendCopyFromChunk(bytes);
      writing.endCopyFrom();
      writing.stream.uncork();
    };
    // By default, the driver would respond to this message by aborting the COPY.
    Object.assign(this, { submit, handleCopyInResponse: () => {} });
  }
}
