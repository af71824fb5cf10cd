/** Proofs of what was dealt, and what is logged of each game (docs/proofs.md). */
import { ERRORS } from '../../domain/errors.js';
import { endpoint } from '../contract/endpoint.js';
import {
  BlockQuery,
  BlocksQuery,
  LoggedBlockDetail,
  LoggedBlocks,
  PATH,
  RoundProof,
  SpinProof,
} from '../contract/requests.js';

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
