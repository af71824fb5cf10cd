/**
 * Blackjack rounds: deals that are idempotent by their requestId, actions that are idempotent by their `seq`,
 * and resuming of open rounds.
 */
import {
  type Answered,
  type ApiOptions,
  type ApiWithin,
  apiWithin,
  bodyOf,
  type PlayApi,
  type PlaySchemas,
  playApi,
} from './api.js';
import { byPage } from './pages.js';
import { mayActAgain, mayReadAgain, repeated } from './retries.js';
import { type NewDeal, type OnceServices, once, type Round, type SpinOptions } from './spins.js';

/** Filter of a list of rounds. Absent members select all rounds. */
export interface RoundFilter {
  readonly playerId?: string;
  readonly status?: PlaySchemas['RoundStatus'];
}

export class Blackjack {
  /** Typed calls of the play API. Each call is sent once and resolves with `data` or `error`. */
  readonly api: PlayApi;
  readonly #within: ApiWithin<PlayApi>;
  readonly #services: OnceServices;

  constructor(options: ApiOptions, services: OnceServices) {
    this.api = playApi(options);
    this.#within = apiWithin(playApi, options);
    this.#services = services;
  }

  /**
   * Deals a round exactly once, even if the request has to be sent several times, as `spin` does.
   *
   * @throws SpindleError if the service refused the deal, for example KS-4222 if the player has an open round
   * (use `resume`)
   * @throws UnknownSpinError if the deal may have happened; call again with the error's requestId
   */
  async deal(deal: NewDeal, options: SpinOptions = {}): Promise<Round & { readonly requestId: string }> {
    const send = (requestId: string, leftMs: number, signal: AbortSignal | undefined) =>
      bodyOf(this.#within(leftMs).POST('/deal', { body: { ...deal, requestId }, signal: signal ?? null }));
    const { answer, requestId } = await once(this.#services, { requestId: deal.requestId, send }, options);
    return { ...(answer as Round), requestId };
  }

  /**
   * Takes the next action of a round exactly once, even if the request has to be sent several times. After an
   * error that leaves the result unknown, call it again with the same round to get the result of the first
   * call.
   *
   * @param round round from the newest answer; `lastActionSeq` + 1 numbers the action
   * @throws SpindleError for example KS-4224 if another action came first (`get` the round)
   * @throws NoAnswerError if the service did not answer
   */
  act(
    { roundId, lastActionSeq }: Pick<Round, 'roundId' | 'lastActionSeq'>,
    action: PlaySchemas['RoundActionName'],
  ): Promise<Round> {
    const body = { roundId, action, seq: lastActionSeq + 1 };
    const send = (leftMs: number): Promise<Round> =>
      bodyOf(this.#within(leftMs).POST('/action', { body })) as Promise<Round>;
    return repeated(send, mayActAgain, this.#services.deadlineMs);
  }

  /**
   * Returns the open round of a player, at one table or at any table. Returns undefined if no round is open.
   */
  async resume(playerId: string, gameId?: number): Promise<PlaySchemas['RoundRecordResponse'] | undefined> {
    for await (const round of this.rounds({ playerId, status: 'OPEN' })) {
      if (gameId === undefined || round.gameId === gameId) return round;
    }
    return undefined;
  }

  /** Returns the current state of a round. */
  async get(roundId: string): Promise<PlaySchemas['RoundRecordResponse']> {
    const params = { path: { roundId } };
    const round = await this.#read((api) => api.GET('/rounds/{roundId}', { params }));
    return round as PlaySchemas['RoundRecordResponse'];
  }

  /** Returns the proof that the shoe of a round was fixed in the public log before it was dealt. */
  async proof(roundId: string): Promise<PlaySchemas['RoundProof']> {
    const params = { path: { roundId } };
    const proof = await this.#read((api) => api.GET('/rounds/{roundId}/proof', { params }));
    return proof as PlaySchemas['RoundProof'];
  }

  /** Iterates over the rounds of the account, newest first. */
  rounds(filter: RoundFilter = {}): AsyncGenerator<PlaySchemas['RoundRecordResponse'], void, undefined> {
    return byPage(
      async (page) => {
        const params = { query: { ...filter, ...page } };
        const { rounds, total } = await this.#read((api) => api.GET('/rounds', { params }));
        return { items: rounds as PlaySchemas['RoundRecordResponse'][], total };
      },
      ({ roundId }) => roundId,
    );
  }

  #read<Body>(call: (api: PlayApi) => Promise<Answered<Body>>): Promise<Body> {
    const send = (leftMs: number): Promise<Body> => bodyOf(call(this.#within(leftMs)));
    return repeated(send, mayReadAgain, this.#services.deadlineMs);
  }
}
