/** Resolves what a person names in a command: partners and games by id, or by slug and config name. */
import { bodyOf, namedPlayer, type OperatorClient } from '../../api/client/apiClients.js';
import { NotFoundError, UsageError, whole } from '../command.js';
import { printable } from '../output.js';

const ID = /^\d{1,10}$/;
const SLUG = /^[a-z0-9-]{1,64}$/;
const GAMES_LIMIT = 100;

/**
 * A word of digits is always taken as an id.
 * @param word id or slug
 * @throws UsageError if the word is neither; NotFoundError if no partner has the slug
 */
export async function partnerIdOf(client: OperatorClient, word: string, name = 'PARTNER'): Promise<number> {
  if (ID.test(word)) return Number(word);
  if (!SLUG.test(word)) throw new UsageError(`${name} must be the id or slug of a partner`);
  const { partners } = await bodyOf(client.GET('/partners'));
  const found = partners.find(({ slug }) => slug === word);
  if (found === undefined) throw new NotFoundError(`No partner has the slug «${word}»`);
  return found.partnerId;
}

/**
 * @param word id, or PARTNER/CONFIG_NAME
 * @throws UsageError if the word is neither; NotFoundError if there is no such game
 */
export async function gameIdOf(client: OperatorClient, word: string): Promise<number> {
  if (ID.test(word)) return Number(word);
  const [, partner, configName] = /^([^/]+)\/(.+)$/.exec(word) ?? [];
  if (partner === undefined || configName === undefined)
    throw new UsageError('GAME must be the id of a game, or PARTNER/CONFIG_NAME');
  const partnerId = await partnerIdOf(client, partner, 'PARTNER of GAME');
  for (let page = 1; ; page++) {
    const query = { partnerId, page, limit: GAMES_LIMIT };
    const { games, total } = await bodyOf(client.GET('/games', { params: { query } }));
    const found = games.find((game) => game.configName === configName);
    if (found !== undefined) return found.gameConfigId;
    if (games.length === 0 || page * GAMES_LIMIT >= total)
      throw new NotFoundError(`Partner ${partner} has no game «${configName}»`);
  }
}

/** Names an object in a question: by its id, and by the words that the operator gave for it. */
export const named = (given: string, id: number): string =>
  given === String(id) ? given : `${id} (${printable(given)})`;

/** What the words of a command name. */
export interface Target {
  readonly path: Readonly<Record<string, string | number>>;
  readonly query: Readonly<Record<string, string | number>>;
  /** Names the object in a question. */
  readonly name: string;
}

/** Objects by their word in a usage line: what they are called, and how their id is found. */
const OBJECTS: Readonly<
  Record<string, readonly [noun: string, idOf?: (client: OperatorClient, word: string) => unknown]>
> = {
  PARTNER: ['partner', partnerIdOf],
  GAME: ['game', gameIdOf],
  KEY_ID: ['key', (_, word) => whole(word, 'KEY_ID')],
  SHEET_ID: ['PAR sheet', (_, word) => whole(word, 'SHEET_ID')],
  REVIEW_ID: ['review', (_, word) => whole(word, 'REVIEW_ID')],
  CELL: ['cell', (_, word) => whole(word, 'CELL')],
  INTERVAL: ['', (_, word) => word.toUpperCase()],
  ROUND_ID: ['round'],
  VERSION: ['version'],
};
/** Words that are members of the query, unless the path has a place for them. */
const IN_QUERY: Readonly<Record<string, string>> = {
  PARTNER: 'partnerId',
  REQUEST_ID: 'requestId',
  INTERVAL: 'interval',
};

/** Finds what the words of a command name, in the order of its usage line and of the endpoint's path. */
export async function targetOf(
  { client, words }: { readonly client: OperatorClient; readonly words: readonly string[] },
  usage: string,
  endpoint: string,
): Promise<Target> {
  const members = [...endpoint.matchAll(/\{(\w+)\}/g)].map(([, member]) => member!);
  const path: Record<string, string | number> = {};
  const query: Record<string, string | number> = {};
  const names: string[] = [];
  for (const [place, [, object]] of [...usage.matchAll(/[<[](\w+)/g)].entries()) {
    const word = words[place];
    if (word === undefined) continue;
    const [noun, idOf] = OBJECTS[object!] ?? [];
    const id = (idOf === undefined ? word : await idOf(client, word)) as string | number;
    names.unshift(`${noun === undefined ? '' : `${noun} `}${typeof id === 'number' ? named(word, id) : id}`);
    const member = members[place];
    if (object === 'PLAYER_ID') {
      const { inPath, inQuery } = namedPlayer(word);
      Object.assign(path, inPath);
      Object.assign(query, inQuery);
    } else if (member !== undefined) path[member] = id;
    else if (object! in IN_QUERY) query[IN_QUERY[object!]!] = id;
  }
  return { path, query, name: names.join(' of ') };
}
