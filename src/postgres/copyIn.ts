/**
 * COPY … FROM STDIN of bytes that are all there, as a query of the driver: statement, data and end leave in one write, so that it takes
 * one round trip. A server that refuses the statement ignores what follows it (PostgreSQL documentation, "COPY Operations").
 */
import type { Connection, Submittable } from 'pg';

/** The part of the driver's connection that writes; its types leave it out. */
interface CopyConnection {
  readonly stream: { cork(): void; uncork(): void };
  query(text: string): void;
  sendCopyFromChunk(bytes: Buffer): void;
  endCopyFrom(): void;
}

export class CopyIn implements Submittable {
  readonly #statement: string;
  readonly #bytes: Buffer;
  /** The driver puts its time limit in between. After it was called with an error, further calls are of no interest. */
  callback: (error: Error | null) => void;

  constructor(statement: string, bytes: Buffer, callback: (error: Error | null) => void) {
    this.#statement = statement;
    this.#bytes = bytes;
    this.callback = callback;
  }

  submit(connection: Connection): void {
    const writing = connection as unknown as CopyConnection;
    writing.stream.cork();
    writing.query(this.#statement);
    writing.sendCopyFromChunk(this.#bytes);
    writing.endCopyFrom();
    writing.stream.uncork();
  }

  // What the driver tells a query, by name.

  handleError(error: Error): void {
    this.callback(error);
  }

  handleReadyForQuery(): void {
    this.callback(null);
  }

  handleCopyInResponse(): void {}

  handleCommandComplete(): void {}
}
