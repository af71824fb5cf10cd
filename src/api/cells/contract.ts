/** Schemas and operations of cells, Redis servers and recoveries. */
import { type Static, Type } from '#typebox';
import { CELL_MAX } from '../../domain/entryId.js';
import { AUDIT_REASON, nullable, timestamp } from '../../domain/schema.js';
import { endpointsOf } from '../contract/endpoint.js';

const { operator } = endpointsOf('Service');

export const OperatorCell = Type.Object({
  cell: Type.Integer(),
  node: Type.String({ description: 'Address of the Redis server that holds the cell' }),
  slot: nullable(Type.Integer({ description: 'Hash slot of the cell; null if Redis is not a cluster' })),
  epoch: Type.Integer(),
  owner: nullable(Type.String({ description: 'Worker that owns the cell; null if no worker owns it' })),
  bookedTo: nullable(timestamp()),
  outboxAgeSeconds: nullable(
    Type.Number({
      description:
        'Age of the oldest entry in the outbox of the cell, in seconds; null if Redis does not respond',
    }),
  ),
  outboxEntries: nullable(
    Type.Integer({
      description: 'Number of entries that are not in the ledger yet; null if Redis does not respond',
    }),
  ),
  halted: nullable(Type.String({ description: 'Reason why the cell is halted; null if it is not halted' })),
  isDraining: Type.Boolean({ description: 'True if the cell accepts no new partners' }),
  partners: Type.Integer(),
  games: Type.Integer(),
});

export const CellsBody = Type.Object({
  count: Type.Integer({ minimum: 1, maximum: CELL_MAX, description: 'Number of cells to add' }),
});

export type CellsBody = Static<typeof CellsBody>;

export const CellsAdded = Type.Object({
  added: Type.Array(Type.Integer(), { description: 'Numbers of the new cells' }),
});

export const CellPatch = Type.Object({
  isDraining: Type.Boolean({
    description: 'True: the cell accepts no new partners. False: the cell accepts new partners again.',
  }),
  reason: Type.Optional(AUDIT_REASON),
});

export type CellPatch = Static<typeof CellPatch>;

export const RedisServer = Type.Object({
  isReady: Type.Boolean(),
  volatile: Type.Array(Type.String(), {
    description: 'Settings with which the server may lose acknowledged writes',
  }),
  memoryBytes: nullable(Type.Integer()),
  maxMemoryBytes: nullable(
    Type.Integer({
      description: 'Memory limit of Redis, in bytes; 0 if only the memory of the machine limits it',
    }),
  ),
});

export const Recovery = Type.Object({
  cell: Type.Integer(),
  epoch: Type.Integer(),
  reason: Type.String(),
  step: Type.String(),
  voidedOutcomes: Type.Integer(),
  startedAt: timestamp(),
  finishedAt: nullable(timestamp()),
});

export const Cells = Type.Object({
  cells: Type.Array(OperatorCell),
  redis: Type.Array(RedisServer),
  recoveries: Type.Array(Recovery, { description: 'The newest 50 recoveries, newest first' }),
});

export const listCells = operator.get('listCells', '/cells', {
  summary: 'List the cells, the Redis servers and the newest recoveries',
  description: 'Each partner is in one cell. The response has the newest 50 recoveries.',
  response: Cells,
  hasSums: true,
  example: {
    cells: [
      {
        cell: 0,
        node: '10.0.0.7:6379',
        slot: 32,
        epoch: 1,
        owner: 'worker-1',
        bookedTo: '2026-11-22T07:44:59.912Z',
        outboxAgeSeconds: 0.08,
        outboxEntries: 214,
        halted: null,
        isDraining: false,
        partners: 1,
        games: 3,
      },
    ],
    redis: [{ isReady: true, volatile: [], memoryBytes: 31457280, maxMemoryBytes: 0 }],
    recoveries: [
      {
        cell: 0,
        epoch: 1,
        reason: 'Redis lost the cell',
        step: 'finished',
        voidedOutcomes: 6143,
        startedAt: '2026-11-21T22:01:12.400Z',
        finishedAt: '2026-11-21T22:01:13.020Z',
      },
    ],
  },
});

export const addCells = operator.post('addCells', '/cells', {
  summary: 'Add cells to distribute partners over more cells',
  description:
    'Every process uses the new cells within a second, and the workers share them. New partners are placed in the new cells, because these have the fewest partners. Existing partners keep their cells.',
  body: CellsBody,
  status: 201,
  response: CellsAdded,
  bodyExample: { count: 4 },
  example: { added: [4, 5, 6, 7] },
});

export const setDraining = operator.patch('setDraining', '/cells/{cell}', {
  summary: 'Stop or resume the placement of new partners in a cell',
  description:
    "A draining cell accepts no new partners. The last cell that accepts partners can't be drained.",
  body: CellPatch,
  bodyExample: { isDraining: true },
});
