/** Schemas and operation of the operators' search over partners, games, players, spins, rounds and keys. */
import { Type } from '#typebox';
import { KEY_PREFIX, nullable, opaque } from '../../domain/schema.js';
import { endpointsOf } from '../contract/endpoint.js';

const { operator } = endpointsOf('Service');

export const SearchQuery = Type.Object({
  q: opaque(
    'Part of a name, slug or system name; the beginning of a key; a number; the full name of a player; or the id of a spin or round',
  ),
});

export const FoundPartner = Type.Object({
  partnerId: Type.Integer(),
  slug: Type.String(),
  name: Type.String(),
});

export const FoundGame = Type.Object({
  gameConfigId: Type.Integer(),
  partnerId: Type.Integer(),
  displayName: Type.String(),
  configName: Type.String(),
  gameType: Type.String(),
});

export const FoundPlayer = Type.Object({ partnerId: Type.Integer(), playerId: Type.String() });

export const FoundPlay = Type.Object({
  partnerId: Type.Integer(),
  kind: Type.String({ description: 'Kind of the match: `spin` or `round`' }),
  id: Type.String({ description: 'The `spinId` or `roundId` of the match' }),
});

export const FoundKey = Type.Object({
  partnerId: Type.Integer(),
  keyId: Type.Integer(),
  name: nullable(Type.String()),
  prefix: KEY_PREFIX,
});

export const FoundOperator = Type.Object({ name: Type.String(), prefix: KEY_PREFIX });

export const Found = Type.Object(
  {
    partners: Type.Array(FoundPartner),
    games: Type.Array(FoundGame),
    players: Type.Array(FoundPlayer, {
      description: 'Players with exactly this name, at the newest 50 partners',
    }),
    plays: Type.Array(FoundPlay),
    keys: Type.Array(FoundKey, {
      description: 'Keys with a matching part of the name, or a matching beginning',
    }),
    operators: Type.Array(FoundOperator, {
      description: 'Operators with a matching part of the name, or a matching beginning of the key',
    }),
  },
  { description: 'At most 10 matches of each kind' },
);

export const search = operator.get('search', '/search', {
  summary: 'Search for partners, games, players, spins, rounds and keys',
  description:
    'Returns at most 10 matches of each kind. Players are found only by their full name, and only at the newest 50 partners; `slug/player` finds a player of any partner. A search for a key compares only its stored prefix.',
  query: SearchQuery,
  response: Found,
  example: {
    partners: [{ partnerId: 2, slug: 'acme', name: 'Acme Games' }],
    games: [
      {
        gameConfigId: 3,
        partnerId: 2,
        displayName: 'Acme Sevens',
        configName: 'ACME_SEVENS',
        gameType: 'slot',
      },
    ],
    players: [],
    plays: [],
    keys: [],
    operators: [],
  },
});
