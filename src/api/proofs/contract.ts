/**
 * Schemas and operations of proofs of dealt outcomes, and of the public log entries of each game
 * (docs/proofs.md).
 */
import { Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { ProvenOutcome } from '../../domain/publicLog/leaves.js';
import { choice, hex, nullable, PATH, timestamp } from '../../domain/schema.js';
import { endpoint } from '../contract/endpoint.js';

const logged = {
  entry: Type.String({
    description: "The text of the block's entry: canonical JSON (RFC 8785), to be taken as it is",
  }),
  salt: hex("Salt of the entry's commitment"),
  label: hex('Label of the record in the log', 16),
  logIndex: Type.Integer({ description: 'Place of the record in the log' }),
  loggedAt: timestamp(),
  tlogProof: Type.String({
    description: 'A C2SP tlog-proof: the path of the record, and the newest published checkpoint',
  }),
};

const path = Type.Array(Type.String(), {
  description:
    "Path of the leaf in the block's tree, its sibling first; 32 bytes each, lowercase hexadecimal",
});

export const ProvenShoe = Type.Object({
  index: Type.Integer({ description: 'Place among all shoes of the table' }),
  commitment: hex("The shoe's commitment"),
  seed: nullable(hex('Its seed; null while the round is open')),
});

export const SpinProof = Type.Object({
  format: Type.Literal('spindle proof v1'),
  spinId: Type.String(),
  gameId: Type.Integer(),
  outcome: ProvenOutcome,
  path,
  ...logged,
});

export const RoundProof = Type.Object({
  format: Type.Literal('spindle proof v1'),
  roundId: Type.String(),
  gameId: Type.Integer(),
  shoe: ProvenShoe,
  path,
  ...logged,
});

export const LoggedBlockStatus = choice(
  ['SEALED', 'DEALING', 'EXHAUSTED', 'VOID', 'LOST'],
  'SEALED: nothing is dealt of it; EXHAUSTED: every index is booked or voided, of shoes also every round ended, or a voided raffle is closed; VOID: outcomes given up; LOST: its opening was lost with a restore',
);

export const LoggedBlockType = choice(['block', 'pool', 'shoes', 'void', 'lost'], 'What the entry is of');

const blockMembers = {
  number: Type.Integer({ description: 'Counts the entries of the game from 0, without a gap' }),
  type: LoggedBlockType,
  fromIndex: nullable(Type.Integer({ description: 'First index; null of lost entries' })),
  toIndex: nullable(Type.Integer({ description: 'Index after the last one; null of lost entries' })),
  status: LoggedBlockStatus,
  logIndex: Type.Integer({ description: 'Place of the record in the log' }),
  loggedAt: timestamp(),
  late: Type.Boolean({ description: 'Some of it may have been dealt before it was logged' }),
};

export const LoggedBlock = Type.Object(blockMembers);

export const LoggedBlocks = Type.Object({
  gameConfigId: Type.Integer(),
  labelKey: nullable(hex("Key of the game's labels; keep it to yourself. Null: nothing is logged yet")),
  labelKeyHash: nullable(hex('Its hash, as every entry has it')),
  blocks: Type.Array(LoggedBlock),
  nextCursor: nullable(Type.Integer({ description: 'For `after`; null at the end' })),
});

export const BlockReveal = Type.Object(
  {
    seed: Type.Optional(hex('Seed of the draw')),
    nonce: Type.Optional(hex('What gives each leaf its nonce')),
    seeds: Type.Optional(Type.String({ description: 'Of shoes: their seeds, 32 bytes each, base64' })),
  },
  { description: 'Null until the block is EXHAUSTED' },
);

export const LoggedBlockDetail = Type.Object({
  ...blockMembers,
  entry: logged.entry,
  salt: logged.salt,
  label: logged.label,
  tlogProof: logged.tlogProof,
  reveal: nullable(BlockReveal),
  outcomes: Type.Optional(
    Type.String({
      description: 'With `outcomes=true`, once it is revealed: 2 bytes each, little endian, base64',
    }),
  ),
});

export const BlocksQuery = Type.Object({
  after: Type.Optional(Type.Integer({ minimum: 0, description: 'Only entries of a higher number' })),
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Entries in one answer' }),
});

export const BlockQuery = Type.Object({
  outcomes: Type.Optional(
    Type.String({
      pattern: '^(true|false)$',
      description: '`true` adds the outcomes of a block that is revealed',
    }),
  ),
});

const HASH = 'e4f1909fd9bb6ec4bbfa6bdc6c1d7a9a43f0b45ef9b7a0b3f7f9d0f4e0e576c3';

const ENTRY =
  '{"count":2048,"fromIndex":2048,"gameId":7,"labelKeyHash":"…","late":false,"mathHash":"…","number":1,"root":"…","sealedAt":"2026-11-22T21:30:00.000Z","secretHash":"…","type":"block","version":1}';

const LOGGED = {
  entry: ENTRY,
  salt: HASH,
  label: '9bd07278623710c9d034f35957c3b4d4',
  logIndex: 1,
  loggedAt: '2026-11-22T21:30:00.061Z',
  tlogProof:
    'c2sp.org/tlog-proof@v1\nindex 1\n…\n\nspindle.example/log\n3\nao7au5zs0StYzsJNQiYCKrhx5S/3/p0UhY+HMXlWlT4=\n\n— spindle.example/log UUW5e1Tx…\n',
};

const ITEM = {
  number: 1,
  type: 'block',
  fromIndex: 2048,
  toIndex: 4096,
  status: 'DEALING',
  logIndex: 1,
  loggedAt: '2026-11-22T21:30:00.061Z',
  late: false,
};

export const getSpinProof = endpoint(
  {
    method: 'get',
    path: '/spins/{spinId}/proof',
    params: { spinId: PATH.spinId },
    operationId: 'getSpinProof',
    tag: 'Proofs',
    summary: 'The proof that the outcome of a spin or ticket was fixed in the public log',
    scope: 'partner',
    status: 200,
    response: SpinProof,
    errors: [ERRORS.notFound, ERRORS.noProof],
    failure: ERRORS.internal,
  },
  {
    description: `Verify it with \`spindle verify\`, \`/verify\` or \`/verify.mjs\`, by a log key that comes from elsewhere. \`reason\` of ${ERRORS.noProof.code} says why there is none: FORCED (a tester chose the outcome), BEFORE_LOG (dealt before the installation had a log), ARCHIVED.`,
    response: {
      format: 'spindle proof v1',
      spinId: '3f0c1f5ab3d94dd0a6a1c9d1b0e0f4c2',
      gameId: 7,
      outcome: { index: 2049, code: 0, nonce: HASH },
      path: [HASH],
      ...LOGGED,
    },
  },
);

export const getAnySpinProof = endpoint(
  { ...getSpinProof, operationId: 'getAnySpinProof', scope: 'operator' },
  getSpinProof.shown,
);

export const getRoundProof = endpoint(
  {
    method: 'get',
    path: '/rounds/{roundId}/proof',
    params: { roundId: PATH.roundId },
    operationId: 'getRoundProof',
    tag: 'Proofs',
    summary: 'The proof that the shoe of a round was fixed in the public log',
    scope: 'play',
    status: 200,
    response: RoundProof,
    errors: [ERRORS.roundNotFound, ERRORS.noProof],
    failure: ERRORS.internal,
  },
  {
    description: 'As that of a spin. The seed of the shoe is null while the round is open.',
    response: {
      format: 'spindle proof v1',
      roundId: '3f0c1f5ab3d94dd0a6a1c9d1b0e0f4c2',
      gameId: 9,
      shoe: { index: 17, commitment: HASH, seed: null },
      path: [HASH],
      ...LOGGED,
    },
  },
);

export const getAnyRoundProof = endpoint(
  { ...getRoundProof, operationId: 'getAnyRoundProof', scope: 'operator' },
  getRoundProof.shown,
);

export const listBlocks = endpoint(
  {
    method: 'get',
    path: '/games/{id}/blocks',
    params: { id: PATH.gameId },
    operationId: 'listBlocks',
    tag: 'Proofs',
    summary: 'What is logged of a game: its blocks, and what was given up',
    scope: 'partner',
    query: BlocksQuery,
    status: 200,
    response: LoggedBlocks,
    errors: [ERRORS.gameNotRegistered],
    failure: ERRORS.internal,
  },
  {
    description:
      "By number. With the label key the game's records are found in the log: each number must be there once, and none beyond. Nobody else can tell whose they are.",
    response: { gameConfigId: 7, labelKey: HASH, labelKeyHash: HASH, blocks: [ITEM], nextCursor: null },
  },
);

export const listAnyBlocks = endpoint(
  { ...listBlocks, operationId: 'listAnyBlocks', scope: 'operator', errors: [ERRORS.gameNotFound] },
  listBlocks.shown,
);

export const getBlock = endpoint(
  {
    method: 'get',
    path: '/games/{id}/blocks/{number}',
    params: { id: PATH.gameId, number: PATH.blockNumber },
    operationId: 'getBlock',
    tag: 'Proofs',
    summary: 'An entry of a game, its proof, and what is revealed of its block',
    scope: 'partner',
    query: BlockQuery,
    status: 200,
    response: LoggedBlockDetail,
    errors: [ERRORS.gameNotRegistered, ERRORS.notFound],
    failure: ERRORS.internal,
  },
  {
    description:
      'Once the block is EXHAUSTED, `reveal` has its seed and nonce: they and the PAR sheet give every outcome again.',
    response: {
      ...ITEM,
      status: 'EXHAUSTED',
      entry: ENTRY,
      salt: HASH,
      label: LOGGED.label,
      tlogProof: LOGGED.tlogProof,
      reveal: { seed: HASH, nonce: HASH },
    },
  },
);

export const getAnyBlock = endpoint(
  {
    ...getBlock,
    operationId: 'getAnyBlock',
    scope: 'operator',
    errors: [ERRORS.gameNotFound, ERRORS.notFound],
  },
  getBlock.shown,
);
