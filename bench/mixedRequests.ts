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
  (partner) => `/spins?limit=100&${positions.get(partner.apiKey) ?? `from=${begun}`}`,
  () => '/games',
  ({ webhookId }) => `/webhooks/${webhookId}/deliveries`,
];
/**
 * Position of each partner in its list of spins by time, as a query. Each read continues after the previous
 * one.
 */
const positions = new Map<string, string>();
const begun = new Date().toISOString();
const API = '/api/partner/v1';
const PLAY = '/api/play/blackjack';

interface Round {
  readonly roundId: string;
  readonly lastActionSeq: number;
  readonly legalActions: readonly { readonly action: string }[];
}

interface SpinsByTime {
  readonly spins?: readonly { readonly spinId: string }[];
  readonly nextCursor?: string | null;
}

/** Number of deals of all loads of this process, because each deal needs a requestId of its own. */
let deals = 0;

const oneOf = <T>(values: readonly T[]): T => values[Math.floor(Math.random() * values.length)]!;

export class MixedRequests implements RequestSource {
  readonly #spins: SpinRequests;
  readonly #host: string;

  constructor(
    private readonly order: LoadOrder,
    private readonly mix: Mix,
  ) {
    this.#spins = new SpinRequests(order);
    this.#host = new URL(order.base).host;
  }

  next(connection: Connection): Buffer {
    const { followUp } = connection;
    connection.followUp = undefined;
    if (followUp !== undefined) return followUp;
    connection.kind = this.#kind();
    const partner = oneOf(this.mix.partners);
    connection.apiKey = partner.apiKey;
    switch (connection.kind) {
      case 'spins':
        return this.#spins.next();
      case 'rounds':
        return this.#deal(partner);
      case 'reads': {
        const player = playerName(Math.floor(Math.random() * this.order.players));
        return this.#request('GET', `${API}${oneOf(READS)(partner, player)}`, partner.apiKey);
      }
      case 'writes':
        return this.#write(partner);
    }
  }

  received(connection: Connection, status: number, body: string): void {
    if (status >= 300) return;
    if (connection.kind === 'reads' && body.includes('"nextCursor"')) {
      const { spins, nextCursor } = JSON.parse(body) as SpinsByTime;
      const cursor = nextCursor ?? spins?.at(-1)?.spinId;
      if (cursor !== undefined) positions.set(connection.apiKey!, `cursor=${cursor}`);
    }
    if (connection.kind !== 'rounds') return;
    const { roundId, lastActionSeq, legalActions } = JSON.parse(body) as Round;
    if (legalActions.length === 0) return;
    const action = legalActions.some((each) => each.action === 'stand') ? 'stand' : 'noInsurance';
    connection.followUp = this.#request('POST', `${PLAY}/action`, connection.apiKey!, {
      roundId,
      action,
      seq: lastActionSeq + 1,
    });
  }

  /** One of five writes changes a webhook, which the audit log records. The others send a test event. */
  #write({ webhookId, apiKey }: MixedPartner): Buffer {
    const path = `${API}/webhooks/${webhookId}`;
    if (Math.random() < 0.2) return this.#request('PATCH', path, apiKey, { events: ['spin.large_win'] });
    return this.#request('POST', `${path}/test`, apiKey, { event: 'spin.large_win' });
  }

  #kind(): Kind {
    let left = Math.random();
    for (const kind of KINDS) {
      left -= this.mix.shares[kind];
      if (left < 0) return kind;
    }
    return 'spins';
  }

  /** Each deal has its own player, because a player has at most one open round at a table. */
  #deal({ apiKey, tableId }: MixedPartner): Buffer {
    const requestId = `${this.order.requestIdPrefix}-deal-${deals++}`;
    const body = { gameId: tableId, playerId: requestId, wagerUsd: this.mix.tableWagerUsd, requestId };
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
