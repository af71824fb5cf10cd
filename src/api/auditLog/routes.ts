/**
 * Handlers of the audit log, which records the actions of operators and the events of the system
 * (docs/operations.md).
 */
import { csvTexts } from '../../domain/csv.js';
import type { AuditRow } from '../../postgres/auditLog.js';
import { csvHead, csvLines } from '../contract/csvRows.js';
import { type Route, type RouteRequest, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import { timeRangeOf } from '../server/timeRange.js';
import * as contract from './contract.js';

const CSV_ENTRIES = 1000;

type Request = RouteRequest<typeof contract.listAuditLog>;

const filterOf = ({ query }: Request) => {
  const { actor, action, subject } = query;
  return {
    ...(actor === undefined ? {} : { actor }),
    ...(action === undefined ? {} : { action }),
    ...(subject === undefined ? {} : { subject }),
    ...timeRangeOf(query),
  };
};

/** Columns of the CSV, in order. `before` and `after` are JSON texts. */
const csvRowOf = ({ auditId, at, actor, action, subject, before, after, hash }: AuditRow) => ({
  auditId,
  at: at.toISOString(),
  actor,
  action,
  subject,
  before: before === null ? null : JSON.stringify(before),
  after: after === null ? null : JSON.stringify(after),
  hash,
});

const CSV_HEAD = csvHead(
  csvRowOf({
    auditId: 0,
    at: new Date(0),
    actor: '',
    action: '',
    subject: '',
    before: null,
    after: null,
    hash: '',
  }),
);

/** Yields all entries that match the query, newest first, regardless of its page. */
async function* csvOf({ store }: Services, request: Request): AsyncGenerator<string> {
  const filter = filterOf(request);
  const csvText = csvTexts(request.query);
  let below: number | undefined;
  let head = CSV_HEAD;
  for (;;) {
    const entries = await store.auditLog.below(below, CSV_ENTRIES, filter);
    const text = head + csvLines(entries.map(csvRowOf), csvText);
    if (text !== '') yield text;
    if (entries.length < CSV_ENTRIES) return;
    head = '';
    below = entries.at(-1)!.auditId;
  }
}

export const auditLogRoutes = (services: Services): Route[] => [
  route(
    contract.listAuditLog,
    async (request) => {
      const { page = 1, limit } = request.query;
      return { ...(await services.store.auditLog.page(page, limit, filterOf(request))), page, limit };
    },
    { csvPieces: (request) => csvOf(services, request) },
  ),
];
