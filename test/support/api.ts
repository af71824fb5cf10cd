/** Creates partners and games for tests, chaos runs and measurements through the APIs of the service. */
import {
  bodyOf,
  type OperatorClient,
  type OperatorSchemas,
  operatorClient,
  type PartnerClient,
  type PartnerSchemas,
  partnerClient,
} from '../../src/api/client/apiClients.js';
import { BLOCK_OUTCOMES_MIN } from '../../src/engine/blocks/blockMakers.js';
import { until } from './wait.js';

export const OPERATOR_KEY = 'operator-key-for-tests';

/** The id and the API key of a test partner. */
export interface TestPartner {
  readonly partnerId: number;
  readonly key: string;
}

/** A rate limit in requests a minute that is never reached. */
const NO_LIMIT = 1_000_000_000;
const PLAYABLE_WITHIN_MS = 30_000;

export type Prize = Readonly<OperatorSchemas['RafflePrize']>;

export interface RaffleTerms {
  readonly ticketPriceUsd: number;
  readonly poolSize: number;
  readonly prizes: readonly Prize[];
}

/** Typed access to the APIs. Each method throws SpindleError if the service responds with an error. */
export class Api {
  readonly operator: OperatorClient;

  /** @param base address of the service as `http://host:port` */
  constructor(
    private readonly base: string,
    operatorKey = OPERATOR_KEY,
  ) {
    this.operator = operatorClient(base, operatorKey);
  }

  partner(key: string): PartnerClient {
    return partnerClient(this.base, key);
  }

  /**
   * Creates a sandbox partner with a key. The partner has no rate limits unless the settings say otherwise.
   */
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

  /** @returns the id of the PAR sheet */
  async addSheet(key: string, sheet: object): Promise<number> {
    // The type is asserted, because sheets come from files and generators and the service checks them.
    const body = sheet as PartnerSchemas['ParSheetBody'];
    return (await bodyOf(this.partner(key).POST('/par-sheets', { body }))).parSheetId;
  }

  /**
   * Registers a slot game without waiting for its outcomes.
   * @returns the id of the game
   */
  async addGame(key: string, parSheetId: number, name: string): Promise<number> {
    const body = { parSheetId, displayName: name, configName: configNameOf(name) };
    return (await bodyOf(this.partner(key).POST('/games', { body }))).gameConfigId;
  }

  /**
   * Creates a raffle without waiting for its tickets.
   * @returns the id of the raffle
   */
  async addRaffle(partnerId: number, name: string, { prizes, ...terms }: RaffleTerms): Promise<number> {
    const body = { displayName: name, configName: configNameOf(name), ...terms, prizes: [...prizes] };
    const params = { path: { id: partnerId } };
    return (await bodyOf(this.operator.POST('/partners/{id}/raffles', { params, body }))).gameConfigId;
  }

  /**
   * Creates a slot game and waits until it can be played.
   * @param outcomes number of outcomes that must be ready. More than three blocks need a partner with
   * {@link blocksFor} ready blocks.
   * @returns the id of the game
   */
  async newGame(key: string, name: string, sheet: object, outcomes = 1): Promise<number> {
    const gameId = await this.addGame(key, await this.addSheet(key, sheet), name);
    await this.#isPlayable(gameId, name, outcomes);
    return gameId;
  }

  /**
   * Creates a raffle and waits until it can be played.
   * @returns the id of the raffle
   */
  async newRaffle(partnerId: number, name: string, terms: RaffleTerms): Promise<number> {
    const gameId = await this.addRaffle(partnerId, name, terms);
    await this.#isPlayable(gameId, name);
    return gameId;
  }

  async #isPlayable(id: number, name: string, outcomes = 1): Promise<void> {
    await until(
      async () => {
        const { queue } = await bodyOf(this.operator.GET('/games/{id}', { params: { path: { id } } }));
        return queue.outcomesReady >= outcomes;
      },
      `${name} has its first outcomes`,
      PLAYABLE_WITHIN_MS,
    );
  }
}

/**
 * Returns the value of `minReadyBlocks` with which a new game has this many outcomes before its first spin. A
 * burst of spins thus can't exhaust the queue on a busy machine.
 */
export const blocksFor = (outcomes: number): number => Math.ceil(outcomes / BLOCK_OUTCOMES_MIN);

const configNameOf = (name: string): string => name.toUpperCase().replaceAll('-', '_');
