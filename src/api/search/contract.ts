/** Schemas and operation of the operators' search over partners, games, players, spins, rounds and keys. */
import { Type } from '#typebox';
import { KEY_PREFIX, nullable, opaque } from '../../domain/schema.js';
import { endpoint, operatorRead } from '../contract/endpoint.js';

export const SearchQuery = Type.Object({
  q: opaque(
    'A part of a name, slug or system name, how a key begins, a number, a player as its partner names it, or the id of a spin or round',
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
  kind: Type.String({ description: '`spin` or `round`' }),
  id: Type.String({ description: 'Its `spinId` or `roundId`' }),
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
    players: Type.Array(FoundPlayer, { description: 'Called exactly so, at the newest 50 partners' }),
    plays: Type.Array(FoundPlay),
    keys: Type.Array(FoundKey, { description: 'By a part of the name, or by how they begin' }),
    operators: Type.Array(FoundOperator, {
      description: 'By a part of the name, or by how their key begins',
    }),
  },
  { description: 'At most 10 of each' },
);

export const search = endpoint(
  {
    ...operatorRead,
    path: '/search',
    operationId: 'search',
    tag: 'Service',
    summary:
      'Partners, games, players, spins, rounds and keys by a part of a name, how a key begins, or by id',
    query: SearchQuery,
    response: Found,
    errors: [],
  },
  {
    description:
      'At most 10 of each. A player is found by its whole name only, at the newest 50 partners; `slug/player` names one of any partner. Of a text that begins as keys do, only so much is looked at as is kept of keys.',
    response: {
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
  },
);
