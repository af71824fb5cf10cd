/**
 * Schemas and operations of proofs of dealt outcomes, and of the public log entries of each game
 * (docs/proofs.md).
 */
import { Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { ProvenOutcome } from '../../domain/publicLog/leaves.js';
import { choice, hex, nullable, timestamp } from '../../domain/schema.js';
import { endpointsOf } from '../contract/endpoint.js';

const { partner, play, operator } = endpointsOf('Proofs');

const logged = {
  entry: Type.String({
    description: "Text of the block's entry, as canonical JSON (RFC 8785). Verify exactly this text.",
  }),
  salt: hex("Salt of the entry's commitment"),
  label: hex('Label of the record in the log', 16),
  logIndex: Type.Integer({ description: 'Index of the record in the log' }),
  loggedAt: timestamp(),
  tlogProof: Type.String({
    description: 'C2SP tlog-proof with the inclusion path of the record and the newest published checkpoint',
  }),
};

const path = Type.Array(Type.String(), {
  description:
    "Inclusion path of the leaf in the block's tree, starting with its sibling: hashes of 32 bytes each, lowercase hexadecimal",
});

export const ProvenShoe = Type.Object({
  index: Type.Integer({ description: "Index of the shoe in the table's sequence of shoes" }),
  commitment: hex('Commitment to the shoe'),
  seed: nullable(hex('Seed of the shoe (null while the round is open)')),
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
  '`SEALED`: no outcome of the block has been dealt. `EXHAUSTED`: every outcome is committed or voided, and every round of a block of shoes has ended; for a voided raffle, the raffle is closed. `VOID`: the outcomes were voided. `LOST`: a restore lost the opening of the block.',
);

export const LoggedBlockType = choice(
  ['block', 'pool', 'shoes', 'void', 'lost'],
  'Kind of the entry in the public log',
);

const blockMembers = {
  number: Type.Integer({ description: "Number of the entry among the game's entries, from 0 without gaps" }),
  type: LoggedBlockType,
  fromIndex: nullable(Type.Integer({ description: 'Index of the first outcome; null for a lost entry' })),
  toIndex: nullable(Type.Integer({ description: 'Index after the last outcome; null for a lost entry' })),
  status: LoggedBlockStatus,
  logIndex: Type.Integer({ description: 'Index of the record in the log' }),
  loggedAt: timestamp(),
  late: Type.Boolean({
    description: 'True if some outcomes may have been dealt before the entry was logged',
  }),
};

export const LoggedBlock = Type.Object(blockMembers);

export const LoggedBlocks = Type.Object({
  gameConfigId: Type.Integer(),
  labelKey: nullable(
    hex("Key of the game's labels in the log, which you must keep secret (null before the first log entry)"),
  ),
  labelKeyHash: nullable(
    hex('Hash of the label key, which is part of every entry (null before the first log entry)'),
  ),
  blocks: Type.Array(LoggedBlock),
  nextCursor: nullable(
    Type.Integer({ description: 'Value of `after` for the next page; null on the last page' }),
  ),
});

export const BlockReveal = Type.Object(
  {
    seed: Type.Optional(hex('Seed from which the outcomes were drawn')),
    nonce: Type.Optional(hex('Secret from which the nonce of each leaf is derived')),
    seeds: Type.Optional(Type.String({ description: 'Seeds of the shoes: 32 bytes each, base64' })),
  },
  { description: 'Seed and nonce that reveal the outcomes; null until the block is EXHAUSTED' },
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
      description:
        'Outcomes of a revealed block: 2 bytes each, little-endian, base64. Present with `outcomes=true`.',
    }),
  ),
});

export const BlocksQuery = Type.Object({
  after: Type.Optional(
    Type.Integer({ minimum: 0, description: 'Only entries with a number above this number' }),
  ),
  limit: Type.Integer({
    minimum: 1,
    maximum: 100,
    default: 20,
    description: 'Number of entries in a response',
  }),
});

export const BlockQuery = Type.Object({
  outcomes: Type.Optional(
    Type.String({
      pattern: '^(true|false)$',
      description: '`true` adds the outcomes of a revealed block',
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

export const getSpinProof = partner.get('getSpinProof', '/spins/{spinId}/proof', {
  summary: 'Get the proof that the outcome of a spin or ticket was fixed in the public log',
  description: `Verify the proof with the verifier at \`/docs/verify\`, or the page \`/verify\`, and a log key from a source other than this service. \`reason\` of ${ERRORS.noProof.code} explains why there is no proof: FORCED (a tester chose the outcome), BEFORE_LOG (the outcome was dealt before the installation had a public log), or ARCHIVED (the day of the spin is archived).`,
  response: SpinProof,
  errors: [ERRORS.noProof],
  example: {
    format: 'spindle proof v1',
    spinId: '3f0c1f5ab3d94dd0a6a1c9d1b0e0f4c2',
    gameId: 7,
    outcome: { index: 2049, code: 0, nonce: HASH },
    path: [HASH],
    ...LOGGED,
  },
});

export const getAnySpinProof = operator.get('getAnySpinProof', '/spins/{spinId}/proof', getSpinProof);

export const getRoundProof = play.get('getRoundProof', '/rounds/{roundId}/proof', {
  summary: 'Get the proof that the shoe of a round was fixed in the public log',
  description:
    'Verify this proof like the proof of a spin. The seed of the shoe is null while the round is open.',
  response: RoundProof,
  errors: [ERRORS.roundNotFound, ERRORS.noProof],
  example: {
    format: 'spindle proof v1',
    roundId: '3f0c1f5ab3d94dd0a6a1c9d1b0e0f4c2',
    gameId: 9,
    shoe: { index: 17, commitment: HASH, seed: null },
    path: [HASH],
    ...LOGGED,
  },
});

export const getAnyRoundProof = operator.get('getAnyRoundProof', '/rounds/{roundId}/proof', getRoundProof);

export const listBlocks = partner.get('listBlocks', '/games/{id}/blocks', {
  summary: "List a game's entries in the public log",
  description:
    "Lists the blocks, voids and lost blocks of a game, ordered by number. The label key finds the game's records in the public log: each number must occur there once, and no number may be higher than the last entry. Without the label key nobody can tell to which game a record belongs.",
  query: BlocksQuery,
  response: LoggedBlocks,
  example: { gameConfigId: 7, labelKey: HASH, labelKeyHash: HASH, blocks: [ITEM], nextCursor: null },
});

export const listAnyBlocks = operator.get('listAnyBlocks', '/games/{id}/blocks', listBlocks);

export const getBlock = partner.get('getBlock', '/games/{id}/blocks/{number}', {
  summary: "Get a game's entry in the public log, with its proof and revealed data",
  description:
    'Once the block is EXHAUSTED, `reveal` has its seed and nonce. Together with the PAR sheet they reproduce every outcome.',
  query: BlockQuery,
  response: LoggedBlockDetail,
  example: {
    ...ITEM,
    status: 'EXHAUSTED',
    entry: ENTRY,
    salt: HASH,
    label: LOGGED.label,
    tlogProof: LOGGED.tlogProof,
    reveal: { seed: HASH, nonce: HASH },
  },
});

export const getAnyBlock = operator.get('getAnyBlock', '/games/{id}/blocks/{number}', getBlock);
