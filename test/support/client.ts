/** Talks to the service as a partner and as the operator would. */
import { randomBytes } from 'node:crypto';
import { until } from './wait.js';

export const OPERATOR_KEY = 'operator-key-for-tests';

export interface Answer<T = Record<string, unknown>> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: T;
}

type Json = Record<string, unknown>;

/** What a test partner has. */
export interface TestPartner {
  readonly partnerId: number;
  readonly key: string;
}

export class Client {
  constructor(readonly base: string) {}

  async request<T = Json>(
    method: string,
    path: string,
    options: { key?: string; body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<Answer<T>> {
    const { key, body, headers } = options;
    const response = await fetch(this.base + path, {
      method,
      headers: {
        ...(key === undefined ? {} : { 'X-API-Key': key }),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined
        ? {}
        : {
            body:
              typeof body === 'string' || body instanceof Uint8Array
                ? (body as string)
                : JSON.stringify(body),
          }),
    });
    const text = await response.text();
    let parsed: unknown;
    try {
      parsed = text === '' ? undefined : JSON.parse(text);
    } catch {
      parsed = undefined;
    }
    return { status: response.status, headers: response.headers, text, body: parsed as T };
  }

  partner<T = Json>(method: string, path: string, key: string, body?: unknown): Promise<Answer<T>> {
    return this.request<T>(method, `/api/partner/v1${path}`, { key, body });
  }

  operator<T = Json>(method: string, path: string, body?: unknown): Promise<Answer<T>> {
    return this.request<T>(method, `/api/operator/v1${path}`, { key: OPERATOR_KEY, body });
  }

  spin<T = Json>(key: string, body: unknown): Promise<Answer<T>> {
    return this.partner<T>('POST', '/spin', key, body);
  }

  /** A partner with a key; limits so high that they don't matter, unless settings say otherwise. */
  async newPartner(settings: Json = {}): Promise<TestPartner> {
    const made = await this.operator<{ partnerId: number }>('POST', '/partners', {
      slug: `p-${randomBytes(6).toString('hex')}`,
      name: 'Test partner',
      environment: 'sandbox',
      spinRateLimit: 1_000_000_000,
      apiRateLimit: 1_000_000_000,
      ...settings,
    });
    if (made.status !== 201) throw new Error(`No partner: ${made.text}`);
    const { partnerId } = made.body;
    const key = await this.operator<{ apiKey: string }>('POST', `/partners/${partnerId}/keys`, {});
    return { partnerId, key: key.body.apiKey };
  }

  /** Uploads a sheet and registers a game on it; waits until the game can be spun. */
  async newGame(key: string, sheet: unknown): Promise<number> {
    const upload = await this.partner<{ parSheetId: number }>('POST', '/par-sheets', key, sheet);
    if (upload.status !== 201) throw new Error(`No PAR sheet: ${upload.text}`);
    const game = await this.partner<{ gameConfigId: number }>('POST', '/games', key, {
      parSheetId: upload.body.parSheetId,
      displayName: 'Test game',
      configName: `G_${randomBytes(6).toString('hex').toUpperCase()}`,
    });
    if (game.status !== 201) throw new Error(`No game: ${game.text}`);
    const gameId = game.body.gameConfigId;
    await until(async () => {
      const state = await this.operator<{ queue: { readyBlocks: number } }>('GET', `/games/${gameId}`);
      return state.body.queue.readyBlocks > 0;
    }, 'the game has its first block');
    return gameId;
  }
}
