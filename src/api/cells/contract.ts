/** Schemas and operations of cells, Redis servers and recoveries. */
import { type Static, Type } from '#typebox';
import { CELL_MAX } from '../../domain/entryId.js';
import { ERRORS } from '../../domain/errors.js';
import { AUDIT_REASON, nullable, PATH, timestamp } from '../../domain/schema.js';
import { endpoint } from '../contract/endpoint.js';

export const OperatorCell = Type.Object({
  cell: Type.Integer(),
  node: Type.String({ description: 'Address of the Redis server that holds it' }),
  slot: nullable(Type.Integer({ description: 'Its hash slot; null: no cluster' })),
  epoch: Type.Integer(),
  owner: nullable(Type.String({ description: 'The worker that books it; null: none does' })),
  bookedTo: nullable(timestamp()),
  outboxAgeSeconds: nullable(
    Type.Number({ description: 'Age of the oldest entry that Redis still has; null: it does not answer' }),
  ),
  outboxEntries: nullable(
    Type.Integer({ description: 'Entries that are not in the ledger; null: Redis does not answer' }),
  ),
  halted: nullable(Type.String({ description: 'Why its ledger is halted; null: it goes on' })),
  isDraining: Type.Boolean({ description: 'It takes no new partners' }),
  partners: Type.Integer(),
  games: Type.Integer(),
});

export const CellsBody = Type.Object({
  count: Type.Integer({ minimum: 1, maximum: CELL_MAX, description: 'How many cells to add' }),
});

export type CellsBody = Static<typeof CellsBody>;

export const CellsAdded = Type.Object({
  added: Type.Array(Type.Integer(), { description: 'Numbers of the new cells' }),
});

export const CellPatch = Type.Object({
  isDraining: Type.Boolean({ description: 'true: it takes no new partners; false: it does again' }),
  reason: Type.Optional(AUDIT_REASON),
});

export type CellPatch = Static<typeof CellPatch>;

export const RedisServer = Type.Object({
  isReady: Type.Boolean(),
  volatile: Type.Array(Type.String(), { description: 'Settings by which it may lose what it acknowledged' }),
  memoryBytes: nullable(Type.Integer()),
  maxMemoryBytes: nullable(Type.Integer({ description: '0: no bound but that of the machine' })),
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
  recoveries: Type.Array(Recovery, { description: 'The newest 50, newest first' }),
});

export const listCells = endpoint(
  {
    method: 'get',
    path: '/cells',
    operationId: 'listCells',
    tag: 'Service',
    summary: 'Cells, Redis servers and the newest recoveries',
    scope: 'operator',
    status: 200,
    response: Cells,
    hasSums: true,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description: 'Each partner lives in one cell. Recoveries are the newest 50.',
    response: {
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
  },
);

export const addCells = endpoint(
  {
    method: 'post',
    path: '/cells',
    operationId: 'addCells',
    tag: 'Service',
    summary: 'Add cells, so that partners spread over more of them',
    scope: 'operator',
    body: CellsBody,
    status: 201,
    response: CellsAdded,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description:
      'Every process knows the new cells within a second, and the workers share them. New partners go to them, since they have the fewest; those that exist stay where they are.',
    request: { count: 4 },
    response: { added: [4, 5, 6, 7] },
  },
);

export const setDraining = endpoint(
  {
    method: 'patch',
    path: '/cells/{cell}',
    params: { cell: PATH.cell },
    operationId: 'setDraining',
    tag: 'Service',
    summary: 'Let a cell take no new partners, or some again',
    scope: 'operator',
    body: CellPatch,
    status: 204,
    errors: [ERRORS.notFound],
    failure: ERRORS.internal,
  },
  {
    description: "A cell that drains takes no new partners. The last cell that takes any can't drain.",
    request: { isDraining: true },
  },
);
