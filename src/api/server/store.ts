/**
 * The aggregates of the database, each an object over one pool. main.ts opens them once for requests and once for what the process
 * does by itself, and hands each part the one that its work is to run on. What needs a lease or a transaction takes its
 * connections as an argument, and is not part of this.
 */

import { LedgerDays } from '../../books/archive/ledgerDays.store.js';
import { Reports } from '../../books/reports/reports.store.js';
import { Rtp } from '../../books/returns/rtp.store.js';
import { Settlements } from '../../books/settlement/settlements.store.js';
import { Rounds } from '../../engine/blackjack/rounds.store.js';
import { Rotations } from '../../engine/blocks/rotations.store.js';
import { ApiVersions } from '../../engine/catalog/apiVersions.store.js';
import { Dealing } from '../../engine/catalog/dealing.store.js';
import { Games } from '../../engine/catalog/games.store.js';
import { Operators } from '../../engine/catalog/operators.store.js';
import { Partners } from '../../engine/catalog/partners.store.js';
import { Adjustments } from '../../engine/cells/adjustments.store.js';
import { Answered } from '../../engine/cells/answered.store.js';
import { Cells } from '../../engine/cells/cells.store.js';
import { PlayerStatuses } from '../../engine/cells/playerStatuses.store.js';
import { Communal } from '../../engine/communal/communal.store.js';
import { Ledger } from '../../engine/ledger/ledgerEntries.store.js';
import { SignificantEvents } from '../../engine/ledger/significantEvents.store.js';
import { Raffles } from '../../engine/raffles/raffles.store.js';
import { PartnerMoves } from '../../engine/recovery/partnerMoves.store.js';
import { Recoveries } from '../../engine/recovery/recoveries.store.js';
import { RequestRuns } from '../../engine/requestIds/requestRunReads.store.js';
import { AuditLog } from '../../postgres/auditLog.js';
import type { Sql } from '../../postgres/client.js';
import { Events } from '../../postgres/partnerEvents.js';
import { PublicLogReads } from '../../publicLog/log/publicLogReads.store.js';
import { Deliveries } from '../../webhooks/deliveries.store.js';
import { Webhooks } from '../../webhooks/webhooks.store.js';
import { ParSheets } from '../games/parSheets.store.js';
import { OperatorReads } from '../overview/overview.store.js';
import { ApiKeys } from '../partners/apiKeys.store.js';
import { Recall } from '../players/recall.store.js';
import { ProgramChecks } from '../programChecks/programChecks.store.js';
import { OperatorFinds } from '../search/search.store.js';
import { SpinHistory } from '../spins/spinHistory.store.js';

export type Store = ReturnType<typeof openStore>;

/** Every method rejects where the database does not answer within its deadline (client.ts). */
export const openStore = (sql: Sql) => ({
  adjustments: new Adjustments(sql),
  answered: new Answered(sql),
  apiKeys: new ApiKeys(sql),
  apiVersions: new ApiVersions(sql),
  auditLog: new AuditLog(sql),
  cells: new Cells(sql),
  communal: new Communal(sql),
  dealing: new Dealing(sql),
  deliveries: new Deliveries(sql),
  events: new Events(sql),
  games: new Games(sql),
  ledger: new Ledger(sql),
  ledgerDays: new LedgerDays(sql),
  finds: new OperatorFinds(sql),
  overview: new OperatorReads(sql),
  operators: new Operators(sql),
  parSheets: new ParSheets(sql),
  partners: new Partners(sql),
  moves: new PartnerMoves(sql),
  history: new SpinHistory(sql),
  playerStatuses: new PlayerStatuses(sql),
  programChecks: new ProgramChecks(sql),
  publicLog: new PublicLogReads(sql),
  raffles: new Raffles(sql),
  recall: new Recall(sql),
  recoveries: new Recoveries(sql),
  requestRuns: new RequestRuns(sql),
  reports: new Reports(sql),
  rotations: new Rotations(sql),
  rounds: new Rounds(sql),
  rtp: new Rtp(sql),
  settlements: new Settlements(sql),
  significantEvents: new SignificantEvents(sql),
  webhooks: new Webhooks(sql),
});
