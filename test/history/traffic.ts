/**
 * Plays the traffic of players for a few hours. The seed decides who plays what, but the service draws the
 * outcomes as always.
 */
import type { Client } from '../support/client.js';
import type { Random } from '../support/random.js';
import type { DemoGame, DemoPartner } from './portfolio.js';

/**
 * Number of concurrent requests. Rounds and tickets need more, because they are answered after their commit
 * to the ledger.
 */
const SPINS_AT_ONCE = 16;
const ROUNDS_AT_ONCE = 40;
const ROUND_STEPS_MAX = 20;
/** Share of rounds that players abandon. They stay open for a day and are then closed. */
const LEFT_OPEN = 0.02;
/** Half-width of the 99 % band of a return, in standard errors. */
const BAND = 2.576;
const JUDGED_FROM_SPINS = 100;
/** Relative traffic for each of the 24 hours of a day, highest in the evening. */
const HOURS = [3, 2, 1, 1, 1, 1, 2, 3, 4, 5, 5, 6, 7, 6, 6, 6, 7, 8, 10, 12, 14, 13, 9, 5];
const HOURS_SUM = HOURS.reduce((sum, each) => sum + each, 0);

interface Round {
  readonly roundId: string;
  readonly phase: string;
  readonly lastActionSeq: number;
  readonly activeHand: number | null;
  readonly hands: readonly { readonly total: number }[];
  readonly legalActions: readonly { readonly action: string }[];
}

/** The sums from which the return of a game so far is computed. */
interface Return {
  spins: number;
  net: number;
}

export class Traffic {
  readonly #returns = new Map<number, Return>();
  /** Number of error responses, by error code. */
  readonly refusals = new Map<string, number>();
  plays = 0;

  constructor(
    private readonly client: Client,
    private readonly random: Random,
  ) {}

  /**
   * Plays a partner's traffic between two hours of a day.
   * @param weight factor of the day's traffic, 1 on usual days
   */
  async play(partner: DemoPartner, fromHour: number, toHour: number, weight: number): Promise<void> {
    const share = HOURS.slice(fromHour, toHour).reduce((sum, each) => sum + each, 0) / HOURS_SUM;
    const plays = Math.round(partner.playsADay * weight * share * (0.9 + 0.2 * this.random.next()));
    const shares = partner.games.flatMap((game) => Array.from({ length: game.share }, () => game));
    const wanted = Array.from({ length: plays }, () => this.random.pick(shares));
    const plans = wanted.map((game) => ({
      game,
      player: this.#playerOf(partner),
      leaves: this.random.chance(LEFT_OPEN),
    }));
    const [spins, waiting] = [
      plans.filter(({ game }) => game.kind === 'slot'),
      plans.filter(({ game }) => game.kind !== 'slot'),
    ];
    await Promise.all([
      atOnce(SPINS_AT_ONCE, spins, ({ game, player }) => this.#spin(partner, game, player)),
      atOnce(ROUNDS_AT_ONCE, waiting, ({ game, player, leaves }) =>
        game.kind === 'raffle'
          ? this.#spin(partner, game, player)
          : this.#round(partner, game, player, leaves),
      ),
    ]);
  }

  /** Picks a player, with a strong preference for a few players. */
  #playerOf({ players }: DemoPartner): string {
    return players[Math.floor(players.length * this.random.next() ** 2)]!;
  }

  async #spin(partner: DemoPartner, game: DemoGame, playerId: string): Promise<void> {
    if (this.#rests(game)) return;
    const { id: gameId, wagerUsd } = game;
    const requestId = `${partner.slug}-${++this.plays}`;
    const { status, body } = await this.client.spin<{ outcome: { payoutUsd: number }; errorCode?: string }>(
      partner.key,
      { gameId, playerId, wagerUsd, requestId },
    );
    // Nobody plays a raffle that is sold out.
    if (status === 410) partner.games = partner.games.filter(({ id }) => id !== gameId);
    if (status !== 200) return this.#refused(body.errorCode);
    const known = this.#returns.get(gameId) ?? { spins: 0, net: 0 };
    this.#returns.set(gameId, { spins: known.spins + 1, net: known.net + body.outcome.payoutUsd / wagerUsd });
  }

  /**
   * Returns whether players avoid a game for now because its return has left the 99 % band. The return of an
   * honest game also leaves the band sometimes for a while.
   */
  #rests({ id, sigma }: DemoGame): boolean {
    const known = this.#returns.get(id);
    if (sigma === undefined || known === undefined || known.spins < JUDGED_FROM_SPINS) return false;
    return Math.abs(known.net / known.spins - 0.96) * Math.sqrt(known.spins) > BAND * sigma;
  }

  async #round(partner: DemoPartner, game: DemoGame, playerId: string, leaves: boolean): Promise<void> {
    const { id: gameId, wagerUsd } = game;
    const requestId = `${partner.slug}-${++this.plays}`;
    const play = (path: string, body: object) =>
      this.client.request<Round & { errorCode?: string }>('POST', `/api/play/blackjack${path}`, {
        key: partner.key,
        body,
      });
    let answer = await play('/deal', { gameId, playerId, wagerUsd, requestId });
    for (let step = 0; step < ROUND_STEPS_MAX && !leaves; step++) {
      if (answer.status !== 200 && answer.status !== 201) return this.#refused(answer.body.errorCode);
      const { roundId, legalActions, lastActionSeq, hands, activeHand } = answer.body;
      if (legalActions.length === 0) return;
      const legal = legalActions.map(({ action }) => action);
      const total = activeHand === null ? 21 : hands[activeHand]!.total;
      const action = ['noInsurance', total < 15 ? 'hit' : 'stand', 'stand'].find((each) =>
        legal.includes(each),
      );
      answer = await play('/action', { roundId, action: action ?? legal[0], seq: lastActionSeq + 1 });
    }
  }

  #refused(code = 'none'): void {
    this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1);
  }
}

/** Processes a list with a limited number of items at a time. */
async function atOnce<T>(width: number, list: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = list.values();
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (const item of rest) await work(item);
    }),
  );
}
