/** Converts drawn choices to requests of the model and of HTTP. */
import { usd } from './decimal.js';
import type { Key, Request, SpinRequest } from './exchange.js';
import { type HttpRequest, pathPart } from './front.js';
import type { PartnerModel } from './model.js';
import {
  type BadBody,
  badBody,
  type Change,
  type OutcomeChoice,
  PLAYERS,
  REQUEST_IDS,
  type ReadChoice,
  type SpinChoice,
} from './operations.js';
import type { Game } from './state.js';

export const BASE = '/api/partner/v1';

/** A request without its sender. */
export interface Asked {
  readonly request: Request;
  readonly http: Omit<HttpRequest, 'key'>;
}

export type Credential = Key | 'unknown' | 'none';

export function keyText(key: Credential): string | undefined {
  if (key === 'none') return undefined;
  return key === 'unknown' ? `ks_${'A'.repeat(43)}` : key.apiKey;
}

/** Returns an item of a list. The index may exceed the list, and is taken modulo the number of items. */
export const pick = <T>(items: readonly T[], number: number): T | undefined => items[number % items.length];

const NO_GAME = 2_000_000_000;
const NO_SPIN = '0123456789abcdef0123456789abcdef';

export function spinRequest(
  gameId: number,
  playerId: string,
  wager: string,
  requestId: string | undefined,
): SpinRequest {
  const tail = requestId === undefined ? '' : `,"requestId":${JSON.stringify(requestId)}`;
  const body = `{"gameId":${gameId},"playerId":${JSON.stringify(playerId)},"wagerUsd":${wager}${tail}}`;
  return { kind: 'spin', gameId, playerId, wager, requestId, body };
}

/** Returns the game id that a choice means, and one of the partner's own games. */
function chosenGame(games: readonly Game[], foreign: PartnerModel | undefined, game: SpinChoice['game']) {
  const own = typeof game === 'number' ? pick(games, game)! : games[0]!;
  const gameId = {
    own: own.gameId,
    foreign: foreign?.games[0]?.gameId ?? NO_GAME,
    unknown: NO_GAME,
    huge: own.gameId + 4_294_967_296,
  }[typeof game === 'number' ? 'own' : game];
  return { own, gameId };
}

export function chosenSpin(
  { games }: PartnerModel,
  foreign: PartnerModel | undefined,
  choice: SpinChoice,
): SpinRequest {
  const { own, gameId } = chosenGame(games, foreign, choice.game);
  const { wager } = own.sheet;
  const wagers = {
    plain: usd(wager).replace(/\.?0+$/, ''),
    padded: `${usd(wager)}000000000000`,
    exponent: `${wager}e-6`,
    double: usd(wager * 2n),
    'plus-micro': usd(wager + 1n),
    'plus-tiny': `${usd(wager)}000000000001`,
    negative: `-${usd(wager)}`,
    zero: '0',
  };
  const requestId = choice.requestId === undefined ? undefined : REQUEST_IDS[choice.requestId];
  return spinRequest(gameId, PLAYERS[choice.player]!, wagers[choice.wager], requestId);
}

export function changedSpin(model: PartnerModel, first: SpinRequest, change: Change): SpinRequest {
  const { gameId, playerId, wager, requestId } = first;
  switch (change) {
    case 'none':
      return first;
    case 'spelling': {
      const [request, player] = [requestId, playerId].map((text) => JSON.stringify(text));
      const body = `{ "requestId" : ${request}, "wagerUsd":${wager},\n"playerId":${player},"gameId":${gameId} }`;
      return { ...first, body };
    }
    case 'player':
      return spinRequest(gameId, playerId === PLAYERS[0] ? PLAYERS[1]! : PLAYERS[0]!, wager, requestId);
    case 'game': {
      const other = model.games.find((game) => game.gameId !== gameId) ?? model.games[0]!;
      return spinRequest(other.gameId, playerId, usd(other.sheet.wager), requestId);
    }
    case 'wager':
      return spinRequest(gameId, playerId, '77.7', requestId);
    case 'unknown-game':
      return spinRequest(NO_GAME, playerId, wager, requestId);
  }
}

const SPIN = { method: 'POST', path: `${BASE}/spin` };
const get = (path: string): Asked['http'] => ({ method: 'GET', path: BASE + path });

export const askSpin = (request: SpinRequest): Asked => ({ request, http: { ...SPIN, body: request.body } });

export function askBadly({ games }: PartnerModel, name: BadBody): Asked {
  const { gameId, sheet } = games[0]!;
  const { body, allowed } = badBody(name, gameId, usd(sheet.wager));
  return {
    request: { kind: 'fixed', window: 'spin', what: name, allowed: [allowed] },
    http: { ...SPIN, body },
  };
}

export function askChoice(
  { games }: PartnerModel,
  foreign: PartnerModel | undefined,
  { game, player, combination }: OutcomeChoice,
): Asked {
  const { gameId } = chosenGame(games, foreign, game);
  const playerId = PLAYERS[player]!;
  const body = JSON.stringify({ gameId, playerId, combinationIndex: combination });
  return {
    request: { kind: 'choose', gameId, playerId, combination },
    http: { method: 'POST', path: `${BASE}/sandbox/next-outcome`, body },
  };
}

export const askPlayer = (playerId: string): Asked => ({
  request: { kind: 'player', playerId },
  http: get(`/players/${pathPart(playerId)}`),
});

export const askPage = (playerId: string, page: number, limit: number): Asked => ({
  request: { kind: 'page', playerId, page, limit },
  http: get(`/players/${pathPart(playerId)}/spins?page=${page}&limit=${limit}`),
});

const askFixed = (path: string, allowed: string): Asked => ({
  request: { kind: 'fixed', window: 'API', what: path, allowed: [allowed] },
  http: get(path),
});

export const askVersion = (): Asked => askFixed('/version', '200');

export function askRead(model: PartnerModel, foreign: PartnerModel | undefined, read: ReadChoice): Asked {
  switch (read.what) {
    case 'player':
      return askPlayer(PLAYERS[read.player]!);
    case 'page':
      return askPage(PLAYERS[read.player]!, read.page, read.limit);
    case 'spin': {
      const spinIds = { own: model.spinIds, foreign: foreign?.spinIds ?? [], nobody: [] }[read.of];
      const spinId = pick(spinIds, read.spin) ?? NO_SPIN;
      return { request: { kind: 'lookup', spinId }, http: get(`/spins/${spinId}`) };
    }
    case 'games':
      return { request: { kind: 'games' }, http: get('/games') };
    case 'version':
      return askVersion();
    case 'unknown-path':
      return askFixed('/nowhere', '404 KS-4215');
    case 'bad-page':
      return askFixed('/players/p/spins?page=0&limit=101', '400 KS-4101');
  }
}
