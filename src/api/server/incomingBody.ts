/**
 * Receives the body of a request. The key is checked when the head arrives. All body chunks, whether they
 * arrive before or after that check, are copied into one buffer, whose size is the route's limit. Only a body
 * that arrives as a single chunk, as most do, is not copied.
 *
 *   asked ──(the handler takes the body)──> kept ──(complete)────────────────────────────> received
 *     └──(refused, over the limit, no room)──> discarded ──(ended, or time limit passed)──> received, or cut
 */
import type { Exchange, Incoming } from './exchange.js';
import { DRAIN_BYTES_MAX, EMPTY_BODY, type ListenerOptions } from './listener.js';

/** Maximum bytes that the buffers of incomplete bodies may take, in total and for one partner. */
const ALL_BYTES_MAX = 16_777_216;
const PARTNER_BYTES_MAX = 4_194_304;
/**
 * Name under which the buffers of all requests without a checked key, and of all requests of operators, are
 * counted.
 */
const NO_PARTNER = 0;
/**
 * Maximum number of chunks of a body that no handler has taken yet, because each chunk costs the event loop a
 * call. Past this number, the connection is cut if the average chunk is smaller than PIECE_BYTES_LEAST bytes.
 */
const UNTAKEN_PIECES_MAX = 128;
const PIECE_BYTES_LEAST = 256;
/** Time in which a refused request may complete its body before the answer closes the connection, in ms. */
const REFUSED_MS = 1000;

/** Limits the memory for body buffers in this process, in total and for each partner. */
export class BodyMemory {
  readonly #byAccount = new Map<number, number>();
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** Reserves memory for a buffer. Returns false if there is no room. */
  acquire(account: number, bytes: number): boolean {
    const held = this.#byAccount.get(account) ?? 0;
    if (held + bytes > PARTNER_BYTES_MAX || this.#bytes + bytes > ALL_BYTES_MAX) return false;
    this.#byAccount.set(account, held + bytes);
    this.#bytes += bytes;
    return true;
  }

  release(account: number, bytes: number): void {
    const held = this.#byAccount.get(account)! - bytes;
    if (held === 0) this.#byAccount.delete(account);
    else this.#byAccount.set(account, held);
    this.#bytes -= bytes;
  }
}

export class IncomingBody implements Incoming {
  isReceived = false;
  /**
   * Sends `100 Continue` to a client that waits for it before sending the body. Undefined if the client does
   * not wait.
   */
  askToContinue: (() => void) | undefined = undefined;
  readonly #exchange: Exchange;
  readonly #limit: number;
  readonly #memory: BodyMemory;
  #then: (() => void) | undefined;
  #buffer: Buffer | undefined;
  #account = NO_PARTNER;
  #receivedBytes = 0;
  #isPassedOver: boolean;
  #untakenPieces = 0;
  #untakenBytes = 0;
  #isCut = false;
  #timer: NodeJS.Timeout | undefined;

  /** @param limit maximum body size in bytes; 0: the body is discarded */
  constructor(exchange: Exchange, limit: number, memory: BodyMemory) {
    this.#exchange = exchange;
    this.#limit = limit;
    this.#isPassedOver = limit === 0;
    this.#memory = memory;
  }

  take(then: () => void): void {
    if (this.isReceived) {
      then();
      return;
    }
    this.#then = then;
    this.askToContinue?.();
    this.askToContinue = undefined;
  }

  passOver(then?: () => void): void {
    this.#isPassedOver = true;
    this.#freeBuffer();
    if (then === undefined) return;
    this.#then = then;
    // A client that waits for `100 Continue` sends no body before it gets an answer.
    if (this.askToContinue !== undefined) this.#giveUp();
    else this.#timer ??= setTimeout(() => this.#giveUp(), REFUSED_MS).unref();
  }

  /**
   * Counts a chunk as soon as it is read. Cuts the connection if too many chunks have arrived before a
   * handler took the body.
   *
   * @returns false if nothing more of the connection may be processed
   */
  admits(bytes: number): boolean {
    if (this.#isCut) return false;
    if (!this.#isPassedOver && this.#then !== undefined) return true;
    this.#untakenBytes += bytes;
    if (++this.#untakenPieces <= Math.max(UNTAKEN_PIECES_MAX, this.#untakenBytes / PIECE_BYTES_LEAST))
      return true;
    this.#isCut = true;
    this.isReceived = true;
    this.#exchange.raw.close();
    return false;
  }

  /**
   * Processes the next chunk, which is valid until this method returns.
   *
   * @returns true if the caller must call {@link proceed}
   */
  add(piece: Buffer, isLast: boolean): boolean {
    if (this.isReceived || (piece.length === 0 && !isLast)) return false;
    this.#receivedBytes += piece.length;
    if (!this.#isPassedOver && this.#receivedBytes <= this.#limit) {
      if (isLast && this.#buffer === undefined && this.#then !== undefined) {
        this.#exchange.body = piece;
        return this.#received();
      }
      if (this.#append(piece)) return isLast && this.#whole();
      this.#exchange.lacksRoom = true;
    }
    this.#isPassedOver = true;
    this.#freeBuffer();
    if (isLast) {
      if (this.#limit === 0) this.#exchange.body = EMPTY_BODY;
      return this.#received();
    }
    if (this.#receivedBytes <= DRAIN_BYTES_MAX) return false;
    this.#exchange.closesConnection = true;
    // Reading stops until the response is made, so that the sender has to wait.
    this.#exchange.raw.pause();
    return this.#received();
  }

  /** Continues with the step that waits for the body: the handler, or the answer to a refused request. */
  proceed(): void {
    this.#then!();
  }

  end(): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    this.#freeBuffer();
  }

  #giveUp(): void {
    this.isReceived = true;
    this.#exchange.closesConnection = true;
    this.#then!();
  }

  #whole(): boolean {
    this.#exchange.body = this.#buffer?.subarray(0, this.#receivedBytes) ?? EMPTY_BODY;
    this.#exchange.isBodyKept = true;
    return this.#received();
  }

  #received(): boolean {
    this.isReceived = true;
    return this.#then !== undefined;
  }

  /** Returns false if there is no room. */
  #append(piece: Buffer): boolean {
    if (piece.length === 0) return true;
    if (this.#buffer === undefined) {
      const account = this.#exchange.partnerId ?? NO_PARTNER;
      if (!this.#memory.acquire(account, this.#limit)) return false;
      this.#account = account;
      this.#buffer = Buffer.allocUnsafeSlow(this.#limit);
    }
    this.#buffer.set(piece, this.#receivedBytes - piece.length);
    return true;
  }

  #freeBuffer(): void {
    if (this.#buffer === undefined) return;
    this.#memory.release(this.#account, this.#limit);
    this.#buffer = undefined;
  }
}

export function proceed(exchange: Exchange, incoming: IncomingBody, { onDefect }: ListenerOptions): void {
  if (exchange.aborted) return;
  try {
    incoming.proceed();
  } catch (error) {
    onDefect(exchange, error);
  }
}
