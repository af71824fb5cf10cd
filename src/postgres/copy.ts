/**
 * COPY in its binary format (PostgreSQL documentation, "COPY", File Formats): rows are read, and rows of three fields written,
 * without an object for each row or field.
 */
import { type Connection, Query } from 'pg';

const HEAD_BYTES = 19;
const FIELDS_MAX = 64;

/** The row that was read last; holds until the next one, views of its fields beyond it. Fields are numbered from 0. */
export class CopyRow {
  #bytes: Buffer = Buffer.alloc(0);
  readonly #starts = new Int32Array(FIELDS_MAX);
  readonly #lengths = new Int32Array(FIELDS_MAX);

  /** Finds the fields of the row at `at`; gives the place after it, or -1 where the bytes end before it does. */
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

  /** An `integer` or `smallint`. */
  int(field: number): number {
    const at = this.#starts[field]!;
    return this.#lengths[field] === 2 ? this.#bytes.readInt16BE(at) : this.#bytes.readInt32BE(at);
  }

  /** A `bigint`. */
  big(field: number): bigint {
    return this.#bytes.readBigInt64BE(this.#starts[field]!);
  }

  /** 32 bits of a field, unsigned. @param at where in the field they begin */
  word(field: number, at: number): number {
    return this.#bytes.readUInt32BE(this.#starts[field]! + at);
  }

  /** A `bigint` that is known to be within the safe range. */
  safe(field: number): number {
    const at = this.#starts[field]!;
    return this.#bytes.readInt32BE(at) * 4_294_967_296 + this.#bytes.readUInt32BE(at + 4);
  }

  text(field: number): string {
    const at = this.#starts[field]!;
    return this.#bytes.toString('utf8', at, at + this.#lengths[field]!);
  }

  /** Copies the field's bytes; gives how many. @param at where they begin in the target, which has room for them */
  copy(field: number, target: Uint8Array, at: number): number {
    const start = this.#starts[field]!;
    return this.#bytes.copy(target, at, start, start + this.#lengths[field]!);
  }

  lengthOf(field: number): number {
    return this.#lengths[field]!;
  }

  /** A view of the field's bytes, which stays as it is. */
  bytes(field: number): Buffer {
    const at = this.#starts[field]!;
    return this.#bytes.subarray(at, at + this.#lengths[field]!);
  }
}

/** Bytes that came and are not yet a whole row. */
class Rest {
  #bytes = Buffer.alloc(0);
  #length = 0;

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** What was kept, with a piece behind it; the piece itself where nothing was. */
  with(piece: Buffer): Buffer {
    if (this.#length === 0) return piece;
    const length = this.#length + piece.length;
    if (length > this.#bytes.length) {
      // Twice as much: a row of many pieces is not copied anew with each of them.
      const longer = Buffer.allocUnsafe(2 * length);
      this.#bytes.copy(longer, 0, 0, this.#length);
      this.#bytes = longer;
    }
    piece.copy(this.#bytes, this.#length);
    this.#length = length;
    return this.#bytes.subarray(0, length);
  }

  /** Keeps what {@link with} gave from a place on: in other memory, as there may be views of the rows before it. */
  keep(bytes: Buffer, from: number): void {
    if (from === 0 && this.#length > 0) return;
    this.#bytes = Buffer.from(bytes.subarray(from));
    this.#length = this.#bytes.length;
  }
}

/**
 * Calls `onRow` for each row. After each piece that came, `onPause` is waited for: whoever passes rows on does it there.
 * @throws Error where the bytes are not what COPY gives.
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
      // -1 in place of the number of fields: the end.
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

/** The pieces as they come, until `gone` rejects: whoever would bring the next one is not waited for then. */
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

/** What few rows need. */
const FIRST_BYTES = 65_536;

/** Rows of an `integer` and two fields, as COPY takes them (PostgreSQL documentation, "COPY", File Formats). */
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

  /** All of them; a view that holds until the next row. */
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

/** The part of the driver's connection that writes; its types leave it out. */
interface CopyConnection {
  readonly stream: { cork(): void; uncork(): void };
  query(text: string): void;
  sendCopyFromChunk(bytes: Buffer): void;
  endCopyFrom(): void;
}

/**
 * COPY … FROM STDIN of bytes that are all there, as a query of the driver: statement, data and end leave in one write, so that it
 * takes one round trip. A server that refuses the statement ignores what follows it (PostgreSQL documentation, "COPY
 * Operations"). It extends the driver's own query, so no other kind shares a pipelined connection with it.
 */
export class CopyIn extends Query {
  /** @param done the driver puts its time limit in between. After a call with an error, further calls are of no interest */
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
    // The driver's own answer to this message is to give up.
    Object.assign(this, { submit, handleCopyInResponse: () => {} });
  }
}
