/** One request and the way to answer it. What a handler needs is read off the connection before its first await. */
import type { ConnectionOrigin } from '../../domain/trustedProxies.js';
import type { ServedVersion } from './servedVersion.js';

/** What is used of the connection's response object; src/api/server/uwsListener.ts and nodeResponse.ts have one each. */
export interface RawResponse {
  cork(callback: () => void): unknown;
  writeStatus(status: string): unknown;
  /** @param value holds until this returns */
  writeHeader(name: string, value: string | Uint8Array): unknown;
  end(body: string | Uint8Array, closeConnection?: boolean): unknown;
  endWithoutBody(length?: number, closeConnection?: boolean): unknown;
  /** Writes as much of the body as the connection takes. @param bytes of the whole body; 0: this is the whole */
  tryEnd(body: string | Uint8Array, bytes: number): [ok: boolean, isDone: boolean];
  /** Calls back when the connection takes more. @param handler is given the bytes that were written; true: it could write */
  onWritable(handler: (written: number) => boolean): unknown;
  /** Sends a part of a body whose length is not known; false: the client takes it slower than it is written. */
  write(part: string): boolean;
  /** Cuts the connection. */
  close(): unknown;
  /** Reads no more of the connection for now, where the server can do that. */
  pause(): unknown;
  getRemoteAddressAsText(): ArrayBuffer;
  /** The address that a PROXY protocol header names; empty where there was none. */
  getProxiedRemoteAddressAsText(): ArrayBuffer;
}

export interface RequestHead {
  /** Lower case. */
  readonly method: string;
  /** Undecoded, without the query. */
  readonly path: string;
  readonly query: string;
  /** Value of X-API-Key; empty where it was not sent. Likewise the next seven. */
  readonly apiKey: string;
  readonly interfaceVersion: string;
  readonly accept: string;
  readonly forwardedFor: string;
  readonly acceptEncoding: string;
  readonly cookie: string;
  readonly csrfToken: string;
  readonly requestOrigin: string;
  /** Undefined where it was not sent; empty also for one with other characters than ASCII. */
  readonly idempotencyKey: string | undefined;
}

/** The rest of a request, which has not arrived yet (incomingBody.ts). */
export interface Incoming {
  /** The request is whole, or no more of it is read. */
  readonly isReceived: boolean;
  /** Keeps the body. @param then is called once it is whole, or too long */
  take(then: () => void): void;
  /** Keeps no byte of the body. @param then is called once the rest has come, or has had its time */
  passOver(then?: () => void): void;
  /** The request is answered, or its client has gone. */
  end(): void;
}

const nothing = (): void => {};

export class Exchange {
  readonly raw: RawResponse;
  readonly head: RequestHead;
  /** Of this request; in the answer's X-Request-Id and in every log line about it. */
  readonly id: string;
  /** What it asks for, as the metrics name it. */
  readonly operation: string;
  readonly startedMs = performance.now();
  /** The body, which may come later than the head. Undefined: the request has none. */
  incoming: Incoming | undefined = undefined;
  /** The whole body, which holds until the handler's first await, see `keepBody`; undefined where it was not kept. */
  body: Buffer | undefined;
  /** The body holds until the request is answered. */
  isBodyKept = false;
  /** The body was not kept because the process, or its partner, holds as many as it may. */
  lacksRoom = false;
  /** Whose key it came with, once that is known. */
  partnerId: number | undefined = undefined;
  /** The version of the API that it asks; undefined outside the partner API. */
  version: ServedVersion | undefined = undefined;
  /** No cache may keep the answer: it is an operator's, or shows a secret. */
  isPrivate = false;
  /** The answer ends the connection: the rest of the request is not read. */
  closesConnection = false;
  /** The client has gone: nothing may be written any more. */
  aborted = false;
  /** Called when the client has gone. */
  onAbort: () => void = nothing;
  /** Answered, or not to be answered any more. */
  ended = false;
  readonly #onEnded: () => void;

  constructor(raw: RawResponse, head: RequestHead, id: string, operation: string, onEnded: () => void) {
    this.raw = raw;
    this.head = head;
    this.id = id;
    this.operation = operation;
    this.#onEnded = onEnded;
  }

  /** Marks it as answered or gone; the first call only counts. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.incoming?.end();
    this.#onEnded();
  }

  /** The body was not kept because it is over the limit. */
  get isTooLong(): boolean {
    return this.body === undefined && !this.lacksRoom;
  }

  /** Waits for the body of a request that may ask for something. @param then is called once it has come */
  takeBody(then: () => void): void {
    const { incoming } = this;
    if (incoming === undefined) then();
    else incoming.take(then);
  }

  /** Keeps nothing of the body of a request that is refused. */
  refuseBody(): void {
    this.incoming?.passOver();
  }

  /** Makes the body hold beyond the handler's first await: the server's buffer is copied. */
  keepBody(): void {
    if (this.isBodyKept || this.body === undefined || this.body.length === 0) return;
    this.body = Buffer.from(this.body);
    this.isBodyKept = true;
  }

  abort(): void {
    this.aborted = true;
    this.end();
    this.onAbort();
  }

  /** Where it came from. To be asked before the first await. */
  origin(): ConnectionOrigin {
    const { forwardedFor } = this.head;
    if (this.aborted) return { remote: '', proxied: '', forwardedFor };
    return {
      remote: latin1(this.raw.getRemoteAddressAsText()),
      proxied: latin1(this.raw.getProxiedRemoteAddressAsText()),
      forwardedFor,
    };
  }
}

const latin1 = (bytes: ArrayBuffer): string => Buffer.from(bytes).toString('latin1');
