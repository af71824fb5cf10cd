/** Rounds of blackjack: a deal that happens once by its requestId, actions that happen once by their `seq`, and resuming. */
import { type Answered, type ApiOptions, bodyOf, type PlayApi, type PlaySchemas, playApi } from './api.js';
import { byPage } from './pages.js';
import { mayActAgain, mayReadAgain, repeated } from './retries.js';
import { type NewDeal, type OnceServices, once, type Round, type SpinOptions } from './spins.js';

/** Which rounds are listed. */
export interface RoundFilter {
  readonly playerId?: string;
  readonly status?: PlaySchemas['RoundStatus'];
}

export class Blackjack {
  /** The typed calls of the play API; each resolves with `data` or `error` and is sent once. */
  readonly api: PlayApi;
  readonly #services: OnceServices;

  constructor(options: ApiOptions, services: OnceServices) {
    this.api = playApi(options);
    this.#services = services;
  }

  /**
   * Deals once, however often it has to be sent, as `spin` does.
   * @throws SpindleError where the service refused it, such as KS-4222: a round of the player is open (`resume`)
   * @throws UnknownSpinError where it may have happened: call again with the error's requestId
   */
  async deal(deal: NewDeal, options: SpinOptions = {}): Promise<Round & { readonly requestId: string }> {
    const send = (requestId: string, signal: AbortSignal | undefined) =>
      bodyOf(this.api.POST('/deal', { body: { ...deal, requestId }, ...(signal && { signal }) }));
    const { answer, requestId } = await once(this.#services, { requestId: deal.requestId, send }, options);
    return { ...(answer as Round), requestId };
  }

  /**
   * Takes the next action of a round, once, however often it has to be sent. After an error that leaves the result open, call
   * it again with the same round: it is answered as it was.
   * @param round as the newest answer has it: its `lastActionSeq` numbers the action
   * @throws SpindleError, such as KS-4224: another action came first (`get` the round), NoAnswerError
   */
  act(
    { roundId, lastActionSeq }: Pick<Round, 'roundId' | 'lastActionSeq'>,
    action: PlaySchemas['RoundActionName'],
  ): Promise<Round> {
    const body = { roundId, action, seq: lastActionSeq + 1 };
    const send = (): Promise<Round> => bodyOf(this.api.POST('/action', { body })) as Promise<Round>;
    return repeated(send, mayActAgain, this.#services.deadlineMs);
  }

  /** The open round of a player, of one table or of any; undefined where none is open. */
  async resume(playerId: string, gameId?: number): Promise<PlaySchemas['RoundRecordResponse'] | undefined> {
    for await (const round of this.rounds({ playerId, status: 'OPEN' })) {
      if (gameId === undefined || round.gameId === gameId) return round;
    }
    return undefined;
  }

  /** A round as it is. */
  async get(roundId: string): Promise<PlaySchemas['RoundRecordResponse']> {
    const params = { path: { roundId } };
    const round = await this.#read((api) => api.GET('/rounds/{roundId}', { params }));
    return round as PlaySchemas['RoundRecordResponse'];
  }

  /** The proof that the shoe of a round was fixed in the public log before it was dealt. */
  async proof(roundId: string): Promise<PlaySchemas['RoundProof']> {
    const params = { path: { roundId } };
    const proof = await this.#read((api) => api.GET('/rounds/{roundId}/proof', { params }));
    return proof as PlaySchemas['RoundProof'];
  }

  /** The rounds of the account, the newest first. */
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
    return repeated(() => bodyOf(call(this.api)), mayReadAgain, this.#services.deadlineMs);
  }
}
