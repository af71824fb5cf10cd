/** What a run sets up before it begins, over the service's own APIs. */

import { until } from '../support/wait.js';
import { OPERATOR_KEY } from './services.js';

const NO_LIMIT = 1_000_000_000;
const PLAYABLE_WITHIN_MS = 30_000;

export interface Prize {
  readonly prizeName: string;
  readonly prizeTier: number;
  readonly valueUsd: number;
  readonly count: number;
}

export class Api {
  readonly #base: string;

  constructor(port: number) {
    this.#base = `http://127.0.0.1:${port}/api`;
  }

  /** @throws where the answer is not a success */
  async ask<T>(method: string, path: string, key: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.#base}/${path}`, {
      method,
      headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as T;
  }

  operator<T>(method: string, path: string, body?: unknown): Promise<T> {
    return this.ask<T>(method, `operator/v1/${path}`, OPERATOR_KEY, body);
  }

  /** A partner without limits, with a key. */
  async newPartner(slug: string): Promise<{ partnerId: number; key: string }> {
    const { partnerId } = await this.operator<{ partnerId: number }>('POST', 'partners', {
      slug,
      name: slug,
      environment: 'sandbox',
      spinRateLimit: NO_LIMIT,
      apiRateLimit: NO_LIMIT,
    });
    const { apiKey } = await this.operator<{ apiKey: string }>('POST', `partners/${partnerId}/keys`, {});
    return { partnerId, key: apiKey };
  }

  /** A slot game that can be played. */
  async newGame(key: string, name: string, sheet: object): Promise<number> {
    const { parSheetId } = await this.ask<{ parSheetId: number }>(
      'POST',
      'partner/v1/par-sheets',
      key,
      sheet,
    );
    const { gameConfigId } = await this.ask<{ gameConfigId: number }>('POST', 'partner/v1/games', key, {
      parSheetId,
      displayName: name,
      configName: name.toUpperCase().replaceAll('-', '_'),
    });
    await this.#isPlayable(gameConfigId, name);
    return gameConfigId;
  }

  /** A raffle that can be played. */
  async newRaffle(
    partnerId: number,
    raffle: { name: string; ticketPriceUsd: number; poolSize: number; prizes: readonly Prize[] },
  ): Promise<number> {
    const { name, ...rest } = raffle;
    const { gameConfigId } = await this.operator<{ gameConfigId: number }>(
      'POST',
      `partners/${partnerId}/raffles`,
      { displayName: name, configName: name, ...rest },
    );
    await this.#isPlayable(gameConfigId, name);
    return gameConfigId;
  }

  async #isPlayable(gameId: number, name: string): Promise<void> {
    await until(
      async () => {
        const { queue } = await this.operator<{ queue: { outcomesReady: number } }>('GET', `games/${gameId}`);
        return queue.outcomesReady > 0;
      },
      `${name} has its first outcomes`,
      PLAYABLE_WITHIN_MS,
    );
  }
}
