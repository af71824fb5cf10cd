/** Handler that shows operators the program checks of all processes. */

import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';

export const programCheckRoutes = ({ store }: Pick<Services, 'store'>): Route[] => [
  route(contract.listProgramChecks, async ({ query: { page = 1, limit } }) => {
    const { checks, total } = await store.programChecks.page(page, limit);
    return { checks, page, limit, total };
  }),
];
