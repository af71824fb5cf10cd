/**
 * COPY … FROM STDIN of bytes that are all there, as a query of the driver: statement, data and end leave in one write, so that it takes
 * one round trip. A server that refuses the statement ignores what follows it (PostgreSQL documentation, "COPY Operations").
 */
import { type Connection, Query } from 'pg';

/** The part of the driver's connection that writes; its types leave it out. */
interface CopyConnection {
  readonly stream: { cork(): void; uncork(): void };
  query(text: string): void;
  sendCopyFromChunk(bytes: Buffer): void;
  endCopyFrom(): void;
}

/** A kind of the driver's own query: it lets no other kind share a pipelined connection. */
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
