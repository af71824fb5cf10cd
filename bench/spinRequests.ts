/** Creates spins as bytes from a template for each target; only player and request id are written anew. */
import type { LoadOrder, RequestSource } from './load.js';

/** Returns the id of a player by number. All ids have the same length. */
export const playerName = (number: number): string => `player-${10_000_000 + number}`;

interface Template {
  readonly bytes: Buffer;
  /** Offset of the player's digits, which differ between players. */
  readonly playerAt: number;
  /** Offset of the last digits of the request id; -1: the request has no request id. */
  readonly counterAt: number;
}

const ZERO = 48;
/** Digits of the request counter, which is unique for a billion requests of a process. */
const COUNTER_DIGITS = 9;
/** Text between the prefix and the counter, which makes a request id as long as a UUID. */
const COUNTER_LEAD = '-000';
const PLAYER_DIGITS = 8;
const FIRST_PLAYER = Number(playerName(0).slice(-PLAYER_DIGITS));

let requestCount = 0;

/** Size of the table from which targets are drawn by Zipf's law. */
const DRAWS = 65_536;

export class SpinRequests implements RequestSource {
  readonly #templates: readonly Template[];
  readonly #players: number;
  /** Places of templates, each as often as it is drawn. Undefined: all equally often. */
  readonly #draws: Uint16Array | undefined;
  /** Length of each request in bytes. */
  readonly #length: number;

  constructor(order: LoadOrder) {
    this.#templates = templatesOf(order);
    this.#players = order.players;
    this.#length = this.#templates[0]!.bytes.length;
    this.#draws = order.isZipf ? zipfDraws(order.targets.length) : undefined;
  }

  /** Returns the next spin, with a random target, a random player and a new request id. */
  next(): Buffer {
    const into = Buffer.allocUnsafe(this.#length);
    const templates = this.#templates;
    const draws = this.#draws;
    const place =
      draws === undefined
        ? templates.length === 1
          ? 0
          : Math.floor(Math.random() * templates.length)
        : draws[Math.floor(Math.random() * DRAWS)]!;
    const { bytes, playerAt, counterAt } = templates[place]!;
    into.set(bytes);
    writeDigits(into, playerAt, PLAYER_DIGITS, FIRST_PLAYER + Math.floor(Math.random() * this.#players));
    if (counterAt >= 0) writeDigits(into, counterAt, COUNTER_DIGITS, requestCount++);
    return into;
  }
}

function zipfDraws(targets: number): Uint16Array {
  const draws = new Uint16Array(DRAWS);
  const total = Array.from({ length: targets }, (_, place) => 1 / (place + 1)).reduce(
    (sum, each) => sum + each,
    0,
  );
  let at = 0;
  let sum = 0;
  for (let place = 0; place < targets; place++) {
    sum += 1 / (place + 1) / total;
    for (const end = Math.round(sum * DRAWS); at < end; at++) draws[at] = place;
  }
  return draws;
}

/** Returns a request for each target. All requests have the same length. */
function templatesOf({ base, path, targets, hasRequestId, requestIdPrefix }: LoadOrder): Template[] {
  const { host } = new URL(base);
  const counter = '0'.repeat(COUNTER_DIGITS);
  const bodies = targets.map(({ gameId, wagerUsd }) => {
    const requestId = hasRequestId ? `,"requestId":"${requestIdPrefix}${COUNTER_LEAD}${counter}"` : '';
    return `{"gameId":${gameId},"playerId":"${playerName(0)}","wagerUsd":${wagerUsd}${requestId}}`;
  });
  const bodyBytes = Math.max(...bodies.map((body) => body.length));
  return targets.map(({ apiKey }, place) => {
    // Spaces after the JSON compensate for game ids with fewer digits.
    const body = bodies[place]!.padEnd(bodyBytes);
    const head =
      `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: keep-alive\r\nX-API-Key: ${apiKey}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${bodyBytes}\r\n\r\n`;
    const player = playerName(0);
    return {
      bytes: Buffer.from(head + body, 'latin1'),
      playerAt: head.length + body.indexOf(player) + player.length - PLAYER_DIGITS,
      counterAt: hasRequestId ? head.length + body.lastIndexOf(counter) : -1,
    };
  });
}

function writeDigits(into: Buffer, at: number, digits: number, value: number): void {
  let rest = value;
  for (let place = at + digits - 1; place >= at; place--) {
    const tenth = Math.floor(rest / 10);
    into[place] = ZERO + rest - tenth * 10;
    rest = tenth;
  }
}
