/** Resolves partners and games that a person names by id, or by slug and config name. */
import { bodyOf, type OperatorClient } from '../../api/client/apiClients.js';
import { NotFoundError, UsageError } from '../command.js';
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
