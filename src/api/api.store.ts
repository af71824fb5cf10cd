/**
 * The aggregates of the database that handlers read and write. src/main.ts opens them twice, on separate
 * connection pools: once for requests and once for the background work of the process. Each part of the
 * process gets the aggregates on the pool for its kind of work.
 */
import { openBooksStore } from '../books/books.store.js';
import { openEngineStore } from '../engine/engine.store.js';
import { AuditLog } from '../postgres/auditLog.js';
import type { Sql } from '../postgres/connection.js';
import { PartnerEvents } from '../postgres/partnerEvents.js';
import { PublicLogReads } from '../publicLog/log/publicLogReads.store.js';
import { Deliveries } from '../webhooks/deliveries.store.js';
import { Webhooks } from '../webhooks/webhooks.store.js';
import { RoundList } from './blackjack/roundList.store.js';
import { CellReads } from './cells/cellReads.store.js';
import { Progressives } from './communal/progressives.store.js';
import { GameDays } from './games/gameDays.store.js';
import { ParSheets } from './games/parSheets.store.js';
import { OverviewReads } from './overview/overviewReads.store.js';
import { ApiKeys } from './partners/apiKeys.store.js';
import { Recall } from './players/recall.store.js';
import { ProgramChecks } from './programChecks/programChecks.store.js';
import { Requests } from './requests/requests.store.js';
import { SearchReads } from './search/searchReads.store.js';
import { SettlementList } from './settlements/settlementList.store.js';
import { SpinBlocks } from './spins/spinBlocks.store.js';
import { SpinHistory } from './spins/spinHistory.store.js';
import { TrafficReads } from './traffic/traffic.store.js';
import { DeliveryReads } from './webhooks/deliveryReads.store.js';

export type Store = ReturnType<typeof openStore>;

/** Every method rejects if the database does not answer within its deadline (src/postgres/connect.ts). */
export const openStore = (sql: Sql) => ({
  ...openEngineStore(sql),
  ...openBooksStore(sql),
  apiKeys: new ApiKeys(sql),
  auditLog: new AuditLog(sql),
  cellReads: new CellReads(sql),
  deliveries: new Deliveries(sql),
  deliveryReads: new DeliveryReads(sql),
  gameDays: new GameDays(sql),
  overviewReads: new OverviewReads(sql),
  parSheets: new ParSheets(sql),
  partnerEvents: new PartnerEvents(sql),
  programChecks: new ProgramChecks(sql),
  progressives: new Progressives(sql),
  publicLogReads: new PublicLogReads(sql),
  recall: new Recall(sql),
  requests: new Requests(sql),
  roundList: new RoundList(sql),
  searchReads: new SearchReads(sql),
  settlementList: new SettlementList(sql),
  spinBlocks: new SpinBlocks(sql),
  spinHistory: new SpinHistory(sql),
  traffic: new TrafficReads(sql),
  webhooks: new Webhooks(sql),
});
