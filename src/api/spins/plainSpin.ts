/**
 * Parses the body of most spins directly from its bytes. This takes 0.23 µs instead of 0.60 µs for decoding,
 * JSON.parse and validation (docs/adr/0002-http-in-bytes.md).
 *
 * The parser accepts what an ordinary JSON writer creates for a spin: the known members, each once; only
 * spaces between tokens; plain decimals of up to 15 characters; texts in printable ASCII without escapes. All
 * other bodies, whether invalid or only unusual, are left to JSON.parse and the schema. Both ways give the
 * same result for the bodies that this parser accepts.
 */
import type { SpinBody } from './contract.js';

const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const TILDE = 0x7e;
const CLOSE = 0x7d;

/** A double distinguishes decimals of up to 15 digits. */
const NUMBER_CHARACTERS_MAX = 15;
const TEXT_CHARACTERS_MAX = 128;

const GAME_ID = Buffer.from('gameId"');
const PLAYER_ID = Buffer.from('playerId"');
const WAGER_USD = Buffer.from('wagerUsd"');
const REQUEST_ID = Buffer.from('requestId"');
/** All members of the schema. A new one must be read below, too: it does not compile otherwise. */
const MEMBERS: Readonly<Record<keyof SpinBody, Buffer>> = {
  gameId: GAME_ID,
  playerId: PLAYER_ID,
  wagerUsd: WAGER_USD,
  requestId: REQUEST_ID,
};
/** The member names by their first letter, which is different for each name. */
const NAMES = new Map(Object.values(MEMBERS).map((name) => [name[0]!, name]));

/** Returns undefined if the body is invalid or must be parsed in the general way. */
export function readPlainSpin(bytes: Buffer): SpinBody | undefined {
  let gameId: number | undefined;
  let wagerUsd: number | undefined;
  let playerId: string | undefined;
  let requestId: string | undefined;
  let at = afterSpaces(bytes, 0);
  if (bytes[at] !== OPEN) return undefined;
  do {
    at = afterSpaces(bytes, at + 1);
    if (bytes[at] !== QUOTE) return undefined;
    const name = NAMES.get(bytes[at + 1]!);
    if (name === undefined || !hasAt(bytes, at + 1, name)) return undefined;
    at = afterSpaces(bytes, at + 1 + name.length);
    if (bytes[at] !== COLON) return undefined;
    at = afterSpaces(bytes, at + 1);
    const from = at;
    if (name === GAME_ID || name === WAGER_USD) {
      at = afterNumber(bytes, from);
      const value = plainNumber(bytes, from, at);
      if (value === undefined) return undefined;
      if (name === GAME_ID) {
        if (gameId !== undefined || !Number.isInteger(value) || value === 0) return undefined;
        gameId = value;
      } else {
        if (wagerUsd !== undefined) return undefined;
        wagerUsd = value;
      }
    } else {
      if (bytes[from] !== QUOTE) return undefined;
      at = afterText(bytes, from + 1);
      const characters = at - from - 1;
      if (bytes[at] !== QUOTE || characters === 0 || characters > TEXT_CHARACTERS_MAX) return undefined;
      const value = bytes.toString('latin1', from + 1, at);
      at++;
      if (name === PLAYER_ID) {
        if (playerId !== undefined) return undefined;
        playerId = value;
      } else {
        if (requestId !== undefined) return undefined;
        requestId = value;
      }
    }
    at = afterSpaces(bytes, at);
  } while (bytes[at] === COMMA);
  if (bytes[at] !== CLOSE || afterSpaces(bytes, at + 1) !== bytes.length) return undefined;
  if (gameId === undefined || playerId === undefined || wagerUsd === undefined) return undefined;
  return requestId === undefined ? { gameId, playerId, wagerUsd } : { gameId, playerId, wagerUsd, requestId };
}

function afterSpaces(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === SPACE) at++;
  return at;
}

function hasAt(bytes: Buffer, at: number, wanted: Buffer): boolean {
  for (let i = 0; i < wanted.length; i++) if (bytes[at + i] !== wanted[i]) return false;
  return true;
}

function afterText(bytes: Buffer, from: number): number {
  let at = from;
  for (; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE || byte === BACKSLASH || byte < SPACE || byte > TILDE) break;
  }
  return at;
}

function afterNumber(bytes: Buffer, from: number): number {
  let at = from;
  for (; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if ((byte < ZERO || byte > NINE) && byte !== POINT) break;
  }
  return at;
}

/**
 * Parses an RFC 8259 number without sign and exponent, with the result of JSON.parse. Returns undefined if
 * the text is not such a number or is too long.
 */
function plainNumber(bytes: Buffer, from: number, end: number): number | undefined {
  if (end === from || end - from > NUMBER_CHARACTERS_MAX) return undefined;
  if (bytes[from] === ZERO && end - from > 1 && bytes[from + 1] !== POINT) return undefined;
  let digits = 0;
  let pointAt = end;
  for (let at = from; at < end; at++) {
    const byte = bytes[at]!;
    if (byte !== POINT) digits = digits * 10 + byte - ZERO;
    else if (pointAt === end) pointAt = at;
    else return undefined;
  }
  if (pointAt === end) return digits;
  const decimals = end - pointAt - 1;
  // Both operands are exact, so the quotient is the nearest double, which every JSON parser returns for the
  // text.
  return decimals === 0 || pointAt === from ? undefined : digits / 10 ** decimals;
}
