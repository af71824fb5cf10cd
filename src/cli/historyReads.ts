/**
 * Reads for `spindle verify --history` from a service: its public log, and the partner's own data. Temporary
 * failures are retried.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { TILE_WIDTH, tilePath } from '../domain/publicLog/tiles.js';
import { boundedRequest } from '../platform/runtime/boundedRequest.js';
import { lineOf } from '../platform/secretsInLogs.js';
import { UsageError } from './command.js';

const WITHIN_MS = 30_000;
const ATTEMPTS = 8;
const FIRST_WAIT_MS = 250;
/** Maximum wait that the client accepts from Retry-After, in seconds. */
const WAIT_SECONDS_MAX = 60;
const LOG_BYTES_MAX = TILE_WIDTH * 65_537;
/** Maximum size of an answer in bytes: four million outcomes in base64 plus the rest of the answer. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/** Thrown if the service refuses a request, for example because the object does not exist any more. */
export class HistoryRefusedError extends Error {
  constructor(
    readonly code: string,
    readonly reason: string | undefined,
    message: string,
  ) {
    super(message);
  }
}

interface Read {
  readonly status: number;
  readonly body: Buffer;
  /** Wait that the service requests, in ms. */
  readonly waitMs: number | undefined;
}

export class HistoryReads {
  readonly #base: string;
  readonly #key: string;
  readonly #tiles = new Map<string, Promise<Buffer>>();

  constructor(url: string, key: string) {
    if (!/^https?:\/\//.test(url) || !URL.canParse(url))
      throw new UsageError(`«${url}» is not an http:// or https:// address`);
    this.#base = url.replace(/\/+$/, '');
    this.#key = key;
  }

  /** @throws Error if there is no answer, or one larger than `most` bytes */
  async #once(path: string, most: number): Promise<Read> {
    const headers: Record<string, string> = path.startsWith('/api/') ? { 'X-API-Key': this.#key } : {};
    const answer = await boundedRequest(`${this.#base}${path}`, {
      headers,
      bytesMax: most,
      withinMs: WITHIN_MS,
    });
    const seconds = Number(answer.header('retry-after') ?? Number.NaN);
    const waitMs = seconds >= 0 ? Math.min(seconds, WAIT_SECONDS_MAX) * 1000 : undefined;
    return { status: answer.status, body: answer.body, waitMs };
  }

  /** Sends a request and retries while the service refuses temporarily (429, 503). */
  async #read(path: string, most: number): Promise<Read> {
    for (let attempt = 1; ; attempt++) {
      let answer: Read;
      try {
        answer = await this.#once(path, most);
      } catch (error) {
        const { cause } = error as Error;
        throw new Error(`${this.#base}${path}: ${lineOf(cause instanceof Error ? cause : error)}`);
      }
      const mayPass = answer.status === 429 || answer.status === 503;
      if (!mayPass || attempt === ATTEMPTS) return answer;
      await delay(answer.waitMs ?? FIRST_WAIT_MS * 2 ** (attempt - 1));
    }
  }

  /** Returns a file below `/log/`, or undefined if it does not exist. */
  async #log(path: string): Promise<Buffer | undefined> {
    const { status, body } = await this.#read(`/log/${path}`, LOG_BYTES_MAX);
    if (status === 404) return undefined;
    if (status !== 200) throw new Error(`${this.#base}/log/${path} answers ${status}`);
    return body;
  }

  /** @throws Error if the log has none */
  async checkpoint(): Promise<string> {
    const note = await this.#log('checkpoint');
    if (note === undefined) throw new Error(`${this.#base}/log has no checkpoint yet`);
    return note.toString('utf8');
  }

  /** Returns a tile of the log. Each tile is requested once. */
  readonly tile = (path: string): Promise<Buffer> => {
    const tile =
      this.#tiles.get(path) ??
      this.#log(path).then((bytes) => bytes ?? Promise.reject(new Error(`the log does not contain ${path}`)));
    this.#tiles.set(path, tile);
    return tile;
  };

  /**
   * Returns a bundle with at least `width` records, or the full bundle if the partial one has been removed.
   * @throws Error if both are missing
   */
  async bundle(index: number, width: number): Promise<Buffer> {
    const place = { level: 'entries', index, width } as const;
    const found =
      (await this.#log(tilePath(place))) ?? (await this.#log(tilePath({ ...place, width: TILE_WIDTH })));
    if (found === undefined) throw new Error(`the log does not contain ${tilePath(place)}`);
    return found;
  }

  /**
   * Sends a GET request with the partner's key.
   * @param path path below `/api/`
   * @throws HistoryRefusedError for a status of 400 to 499, Error for other failures
   */
  async ask<T>(path: string): Promise<T> {
    const { status, body } = await this.#read(`/api/${path}`, ANSWER_BYTES_MAX);
    let answer: unknown;
    try {
      answer = JSON.parse(body.toString('utf8'));
    } catch {
      throw new Error(`${this.#base}/api/${path} returned status ${status} without JSON`);
    }
    if (status === 200) return answer as T;
    const { errorCode = status, message, details } = answer as Refusal;
    const text = `${errorCode} ${message ?? ''}`.trim();
    if (status >= 400 && status < 500)
      throw new HistoryRefusedError(String(errorCode), details?.[0]?.reason, `${path}: ${text}`);
    throw new Error(`${this.#base}/api/${path} answers ${text}`);
  }
}

interface Refusal {
  readonly errorCode?: string;
  readonly message?: string;
  readonly details?: readonly { readonly reason?: string }[];
}

/** Requests several items concurrently and yields the answers in order. */
export async function* inOrder<T, R>(
  items: Iterable<T>,
  ask: (item: T) => Promise<R>,
  atOnce = 8,
): AsyncGenerator<R> {
  const waiting: Promise<R>[] = [];
  for (const item of items) {
    const asked = ask(item);
    // An error of an item is thrown when that item is yielded.
    asked.catch(() => undefined);
    waiting.push(asked);
    if (waiting.length >= atOnce) yield waiting.shift()!;
  }
  while (waiting.length > 0) yield waiting.shift()!;
}

/** @throws Error if the answer has no such list */
export function listIn<T>(answer: unknown, name: string): readonly T[] {
  const list = (answer as Readonly<Record<string, unknown>> | null)?.[name];
  if (!Array.isArray(list) || !list.every((item) => item !== null && typeof item === 'object'))
    throw new Error(`The response of the service does not contain the list «${name}»`);
  return list as T[];
}
