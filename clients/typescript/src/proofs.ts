/**
 * Proofs of spins and tickets, and the public log entries of games. `blackjack.proof` returns the proofs of
 * rounds.
 */
import type { Calls, Schemas } from './api.js';
import { byCursor } from './pages.js';

export class Proofs {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /**
   * Returns the proof of a spin or ticket.
   *
   * @throws SpindleError KS-4219 if there is no proof; the details say why
   */
  async spin(spinId: string): Promise<Schemas['SpinProof']> {
    const params = { path: { spinId } };
    const proof = await this.#calls.read((api) => api.GET('/spins/{spinId}/proof', { params }));
    return proof as Schemas['SpinProof'];
  }

  /**
   * Iterates over the public log entries of a game, oldest first.
   *
   * @param after number of an entry; only later entries are returned
   */
  blocks(gameId: number, after?: number): AsyncGenerator<Schemas['LoggedBlock'], void, undefined> {
    return byCursor<Schemas['LoggedBlock'], number>(async (cursor) => {
      const query = { limit: 100, ...(cursor === undefined ? {} : { after: cursor }) };
      const params = { path: { id: gameId }, query };
      const page = await this.#calls.read((api) => api.GET('/games/{id}/blocks', { params }));
      return { items: page.blocks as Schemas['LoggedBlock'][], nextCursor: page.nextCursor };
    }, after);
  }

  /**
   * Returns a public log entry. It includes the data that reveals its outcomes once all of them are committed
   * or voided.
   */
  async block(gameId: number, number: number, withOutcomes = false): Promise<Schemas['LoggedBlockDetail']> {
    const query = withOutcomes ? { outcomes: 'true' } : {};
    const params = { path: { id: gameId, number }, query };
    const block = await this.#calls.read((api) => api.GET('/games/{id}/blocks/{number}', { params }));
    return block as Schemas['LoggedBlockDetail'];
  }
}
