/**
 * Handlers of the audit log, which records the actions of operators and the events of the system
 * (docs/operations.md).
 */
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';

export const auditLogRoutes = ({ store }: Services): Route[] => [
  route(contract.listAuditLog, async ({ query }) => {
    const { page = 1, limit, ...filter } = query;
    return { ...(await store.auditLog.page(page, limit, filter)), page, limit };
  }),
];
