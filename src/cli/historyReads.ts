/** What `spindle verify --history` asks of a service: its public log, and the partner's own reads. Reads are repeated where they may pass. */
import { setTimeout as delay } from 'node:timers/promises';
import { TILE_WIDTH, tilePath } from '../domain/publicLog/tiles.js';
import { boundedRequest } from '../platform/runtime/boundedRequest.js';
import { lineOf } from '../platform/secretsInLogs.js';
import { UsageError } from './command.js';

const WITHIN_MS = 30_000;
const ATTEMPTS = 8;
const FIRST_WAIT_MS = 250;
/** What a window asks for at most. */
const WAIT_SECONDS_MAX = 60;
const LOG_BYTES_MAX = TILE_WIDTH * 65_537;
/** Four million outcomes in base64, and what stands around them. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/** What the service answers of a thing that it has not, or has no more. */
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
  /** How long it asks to wait. */
  readonly waitMs: number | undefined;
}

export class HistoryReads {
  readonly #base: string;
  readonly #key: string;
  readonly #tiles = new Map<string, Promise<Buffer>>();

  /** @throws UsageError where the address is none */
  constructor(url: string, key: string) {
    if (!/^https?:\/\//.test(url) || !URL.canParse(url))
      throw new UsageError(`«${url}» is no http:// or https:// address`);
    this.#base = url.replace(/\/+$/, '');
    this.#key = key;
  }

  /** Asks once. @throws Error where no answer comes, or one of more than `most` bytes */
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

  /** Asks again while the service refuses for the moment (429, 503). */
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

  /** Something below `/log/`; undefined: there is none. */
  async #log(path: string): Promise<Buffer | undefined> {
    const { status, body } = await this.#read(`/log/${path}`, LOG_BYTES_MAX);
    if (status === 404) return undefined;
    if (status !== 200) throw new Error(`${this.#base}/log/${path} answers ${status}`);
    return body;
  }

  /** The newest note. @throws Error where there is none */
  async checkpoint(): Promise<string> {
    const note = await this.#log('checkpoint');
    if (note === undefined) throw new Error(`${this.#base}/log has no checkpoint yet`);
    return note.toString('utf8');
  }

  /** A tile below the log, each asked for once. */
  readonly tile = (path: string): Promise<Buffer> => {
    const tile =
      this.#tiles.get(path) ??
      this.#log(path).then((bytes) => bytes ?? Promise.reject(new Error(`the log lacks ${path}`)));
    this.#tiles.set(path, tile);
    return tile;
  };

  /** A bundle with at least `width` records; the full one where there is no partial one any more. @throws Error where it lacks both */
  async bundle(index: number, width: number): Promise<Buffer> {
    const place = { level: 'entries', index, width } as const;
    const found =
      (await this.#log(tilePath(place))) ?? (await this.#log(tilePath({ ...place, width: TILE_WIDTH })));
    if (found === undefined) throw new Error(`the log lacks ${tilePath(place)}`);
    return found;
  }

  /** A read of the partner's. @param path below `/api/`. @throws RefusedError for an answer of 400 to 499, Error for others */
  async ask<T>(path: string): Promise<T> {
    const { status, body } = await this.#read(`/api/${path}`, ANSWER_BYTES_MAX);
    let answer: unknown;
    try {
      answer = JSON.parse(body.toString('utf8'));
    } catch {
      throw new Error(`${this.#base}/api/${path} answers ${status}, and no JSON`);
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

/** Asks for several things at a time, and gives them in their order. */
export async function* inOrder<T, R>(
  items: Iterable<T>,
  ask: (item: T) => Promise<R>,
  atOnce = 8,
): AsyncGenerator<R> {
  const waiting: Promise<R>[] = [];
  for (const item of items) {
    const asked = ask(item);
    // What fails is thrown in its turn.
    asked.catch(() => undefined);
    waiting.push(asked);
    if (waiting.length >= atOnce) yield waiting.shift()!;
  }
  while (waiting.length > 0) yield waiting.shift()!;
}

/** A list of an answer. @throws Error where it has none */
export function listIn<T>(answer: unknown, name: string): readonly T[] {
  const list = (answer as Readonly<Record<string, unknown>> | null)?.[name];
  if (!Array.isArray(list) || !list.every((item) => item !== null && typeof item === 'object'))
    throw new Error(`The service answers without a list «${name}»`);
  return list as T[];
}
