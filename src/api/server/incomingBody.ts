/**
 * The body of a request as it arrives. The key is judged by the head; what comes meanwhile, and from then on, goes into one
 * buffer of the route's limit, whatever the number of pieces. A whole body in one piece, as most are, is not copied.
 *
 *   asked ──(the handler takes the body)──> kept ──(whole)──────────────────────────> received
 *     └──(refused, over the limit, no room)──> passed over ──(ended, or long enough)──> received, or cut
 */
import type { Exchange, Incoming } from './exchange.js';
import { DRAIN_BYTES_MAX, EMPTY_BODY, type ListenerOptions } from './listener.js';

/** Bytes of the buffers of all bodies that are not whole, and of those of one partner. */
const ALL_BYTES_MAX = 16_777_216;
const PARTNER_BYTES_MAX = 4_194_304;
/** Account of requests whose key is not judged yet, and of operators. */
const NO_PARTNER = 0;
/** Pieces of a body that nobody has taken: each costs the event loop a call. Beyond so many, a body in smaller pieces is cut. */
const UNTAKEN_PIECES_MAX = 128;
const PIECE_BYTES_LEAST = 256;
/** A refused request has so long to end before its answer closes the connection. */
const REFUSED_MS = 1000;

/** The bound on buffers of bodies in this process, in all and for each partner. */
export class BodyMemory {
  readonly #byAccount = new Map<number, number>();
  #bytes = 0;

  /** Bytes of all buffers. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @returns false: there is no room */
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
  /** The request is whole, or no more of it is read. */
  isReceived = false;
  /** Asks a client to send the body that waits for `100 Continue`; undefined: none waits. */
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

  /** @param limit bytes; 0: a body is passed over */
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
    // Who waits for `100 Continue` sends nothing before the answer.
    if (this.askToContinue !== undefined) this.#giveUp();
    else this.#timer ??= setTimeout(() => this.#giveUp(), REFUSED_MS).unref();
  }

  /**
   * Counts a piece as soon as it is read, and cuts the connection where there are too many that nobody has taken.
   * @returns false: nothing more of the connection is looked at
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
   * Takes the next piece, which holds until this returns.
   * @returns true: {@link proceed} is due
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
    // No more is read while the answer is made: the sender has to wait.
    this.#exchange.raw.pause();
    return this.#received();
  }

  /** Goes on with what waits for the body: the handler, or the answer to a refused request. */
  proceed(): void {
    this.#then!();
  }

  /** The request is answered, or its client has gone. */
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

  /** @returns false: there is no room */
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

/** Goes on with a request whose body is complete. */
export function proceed(exchange: Exchange, incoming: IncomingBody, { onDefect }: ListenerOptions): void {
  if (exchange.aborted) return;
  try {
    incoming.proceed();
  } catch (error) {
    onDefect(exchange, error);
  }
}
