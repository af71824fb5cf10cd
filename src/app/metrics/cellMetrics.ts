/** Metrics of the cells that a worker owns, read at each scrape. */
import type { Catalog } from '../../engine/catalog/catalog.js';
import type { CommittedTotals } from '../../engine/ledger/committedTotals.js';
import type { Ownership } from '../../engine/ledger/ownership.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';
import type { Metrics } from './metrics.js';
import { singleFlight } from './scraped.js';

export interface CellMetricsParts {
  readonly metrics: Metrics;
  readonly catalog: Pick<Catalog, 'epochs' | 'partnersOfCell'>;
  readonly outboxMax: { readonly entries: number; readonly bytes: number };
  readonly nodes: RedisNodes;
  readonly ownership: Pick<Ownership, 'cells'>;
  readonly totals: CommittedTotals;
  /** Returns the cells that recently refused this worker, and the cells whose ledger it halted. */
  readonly unservedCells: () => readonly number[];
}

export function registerCellMetrics(parts: CellMetricsParts): void {
  const { metrics, catalog, nodes, ownership, totals, outboxMax } = parts;
  const ofEachCell = async <T>(read: (cell: number) => Promise<T>): Promise<[number, T | undefined][]> =>
    Promise.all(
      ownership.cells.map(async (cell) => [cell, await read(cell).catch(() => undefined)] as const),
    ) as Promise<[number, T | undefined][]>;

  metrics.gauge('spindle_cells', 'Number of cells', () => catalog.epochs.size);
  metrics.gauge(
    'spindle_cells_owned',
    'Number of cells that this process owns',
    () => ownership.cells.length,
  );
  registerPartners(parts);
  metrics.gaugeBy(
    'spindle_cell_halted',
    '1 if the cell is halted until an engineer resumes it, otherwise 0',
    'cell',
    async () => {
      const owned = new Set(ownership.cells);
      const refused = parts.unservedCells().filter((cell) => !owned.has(cell));
      return [
        ...[...owned].map((cell): [number, number] => [cell, 0]),
        ...refused.map((cell): [number, number] => [cell, 1]),
      ];
    },
  );
  metrics.gaugeBy(
    'spindle_outbox_lag_seconds',
    'Age of the oldest uncommitted entry of a cell, in seconds',
    'cell',
    () => ofEachCell((cell) => nodes.cell(cell).outboxAgeSeconds()),
  );
  const outboxes = singleFlight(() => ofEachCell((cell) => nodes.cell(cell).outboxTotals()));
  metrics.gaugeBy('spindle_outbox_entries', 'Number of uncommitted entries of a cell', 'cell', async () =>
    (await outboxes()).map(([cell, outbox]) => [cell, outbox?.entries]),
  );
  metrics.gaugeBy(
    'spindle_outbox_bytes',
    'Size of the uncommitted entries of a cell, in bytes',
    'cell',
    async () => (await outboxes()).map(([cell, outbox]) => [cell, outbox?.bytes]),
  );
  metrics.gauge(
    'spindle_outbox_max_entries',
    'Number of uncommitted entries at which a cell deals nothing more (OUTBOX_MAX_ENTRIES)',
    () => outboxMax.entries,
  );
  metrics.gauge(
    'spindle_outbox_max_bytes',
    'Size of the uncommitted entries at which a cell deals nothing more, in bytes',
    () => outboxMax.bytes,
  );
  const sums = singleFlight(async () => {
    const { cells } = ownership;
    const known = await totals.of(cells);
    return cells.flatMap((cell) => {
      const sum = known.get(cell)?.sum;
      return sum === undefined ? [] : [{ cell, ...sum }];
    });
  });
  metrics.counterBy('spindle_booked_spins_total', 'Spins in the ledger, by cell', 'cell', async () =>
    (await sums()).map(({ cell, spins }) => [cell, Number(spins)]),
  );
  metrics.counterBy('spindle_booked_wagered_usd_total', 'Wagers in the ledger, by cell', 'cell', async () =>
    (await sums()).map(({ cell, wageredMicros }) => [cell, Number(wageredMicros) / 1e6]),
  );
  metrics.counterBy('spindle_booked_paid_usd_total', 'Payouts in the ledger, by cell', 'cell', async () =>
    (await sums()).map(({ cell, paidMicros }) => [cell, Number(paidMicros) / 1e6]),
  );
}

function registerPartners({ metrics, catalog, ownership }: CellMetricsParts): void {
  metrics.gaugeBy('spindle_cell_partners', 'Number of partners of a cell', 'cell', async () =>
    ownership.cells.map((cell) => [cell, catalog.partnersOfCell(cell)]),
  );
}
