/**
 * Spins as bytes that are rendered ahead: one template for each target, all of the same length, in which only the player
 * and the request id are written anew for each request.
 */
import type { LoadOrder } from './load.js';

/** The id of a player, by number: all are of the same length. */
export const playerName = (number: number): string => `player-${10_000_000 + number}`;

interface Template {
  readonly bytes: Buffer;
  /** Where the player's digits begin, those that differ between players. */
  readonly playerAt: number;
  /** Where the last digits of the request id begin; -1: it has none. */
  readonly counterAt: number;
}

const ZERO = 48;
/** Request ids are unique for a billion requests of a process; a small integer is cheap to take apart. */
const COUNTER_DIGITS = 9;
/** Between the prefix and the counter, for the length of a UUID. */
const COUNTER_LEAD = '-000';
const PLAYER_DIGITS = 8;
/** The digits of the first player. */
const FIRST_PLAYER = Number(playerName(0).slice(-PLAYER_DIGITS));

let requestCount = 0;

export class SpinRequests {
  readonly #templates: readonly Template[];
  readonly #players: number;
  /** Bytes of each request. */
  readonly length: number;

  constructor(order: LoadOrder) {
    this.#templates = templatesOf(order);
    this.#players = order.players;
    this.length = this.#templates[0]!.bytes.length;
  }

  /** Writes the next spin: a random target and player, a request id that was never sent. */
  writeNext(into: Buffer): void {
    const templates = this.#templates;
    const place = templates.length === 1 ? 0 : Math.floor(Math.random() * templates.length);
    const { bytes, playerAt, counterAt } = templates[place]!;
    into.set(bytes);
    writeDigits(into, playerAt, PLAYER_DIGITS, FIRST_PLAYER + Math.floor(Math.random() * this.#players));
    if (counterAt >= 0) writeDigits(into, counterAt, COUNTER_DIGITS, requestCount++);
  }
}

/** A request of each target; all have the same length. */
function templatesOf({ base, path, targets, hasRequestId, requestIdPrefix }: LoadOrder): Template[] {
  const { host } = new URL(base);
  const counter = '0'.repeat(COUNTER_DIGITS);
  const bodies = targets.map(({ gameId, wagerUsd }) => {
    const requestId = hasRequestId ? `,"requestId":"${requestIdPrefix}${COUNTER_LEAD}${counter}"` : '';
    return `{"gameId":${gameId},"playerId":"${playerName(0)}","wagerUsd":${wagerUsd}${requestId}}`;
  });
  const bodyBytes = Math.max(...bodies.map((body) => body.length));
  return targets.map(({ apiKey }, place) => {
    // White space after the JSON makes up for a game id with fewer digits.
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
