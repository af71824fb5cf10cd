/** Proofs of what was dealt (docs/proofs.md), and what is logged of a game. */
import { Type } from '#typebox';
import { choice, nullable, timestamp } from '../../domain/schema.js';

const hex = (description: string, bytes = 32) =>
  Type.String({ description: `${description}; ${bytes} bytes, lowercase hexadecimal` });

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

export const ProvenOutcome = Type.Object({
  index: Type.Integer({ description: 'Place among all outcomes of the game' }),
  code: Type.Integer({
    description:
      'Place of the combination in the PAR sheet, from 0; of a ticket 0 for none, n for the n-th prize',
  }),
  nonce: hex('What hides the outcome until it is shown'),
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
