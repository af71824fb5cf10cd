/** Handler of the overview for operators: traffic, errors and open tasks. */
import { randomUUID } from 'node:crypto';
import { ApiError, ERRORS } from '../../domain/errors.js';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import { trafficOf } from '../traffic/routes.js';
import * as contract from './contract.js';

const PROCESS_ID = randomUUID();
/** Seconds after which the check of Postgres has been repeated. */
const RETRY_AFTER_S = 5;

/** Counts the games without an outcome to deal. A game whose cell does not respond is not counted. */
async function dryGames({ store, cells }: Pick<Services, 'store' | 'cells'>): Promise<number> {
  const low = await store.overviewReads.lowGames();
  const records = await Promise.allSettled(
    low.map(({ partnerId, gameId }) => cells.reads.game(partnerId, gameId)),
  );
  return records.filter(
    (read) => read.status === 'fulfilled' && (read.value?.queueEnd ?? 0) <= (read.value?.nextIndex ?? 0),
  ).length;
}

const getOverview = ({ store, process, cells }: Services): Route =>
  route(contract.getOverview, async () => {
    const problems = await process.problems.list();
    // The figures can't be read, so the caller need not wait for the timeout of Postgres.
    if (problems.some(({ name }) => name === 'postgres-away'))
      throw new ApiError(ERRORS.unavailable, {
        retryAfterSeconds: RETRY_AFTER_S,
        details: problems.map(({ message, spins, help }) => ({
          path: '',
          message: `${message}. ${spins}. ${help}`,
        })),
      });
    const [traffic, yesterday, { attention, failingWebhooks }, dry, counted] = await Promise.all([
      store.overviewReads.trafficToday(),
      store.overviewReads.trafficYesterday(),
      store.overviewReads.attention(),
      dryGames({ store, cells }),
      process.figures(),
    ]);
    return {
      at: new Date(),
      problems,
      today: { ...trafficOf(traffic.all), partners: traffic.all.partners },
      yesterday: { ...trafficOf(yesterday), until: yesterday.until },
      busiest: traffic.busiest.map((each) => ({
        partnerId: each.partnerId,
        slug: each.slug,
        ...trafficOf(each),
      })),
      attention: { ...attention, dryGames: dry },
      failingWebhooks,
      process: { id: PROCESS_ID, ...counted },
    };
  });

export const overviewRoutes = (services: Services): Route[] => [getOverview(services)];
