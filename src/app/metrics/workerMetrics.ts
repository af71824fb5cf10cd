/** Registers all metrics of a worker. */
import type { Piscina } from 'piscina';
import type { Catalog } from '../../engine/catalog/catalog.js';
import type { UnservedCells } from '../../engine/ledger/unservedCells.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';
import type { Sql } from '../../postgres/connection.js';
import { type CellMetricsParts, registerCellMetrics } from './cellMetrics.js';
import { registerCommunalMetrics } from './communalMetrics.js';
import { type GameMetricsParts, registerGameMetrics } from './gameMetrics.js';
import { type RoundMetricsParts, registerRoundMetrics } from './roundMetrics.js';
import { registerStoreMetrics } from './storeMetrics.js';
import { registerWorkMetrics, type WorkMetricsParts } from './workMetrics.js';

export interface WorkerMetricsParts
  extends Omit<CellMetricsParts, 'outboxMax' | 'unservedCells' | 'catalog'>,
    Omit<GameMetricsParts, 'gamesMax'>,
    Omit<RoundMetricsParts, 'gamesMax'>,
    Omit<WorkMetricsParts, 'pool'> {
  readonly config: {
    readonly outboxMax: CellMetricsParts['outboxMax'];
    readonly constants: { readonly metricsGamesMax: number };
  };
  readonly sql: Sql;
  readonly nodes: RedisNodes;
  readonly catalog: Catalog;
  readonly unservedCells: UnservedCells;
  readonly threads: Piscina;
}

export function registerWorkerMetrics(parts: WorkerMetricsParts): void {
  const { config, metrics, sql, nodes, threads } = parts;
  registerCellMetrics({
    ...parts,
    outboxMax: config.outboxMax,
    unservedCells: () => parts.unservedCells.cells,
  });
  registerGameMetrics({ ...parts, gamesMax: config.constants.metricsGamesMax });
  registerRoundMetrics({ ...parts, gamesMax: config.constants.metricsGamesMax });
  registerCommunalMetrics({ ...parts, gamesMax: config.constants.metricsGamesMax });
  registerStoreMetrics(metrics, sql, nodes);
  registerWorkMetrics({ ...parts, pool: threads });
}
