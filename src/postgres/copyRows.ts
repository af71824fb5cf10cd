/** Writes what COPY … FROM STDIN (FORMAT binary) takes, of rows of three fields, into one buffer. */

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

  /** All of them. */
  end(): Buffer {
    this.#ensure(2);
    return this.#bytes.subarray(0, this.#bytes.writeInt16BE(-1, this.length));
  }

  #ensure(bytes: number): void {
    if (this.length + bytes <= this.#bytes.length) return;
    const longer = Buffer.allocUnsafe(2 * (this.length + bytes));
    this.#bytes.copy(longer, 0, 0, this.length);
    this.#bytes = longer;
  }
}

const COPY_HEAD = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)]);
