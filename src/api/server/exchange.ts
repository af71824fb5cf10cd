/**
 * Represents one HTTP request and the means to answer it. Everything a handler needs from the connection is
 * read before its first await.
 */
import type { ConnectionOrigin } from '../../domain/trustedProxies.js';
import type { ServedVersion } from './servedVersion.js';

/**
 * The methods of a connection's response object that an exchange uses. src/api/server/uwsListener.ts and
 * nodeResponse.ts implement them.
 */
export interface RawResponse {
  cork(callback: () => void): unknown;
  writeStatus(status: string): unknown;
  /** @param value bytes that are valid until this method returns */
  writeHeader(name: string, value: string | Uint8Array): unknown;
  end(body: string | Uint8Array, closeConnection?: boolean): unknown;
  endWithoutBody(length?: number, closeConnection?: boolean): unknown;
  /**
   * Writes as much of the body as the connection accepts.
   *
   * @param bytes length of the whole body; 0: `body` is the whole body
   */
  tryEnd(body: string | Uint8Array, bytes: number): [ok: boolean, isDone: boolean];
  /**
   * Registers a callback for the time when the connection accepts more data.
   *
   * @param handler receives the number of bytes written so far; returns true if it could write
   */
  onWritable(handler: (written: number) => boolean): unknown;
  /**
   * Sends a part of a body of unknown length. Returns false if the client reads more slowly than the server
   * writes.
   */
  write(part: string): boolean;
  close(): unknown;
  /** Stops reading from the connection for now, if the server supports that. */
  pause(): unknown;
  getRemoteAddressAsText(): ArrayBuffer;
  /** Returns the client address of a PROXY protocol header. Empty if there was no such header. */
  getProxiedRemoteAddressAsText(): ArrayBuffer;
}

export interface RequestHead {
  /** HTTP method in lower case. */
  readonly method: string;
  /** Path as sent, not decoded, without the query. */
  readonly path: string;
  readonly query: string;
  /**
   * Value of X-API-Key; empty if the header was not sent. The next eight members are also empty if their
   * header was not sent.
   */
  readonly apiKey: string;
  readonly interfaceVersion: string;
  readonly accept: string;
  readonly forwardedFor: string;
  readonly acceptEncoding: string;
  readonly cookie: string;
  readonly csrfToken: string;
  readonly requestOrigin: string;
  readonly contentEncoding: string;
  /** True if the Authorization header has a bearer token. The token itself is not kept. */
  readonly hasBearer: boolean;
  /** Undefined if the header was not sent; empty if it contains non-ASCII characters. */
  readonly idempotencyKey: string | undefined;
}

/** The part of a request that has not arrived yet (incomingBody.ts). */
export interface Incoming {
  /** True if the request has arrived completely, or if nothing more of the request will be read. */
  readonly isReceived: boolean;
  /**
   * Keeps the body.
   *
   * @param then called when the body is complete or exceeds its limit
   */
  take(then: () => void): void;
  /**
   * Discards the body.
   *
   * @param then called when the remaining body has arrived or its time limit has passed
   */
  passOver(then?: () => void): void;
  /** Releases the resources when the request is answered or the client has disconnected. */
  end(): void;
}

const nothing = (): void => {};

export class Exchange {
  readonly raw: RawResponse;
  readonly head: RequestHead;
  /**
   * Correlation id of this request. It is sent as X-Request-Id and is part of every log line about the
   * request.
   */
  readonly id: string;
  /** Name of the requested operation in the metrics. */
  readonly operation: string;
  readonly startedMs = performance.now();
  /** The body, which may arrive later than the head of the request. Undefined if the request has no body. */
  incoming: Incoming | undefined = undefined;
  /**
   * The whole body, valid until the handler's first await (see `keepBody`). Undefined if the body was
   * discarded.
   */
  body: Buffer | undefined;
  /** True if the body stays valid until the request is answered. */
  isBodyKept = false;
  /**
   * True if the body was discarded because the buffers of the process, or of the request's partner, already
   * hold as many bytes as allowed.
   */
  lacksRoom = false;
  /** Partner that owns the key of the request. Undefined until the key is authenticated. */
  partnerId: number | undefined = undefined;
  /** The API version of the request. Undefined outside the partner API. */
  version: ServedVersion | undefined = undefined;
  /** True if no cache may store the answer, because it is for an operator or contains a secret. */
  isPrivate = false;
  /** True if the answer closes the connection. The remaining request is then not read. */
  closesConnection = false;
  /** True if the client has disconnected. Nothing may be written after that. */
  aborted = false;
  onAbort: () => void = nothing;
  /** True if the request has been answered or cannot be answered any more. */
  ended = false;
  readonly #onEnded: () => void;

  constructor(raw: RawResponse, head: RequestHead, id: string, operation: string, onEnded: () => void) {
    this.raw = raw;
    this.head = head;
    this.id = id;
    this.operation = operation;
    this.#onEnded = onEnded;
  }

  /** Marks the request as answered or aborted. Only the first call has an effect. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.incoming?.end();
    this.#onEnded();
  }

  get isTooLong(): boolean {
    return this.body === undefined && !this.lacksRoom;
  }

  /**
   * Waits for the body of an authenticated request.
   *
   * @param then called when the body has arrived
   */
  takeBody(then: () => void): void {
    const { incoming } = this;
    if (incoming === undefined) then();
    else incoming.take(then);
  }

  refuseBody(): void {
    this.incoming?.passOver();
  }

  /** Copies the body out of the server's buffer, so that it stays valid after the handler's first await. */
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

  /** Must be called before the first await. */
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
