/**
 * The aggregates of the database, each an object over one pool. main.ts opens them once for requests and once for what the process
 * does by itself, and hands each part the one that its work is to run on. What needs a lease or a transaction takes its
 * connections as an argument, and is not part of this.
 */
import { Adjustments } from './adjustments.js';
import { Answered } from './answered.js';
import { ApiKeys } from './apiKeys.js';
import { ApiVersions } from './apiVersions.js';
import { AuditLog } from './auditLog.js';
import { Cells } from './cells.js';
import type { Sql } from './client.js';
import { Communal } from './communal.js';
import { Dealing } from './dealing.js';
import { Deliveries } from './deliveries.js';
import { Events } from './events.js';
import { Games } from './games.js';
import { LedgerDays } from './ledgerDays.js';
import { Ledger } from './ledgerEntries.js';
import { OperatorFinds } from './operatorFinds.js';
import { OperatorReads } from './operatorReads.js';
import { Operators } from './operators.js';
import { ParSheets } from './parSheets.js';
import { PartnerMoves } from './partnerMoves.js';
import { Partners } from './partners.js';
import { SpinHistory } from './playerHistory.js';
import { PlayerStatuses } from './playerStatuses.js';
import { ProgramChecks } from './programChecks.js';
import { PublicLogReads } from './publicLogReads.js';
import { Raffles } from './raffles.js';
import { Recall } from './recall.js';
import { Recoveries } from './recoveries.js';
import { Reports } from './reports.js';
import { RequestRuns } from './requestRunReads.js';
import { Rotations } from './rotations.js';
import { Rounds } from './rounds.js';
import { Rtp } from './rtp.js';
import { Settlements } from './settlements.js';
import { SignificantEvents } from './significantEvents.js';
import { Webhooks } from './webhooks.js';

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
