/** The functions of this folder that others call, bound to a connection: nobody outside holds the client itself. */
import { recordAdjustment, withdrawAdjustment } from './adjustments.js';
import { findObstacles, noteAnswered, recordLostSpins } from './answered.js';
import { issueKey, listKeys, revokeKey } from './apiKeys.js';
import { announceEnd, listVersionEnds, listVersionUses, noteKeyUses } from './apiVersions.js';
import { auditPage, auditRound } from './auditLog.js';
import { addCells, cellCursors, haltedCells, setDraining } from './cells.js';
import type { Sql } from './client.js';
import {
  bookedPot,
  communalEventPage,
  hasCommunal,
  noticesOfSpins,
  playerSharePage,
  recordFunding,
  recordRules,
  withdrawFunding,
  withdrawRules,
} from './communal.js';
import { resendDelivery, resendFailed, resendOfWebhook } from './deliveries.js';
import { eventFeed, recordTestEvent } from './events.js';
import {
  bookedGame,
  findGame,
  gamePage,
  listGames,
  registerGame,
  requestBlocks,
  setGameStatus,
} from './games.js';
import { findAdjustment, findEntry, findTicket } from './ledger.js';
import { noticeOverdueSettlement } from './notices.js';
import {
  attention,
  blockOf,
  cellOverview,
  deliveriesBy,
  gameDays,
  newestRecoveries,
  reportsOfAll,
  trafficToday,
} from './operatorReads.js';
import {
  beginSession,
  createOperator,
  endSession,
  findSession,
  listOperators,
  revokeOperator,
  rotateOperatorKey,
} from './operators.js';
import { findParSheet, listActiveParSheets, setParSheetStatus, storeParSheet } from './parSheets.js';
import { movesOfPartner, requestMove } from './partnerMoves.js';
import { createPartner, findPartner, ledgerReach, listPartners, updatePartner } from './partners.js';
import { playerSpinPage, playerSpinsByTime, spinsByTime, statementDown } from './playerHistory.js';
import { recordPlayerStatus } from './playerStatuses.js';
import { closedPool, createRaffle, voidRaffle } from './raffles.js';
import { openRecoveries } from './recoveries.js';
import { readRuns, requestBlocksOf } from './requestRunReads.js';
import { runsVersion } from './requestRuns.js';
import { createTable, findRound, roundPage, shoeSeeds } from './rounds.js';
import {
  findReport,
  firstSettlementDay,
  judgeReport,
  makeReport,
  reportPage,
  settlementPartner,
  unsettledDays,
} from './settlements.js';
import {
  createWebhook,
  deleteWebhook,
  deliveryPage,
  listWebhooks,
  rotateSecret,
  updateWebhook,
  webhookState,
} from './webhooks.js';

const FUNCTIONS = {
  movesOfPartner,
  requestMove,
  addCells,
  announceEnd,
  attention,
  auditPage,
  auditRound,
  beginSession,
  blockOf,
  bookedGame,
  bookedPot,
  requestBlocksOf,
  cellCursors,
  cellOverview,
  closedPool,
  communalEventPage,
  createOperator,
  createPartner,
  createRaffle,
  createTable,
  createWebhook,
  deleteWebhook,
  deliveriesBy,
  deliveryPage,
  endSession,
  eventFeed,
  findAdjustment,
  findEntry,
  recordLostSpins,
  findGame,
  findParSheet,
  findPartner,
  findReport,
  findRound,
  findSession,
  findTicket,
  firstSettlementDay,
  gameDays,
  gamePage,
  haltedCells,
  hasCommunal,
  issueKey,
  judgeReport,
  findObstacles,
  ledgerReach,
  listActiveParSheets,
  listGames,
  listKeys,
  listOperators,
  listPartners,
  listVersionEnds,
  listVersionUses,
  makeReport,
  listWebhooks,
  newestRecoveries,
  noteAnswered,
  noteKeyUses,
  noticeOverdueSettlement,
  openRecoveries,
  playerSharePage,
  playerSpinPage,
  readRuns,
  recordAdjustment,
  recordPlayerStatus,
  recordTestEvent,
  recordFunding,
  recordRules,
  registerGame,
  reportPage,
  reportsOfAll,
  requestBlocks,
  resendDelivery,
  resendFailed,
  resendOfWebhook,
  revokeKey,
  revokeOperator,
  rotateOperatorKey,
  rotateSecret,
  roundPage,
  runsVersion,
  setDraining,
  setGameStatus,
  setParSheetStatus,
  playerSpinsByTime,
  settlementPartner,
  spinsByTime,
  statementDown,
  shoeSeeds,
  storeParSheet,
  noticesOfSpins,
  trafficToday,
  unsettledDays,
  updatePartner,
  updateWebhook,
  voidRaffle,
  withdrawAdjustment,
  withdrawFunding,
  withdrawRules,
  webhookState,
};

type Functions = typeof FUNCTIONS;
export type Store = {
  [Name in keyof Functions]: Functions[Name] extends (sql: Sql, ...rest: infer Rest) => infer Result
    ? (...rest: Rest) => Result
    : never;
};

/** Every function rejects where the database does not answer within its deadline (client.ts). */
export function openStore(sql: Sql): Store {
  const bound: Record<string, (...rest: never[]) => Promise<unknown>> = {};
  for (const [name, run] of Object.entries(FUNCTIONS)) {
    bound[name] = (...rest) => (run as (sql: Sql, ...rest: never[]) => Promise<unknown>)(sql, ...rest);
  }
  return bound as Store;
}
