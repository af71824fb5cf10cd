/** Makes what tests, chaos runs and measurements play with, over the service's own APIs. */
import {
  bodyOf,
  type OperatorClient,
  type OperatorSchemas,
  operatorClient,
  type PartnerClient,
  type PartnerSchemas,
  partnerClient,
} from '../../src/api/client/apiClients.js';
import { until } from './wait.js';

export const OPERATOR_KEY = 'operator-key-for-tests';

/** What a test partner has. */
export interface TestPartner {
  readonly partnerId: number;
  readonly key: string;
}

/** Requests a minute: so high that it doesn't matter. */
const NO_LIMIT = 1_000_000_000;
const PLAYABLE_WITHIN_MS = 30_000;

export type Prize = Readonly<OperatorSchemas['RafflePrize']>;

export interface RaffleTerms {
  readonly ticketPriceUsd: number;
  readonly poolSize: number;
  readonly prizes: readonly Prize[];
}

/** Each method throws SpindleError where the service answers with an error. */
export class Api {
  readonly operator: OperatorClient;
  readonly #base: string;

  /** @param base `http://host:port` */
  constructor(base: string, operatorKey = OPERATOR_KEY) {
    this.#base = base;
    this.operator = operatorClient(base, operatorKey);
  }

  /** The partner API with a partner's key. */
  partner(key: string): PartnerClient {
    return partnerClient(this.#base, key);
  }

  /** A sandbox partner without limits, unless settings say otherwise, with a key. */
  async newPartner(
    slug: string,
    settings: Partial<OperatorSchemas['PartnerBody']> = {},
  ): Promise<TestPartner> {
    const limits = { spinRateLimit: NO_LIMIT, apiRateLimit: NO_LIMIT };
    const body = { slug, name: slug, environment: 'sandbox' as const, ...limits, ...settings };
    const { partnerId } = await bodyOf(this.operator.POST('/partners', { body }));
    const params = { path: { id: partnerId } };
    const { apiKey } = await bodyOf(this.operator.POST('/partners/{id}/keys', { params, body: {} }));
    return { partnerId, key: apiKey };
  }

  /** @returns the sheet's id */
  async addSheet(key: string, sheet: object): Promise<number> {
    // Sheets come from files and from generators: the service checks them.
    const body = sheet as PartnerSchemas['ParSheetBody'];
    return (await bodyOf(this.partner(key).POST('/par-sheets', { body }))).parSheetId;
  }

  /** Registers a slot game, which has no outcomes yet. @returns its id */
  async addGame(key: string, parSheetId: number, name: string): Promise<number> {
    const body = { parSheetId, displayName: name, configName: configNameOf(name) };
    return (await bodyOf(this.partner(key).POST('/games', { body }))).gameConfigId;
  }

  /** Makes a raffle, which has no tickets yet. @returns its id */
  async addRaffle(partnerId: number, name: string, { prizes, ...terms }: RaffleTerms): Promise<number> {
    const body = { displayName: name, configName: configNameOf(name), ...terms, prizes: [...prizes] };
    const params = { path: { id: partnerId } };
    return (await bodyOf(this.operator.POST('/partners/{id}/raffles', { params, body }))).gameConfigId;
  }

  /** A slot game that can be played. @returns its id */
  async newGame(key: string, name: string, sheet: object): Promise<number> {
    const gameId = await this.addGame(key, await this.addSheet(key, sheet), name);
    await this.#isPlayable(gameId, name);
    return gameId;
  }

  /** A raffle that can be played. @returns its id */
  async newRaffle(partnerId: number, name: string, terms: RaffleTerms): Promise<number> {
    const gameId = await this.addRaffle(partnerId, name, terms);
    await this.#isPlayable(gameId, name);
    return gameId;
  }

  async #isPlayable(id: number, name: string): Promise<void> {
    await until(
      async () => {
        const { queue } = await bodyOf(this.operator.GET('/games/{id}', { params: { path: { id } } }));
        return queue.outcomesReady > 0;
      },
      `${name} has its first outcomes`,
      PLAYABLE_WITHIN_MS,
    );
  }
}

const configNameOf = (name: string): string => name.toUpperCase().replaceAll('-', '_');
