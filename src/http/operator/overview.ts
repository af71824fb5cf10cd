/** What an operator looks at first: traffic, errors, what waits for somebody; cells, stores and recoveries. */
import { randomUUID } from 'node:crypto';
import { entryTimeMs } from '../../domain/entryId.js';
import { ERRORS } from '../../domain/errors.js';
import { jsonInteger, jsonUsd } from '../../domain/exactJson.js';
import { Cells, Overview } from '../../domain/requests.js';
import type { Traffic } from '../../postgres/operatorReads.js';
import type { Store } from '../../postgres/store.js';
import type { RedisNodes } from '../../redis/nodes.js';
import { withTimeout } from '../../runtime/withTimeout.js';
import { type Route, summed } from '../route.js';

/** What this process has counted since its start. */
export interface ProcessFigures {
  readonly spins: number;
  readonly errors: readonly { operation: string; errorCode: string; count: number }[];
  readonly spinSeconds: readonly { leSeconds: number | null; count: number }[];
  readonly partners: readonly { partnerId: number | null; requests: number; errors: number }[];
}

export interface OverviewServices {
  readonly store: Pick<Store, 'trafficToday' | 'attention' | 'cellOverview' | 'newestRecoveries'>;
  readonly nodes: Pick<RedisNodes, 'all' | 'cell'>;
  figures(): Promise<ProcessFigures>;
}

/** A Redis that is away is told as such. */
const REDIS_WITHIN_MS = 1000;
const PROCESS_ID = randomUUID();

const shown = ({ spins, wageredMicros, paidMicros }: Traffic) => ({
  spins: jsonInteger(spins),
  wageredUsd: jsonUsd(wageredMicros),
  paidOutUsd: jsonUsd(paidMicros),
});

const ofRedis = <T>(asked: Promise<T>): Promise<T | null> =>
  withTimeout(asked, REDIS_WITHIN_MS).catch(() => null);

const getOverview = ({ store, figures }: OverviewServices): Route => ({
  method: 'get',
  path: '/overview',
  operationId: 'getOverview',
  tag: 'Service',
  summary: 'Traffic of today, errors, latency, and what waits for somebody to look at it',
  scope: 'operator',
  status: 200,
  ...summed(Overview),
  errors: [],
  failure: ERRORS.internal,
  async handle() {
    const [traffic, attention, counted] = await Promise.all([
      store.trafficToday(),
      store.attention(),
      figures(),
    ]);
    return {
      at: new Date().toISOString(),
      today: { ...shown(traffic.all), partners: traffic.all.partners },
      busiest: traffic.busiest.map((each) => ({
        partnerId: each.partnerId,
        slug: each.slug,
        ...shown(each),
      })),
      attention,
      process: { id: PROCESS_ID, ...counted },
    };
  },
});

const listCells = ({ store, nodes }: OverviewServices): Route => ({
  method: 'get',
  path: '/cells',
  operationId: 'listCells',
  tag: 'Service',
  summary: 'Cells, Redis servers and the newest recoveries',
  scope: 'operator',
  status: 200,
  ...summed(Cells),
  errors: [],
  failure: ERRORS.internal,
  async handle() {
    const [cells, recoveries] = await Promise.all([store.cellOverview(), store.newestRecoveries()]);
    const ages = cells.map(({ cell }) => ofRedis(nodes.cell(cell).outboxAgeSeconds()));
    const servers = nodes.all.map(async (node) => {
      const use = await ofRedis(node.use());
      return {
        isReady: node.isReady,
        volatile: [...node.durability.volatile],
        memoryBytes: use?.memoryBytes ?? null,
        maxMemoryBytes: use?.maxMemoryBytes ?? null,
      };
    });
    const outboxAges = await Promise.all(ages);
    return {
      cells: cells.map(({ cursorId, epoch, ...cell }, i) => ({
        ...cell,
        epoch: jsonInteger(epoch),
        bookedTo: cursorId === 0n ? null : new Date(entryTimeMs(cursorId)).toISOString(),
        outboxAgeSeconds: outboxAges[i] ?? null,
      })),
      redis: await Promise.all(servers),
      recoveries: recoveries.map(({ epoch, voided, startedAt, finishedAt, ...recovery }) => ({
        ...recovery,
        epoch: jsonInteger(epoch),
        voidedOutcomes: voided,
        startedAt: startedAt.toISOString(),
        finishedAt: finishedAt?.toISOString() ?? null,
      })),
    };
  },
});

export const overviewRoutes = (services: OverviewServices): Route[] => [
  getOverview(services),
  listCells(services),
];
