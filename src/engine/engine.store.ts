/**
 * Opens the stores of the engine: objects with its SQL, one for each kind of data, on one pool of
 * connections. Functions that need a lease or a transaction are not included, because they take their
 * connection as an argument.
 */
import type { Sql } from '../postgres/connection.js';
import { Rounds } from './blackjack/rounds.store.js';
import { Rotations } from './blocks/rotations.store.js';
import { ApiVersions } from './catalog/apiVersions.store.js';
import { DealingSwitches } from './catalog/dealingSwitches.store.js';
import { Games } from './catalog/games.store.js';
import { Operators } from './catalog/operators.store.js';
import { Partners } from './catalog/partners.store.js';
import { Adjustments } from './cells/adjustments.store.js';
import { Answered } from './cells/answered.store.js';
import { Cells } from './cells/cells.store.js';
import { PlayerStatuses } from './cells/playerStatuses.store.js';
import { Communal } from './communal/communal.store.js';
import { LedgerEntries } from './ledger/ledgerEntries.store.js';
import { SignificantEvents } from './ledger/significantEvents.store.js';
import { Raffles } from './raffles/raffles.store.js';
import { PartnerMoves } from './recovery/partnerMoves.store.js';
import { Recoveries } from './recovery/recoveries.store.js';
import { RequestRunReads } from './requestIds/requestRunReads.store.js';

export type EngineStore = ReturnType<typeof openEngineStore>;

/** Every method rejects if the database does not respond within its deadline (src/postgres/connect.ts). */
export const openEngineStore = (sql: Sql) => ({
  adjustments: new Adjustments(sql),
  answered: new Answered(sql),
  apiVersions: new ApiVersions(sql),
  cells: new Cells(sql),
  communal: new Communal(sql),
  dealingSwitches: new DealingSwitches(sql),
  games: new Games(sql),
  ledgerEntries: new LedgerEntries(sql),
  operators: new Operators(sql),
  partners: new Partners(sql),
  partnerMoves: new PartnerMoves(sql),
  playerStatuses: new PlayerStatuses(sql),
  raffles: new Raffles(sql),
  recoveries: new Recoveries(sql),
  requestRunReads: new RequestRunReads(sql),
  rotations: new Rotations(sql),
  rounds: new Rounds(sql),
  significantEvents: new SignificantEvents(sql),
});
