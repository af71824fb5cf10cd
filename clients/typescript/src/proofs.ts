/** Proofs of spins and tickets, and what is logged of a game. `blackjack.proof` has those of rounds. */
import type { Calls, Schemas } from './api.js';
import { byCursor } from './pages.js';

export class Proofs {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** @throws SpindleError KS-4219 where there is none; its details say why */
  async spin(spinId: string): Promise<Schemas['SpinProof']> {
    const params = { path: { spinId } };
    const proof = await this.#calls.read((api) => api.GET('/spins/{spinId}/proof', { params }));
    return proof as Schemas['SpinProof'];
  }

  /** What is logged of a game, the oldest first. @param after number of an entry: those after it */
  blocks(gameId: number, after?: number): AsyncGenerator<Schemas['LoggedBlock'], void, undefined> {
    return byCursor<Schemas['LoggedBlock'], number>(async (cursor) => {
      const query = { limit: 100, ...(cursor === undefined ? {} : { after: cursor }) };
      const params = { path: { id: gameId }, query };
      const page = await this.#calls.read((api) => api.GET('/games/{id}/blocks', { params }));
      return { items: page.blocks as Schemas['LoggedBlock'][], nextCursor: page.nextCursor };
    }, after);
  }

  /** An entry, with what reveals its outcomes once all are booked or given up. */
  async block(gameId: number, number: number, withOutcomes = false): Promise<Schemas['LoggedBlockDetail']> {
    const query = withOutcomes ? { outcomes: 'true' } : {};
    const params = { path: { id: gameId, number }, query };
    const block = await this.#calls.read((api) => api.GET('/games/{id}/blocks/{number}', { params }));
    return block as Schemas['LoggedBlockDetail'];
  }
}
