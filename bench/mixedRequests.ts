/**
 * Creates the requests of many players and back ends at random, in given shares: spins, blackjack rounds,
 * reads and writes of the partner API. Most requests are independent. After a deal, the same connection
 * sends the player's actions until the round is over.
 */
import { type Connection, KINDS, type Kind, type LoadOrder, type Mix, type RequestSource } from './load.js';
import { playerName, SpinRequests } from './spinRequests.js';

type MixedPartner = Mix['partners'][number];

/** Reads of the partner API, each as often as it is listed. */
const READS: readonly ((partner: MixedPartner, player: string) => string)[] = [
  ...Array(5).fill((_: MixedPartner, player: string) => `/players/${player}`),
  ...Array(2).fill((_: MixedPartner, player: string) => `/players/${player}/spins`),
  (_, player) => `/players/${player}/recall`,
  () => '/spins?limit=20',
  () => '/games',
  ({ webhookId }) => `/webhooks/${webhookId}/deliveries`,
];
const API = '/api/partner/v1';
const PLAY = '/api/play/blackjack';

interface Round {
  readonly roundId: string;
  readonly lastActionSeq: number;
  readonly legalActions: readonly { readonly action: string }[];
}

const oneOf = <T>(values: readonly T[]): T => values[Math.floor(Math.random() * values.length)]!;

export class MixedRequests implements RequestSource {
  readonly #spins: SpinRequests;
  readonly #mix: Mix;
  readonly #order: LoadOrder;
  readonly #host: string;
  #deals = 0;

  constructor(order: LoadOrder, mix: Mix) {
    this.#spins = new SpinRequests(order);
    this.#mix = mix;
    this.#order = order;
    this.#host = new URL(order.base).host;
  }

  next(connection: Connection): Buffer {
    const { followUp } = connection;
    connection.followUp = undefined;
    if (followUp !== undefined) return followUp;
    connection.kind = this.#kind();
    const partner = oneOf(this.#mix.partners);
    connection.apiKey = partner.apiKey;
    switch (connection.kind) {
      case 'spins':
        return this.#spins.next();
      case 'rounds':
        return this.#deal(partner);
      case 'reads': {
        const player = playerName(Math.floor(Math.random() * this.#order.players));
        return this.#request('GET', `${API}${oneOf(READS)(partner, player)}`, partner.apiKey);
      }
      case 'writes':
        return this.#request('PATCH', `${API}/webhooks/${partner.webhookId}`, partner.apiKey, {
          events: ['spin.large_win', 'block.low_reserve'],
        });
    }
  }

  received(connection: Connection, status: number, body: string): void {
    if (connection.kind !== 'rounds' || status >= 300) return;
    const { roundId, lastActionSeq, legalActions } = JSON.parse(body) as Round;
    if (legalActions.length === 0) return;
    const action = legalActions.some((each) => each.action === 'stand') ? 'stand' : 'noInsurance';
    connection.followUp = this.#request('POST', `${PLAY}/action`, connection.apiKey!, {
      roundId,
      action,
      seq: lastActionSeq + 1,
    });
  }

  #kind(): Kind {
    let left = Math.random();
    for (const kind of KINDS) {
      left -= this.#mix.shares[kind];
      if (left < 0) return kind;
    }
    return 'spins';
  }

  /** Each deal has its own player, because a player has at most one open round at a table. */
  #deal({ apiKey, tableId }: MixedPartner): Buffer {
    const requestId = `${this.#order.requestIdPrefix}-deal-${this.#deals++}`;
    const body = { gameId: tableId, playerId: requestId, wagerUsd: this.#mix.tableWagerUsd, requestId };
    return this.#request('POST', `${PLAY}/deal`, apiKey, body);
  }

  #request(method: string, path: string, apiKey: string, body?: object): Buffer {
    const text = body === undefined ? '' : JSON.stringify(body);
    const type =
      body === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n`;
    return Buffer.from(
      `${method} ${path} HTTP/1.1\r\nHost: ${this.#host}\r\nConnection: keep-alive\r\nX-API-Key: ${apiKey}\r\n${type}\r\n${text}`,
      'latin1',
    );
  }
}
