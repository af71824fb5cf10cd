/** Reads the answers of one connection as far as a load generator must: the status, and where each ends. */

const HEAD_END = Buffer.from('\r\n\r\n');
const CONTENT_LENGTH = 'content-length:';
const STATUS_AT = 'HTTP/1.1 '.length;
const ZERO = 48;
const CR = 13;
const LF = 10;
const NONE = Buffer.alloc(0);

export class AnswerReader {
  /** Of an answer that has come in part only. */
  #part: Buffer = NONE;
  /** Heads of one server mostly have the same layout: that of the answer before is tried first. */
  #headBytes = 0;
  #lengthAt = 0;

  /**
   * @param chunk may be used again by its owner once this returns
   * @returns the status of an answer that ends with this chunk; undefined where more is to come
   * @throws Error where the chunk is no answer with a Content-Length, or goes on after its end
   */
  read(chunk: Buffer): number | undefined {
    const bytes = this.#part.length === 0 ? chunk : Buffer.concat([this.#part, chunk]);
    const whole = this.#wholeBytes(bytes);
    if (whole === undefined || bytes.length < whole) {
      this.#part = bytes === chunk ? Buffer.from(chunk) : bytes;
      return undefined;
    }
    if (bytes.length > whole) throw new Error('The server answered what was not asked');
    this.#part = NONE;
    return digit(bytes, STATUS_AT) * 100 + digit(bytes, STATUS_AT + 1) * 10 + digit(bytes, STATUS_AT + 2);
  }

  /** Bytes of head and body; undefined where the head has not ended. */
  #wholeBytes(bytes: Buffer): number | undefined {
    if (!this.#isLaidOutAsBefore(bytes)) {
      const headEnd = bytes.indexOf(HEAD_END);
      if (headEnd < 0) return undefined;
      this.#headBytes = headEnd + HEAD_END.length;
      const head = bytes.toString('latin1', 0, this.#headBytes).toLowerCase();
      const named = head.indexOf(`\r\n${CONTENT_LENGTH}`);
      if (!head.startsWith('http/1.1 ') || named < 0) throw new Error(`No answer to count: ${head}`);
      this.#lengthAt = named + 2 + CONTENT_LENGTH.length;
      while (bytes[this.#lengthAt] === 32) this.#lengthAt++;
    }
    let length = 0;
    for (let at = this.#lengthAt; bytes[at] !== CR; at++) length = length * 10 + digit(bytes, at);
    return this.#headBytes + length;
  }

  /** Whether the head ends where the one before did, and the length, which is all that is read of it, is where it was. */
  #isLaidOutAsBefore(bytes: Buffer): boolean {
    const end = this.#headBytes;
    return (
      end > 0 &&
      bytes.length >= end &&
      bytes[end - 1] === LF &&
      bytes[end - 2] === CR &&
      bytes[end - 3] === LF &&
      bytes[end - 4] === CR &&
      isLengthAt(bytes, this.#lengthAt)
    );
  }
}

/** Whether `…gth: ` and a digit are there: no other header of an answer ends in that. */
function isLengthAt(bytes: Buffer, at: number): boolean {
  return (
    bytes[at - 1] === 32 &&
    bytes[at - 2] === 58 &&
    bytes[at - 3] === 104 &&
    bytes[at - 4] === 116 &&
    bytes[at - 5] === 103 &&
    bytes[at]! >= ZERO &&
    bytes[at]! <= ZERO + 9
  );
}

const digit = (bytes: Buffer, at: number): number => bytes[at]! - ZERO;
