/**
 * Simulates blackjack players next to the spins of a chaos run. No shoe that a player has seen may be dealt
 * again.
 */
import { bodyOf } from '../../src/api/client/apiClients.js';
import type { Api } from '../support/api.js';
import { postRequest, type WireAnswer } from '../support/load.js';
import type { Random } from '../support/random.js';
import type { RoundAnswer } from '../support/rounds.js';
import { pause, until } from '../support/wait.js';
import { Line, OUTAGE } from './roundPlayers.js';

const WAGER_USD = 0.5;
const PLAYERS = 6;
const ASK_AGAIN_MS = 100;
const REST_MS = 40;
const PLAYABLE_WITHIN_MS = 30_000;

export interface Table {
  readonly gameId: number;
  readonly key: string;
}

/** Makes a blackjack table and waits until rounds can be dealt from it. */
export async function newTable(api: Api, partner: { partnerId: number; key: string }): Promise<Table> {
  const params = { path: { id: partner.partnerId } };
  const body = { displayName: 'Table', configName: 'TABLE', wagerUsd: WAGER_USD, rules: {} };
  const { gameConfigId: gameId } = await bodyOf(
    api.operator.POST('/partners/{id}/blackjack-games', { params, body }),
  );
  await until(
    async () => {
      const game = await bodyOf(api.operator.GET('/games/{id}', { params: { path: { id: gameId } } }));
      return game.queue.outcomesReady > 0;
    },
    'the table has shoes',
    PLAYABLE_WITHIN_MS,
  );
  return { gameId, key: partner.key };
}

export class TablePlayers {
  readonly breaches: string[] = [];
  /** The round in which the cards of each shoe were shown. */
  readonly #shown = new Map<string, string>();
  #rounds = 0;
  /** Number of restores. Rounds that began before a restore may be gone. */
  #restores = 0;
  #isStopping = false;
  #running: Promise<unknown> | undefined;

  constructor(
    private readonly port: number,
    private readonly table: Table,
    private readonly prefix: string,
  ) {}

  start(random: Random): void {
    this.#isStopping = false;
    this.#running = Promise.all(Array.from({ length: PLAYERS }, () => this.#play(random)));
  }

  /** Stops playing and leaves rounds open. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#running;
  }

  restored(): void {
    this.#restores++;
  }

  async #play(random: Random): Promise<void> {
    const line = new Line({ port: () => this.port });
    while (!this.#isStopping) {
      await this.#playRound(line, random);
      await pause(REST_MS);
    }
    line.close();
  }

  async #playRound(line: Line, random: Random): Promise<void> {
    const { gameId } = this.table;
    const name = `${this.prefix}-table-${++this.#rounds}`;
    const restores = this.#restores;
    let answer = await this.#answered(
      line,
      '/deal',
      { gameId, playerId: name, wagerUsd: WAGER_USD, requestId: name },
      restores,
    );
    while (answer !== undefined) {
      const round = JSON.parse(answer.text) as RoundAnswer;
      this.#see(round);
      if (round.status !== 'OPEN') return;
      const { action } = random.pick(round.legalActions);
      const body = { roundId: round.roundId, action, seq: round.lastActionSeq + 1 };
      answer = await this.#answered(line, '/action', body, restores);
    }
  }

  #see({ roundId, shoe }: RoundAnswer): void {
    const name = String(shoe.index);
    const before = this.#shown.get(name);
    if (before === undefined) this.#shown.set(name, roundId);
    else if (before !== roundId)
      this.breaches.push(`shoe ${name} was shown in round ${before} and dealt again in round ${roundId}`);
  }

  /**
   * Sends a request until it is answered. Returns undefined if the run stops or a restore removed the round.
   */
  async #answered(line: Line, path: string, body: object, restores: number): Promise<WireAnswer | undefined> {
    const bytes = postRequest(`/api/play/blackjack${path}`, this.table.key, JSON.stringify(body));
    for (;;) {
      const answer = await line.ask(bytes);
      if (answer !== undefined && answer.status < 300) return answer;
      const code = answer === undefined ? 'no answer' : String(JSON.parse(answer.text).errorCode);
      if (!OUTAGE.includes(code)) {
        if (restores === this.#restores) this.breaches.push(`no outage explains ${answer!.text}`);
        return undefined;
      }
      if (this.#isStopping) return undefined;
      await pause(ASK_AGAIN_MS);
    }
  }
}
