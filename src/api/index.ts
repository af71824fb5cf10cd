/** All operations of all APIs; a file for each resource. */

import * as auditLog from './auditLog/contract.js';
import * as blackjack from './blackjack/contract.js';
import * as cells from './cells/contract.js';
import * as communal from './communal/contract.js';
import type { Endpoint } from './contract/endpoint.js';
import * as dealing from './dealing/contract.js';
import * as games from './games/contract.js';
import * as ledgerDays from './ledgerDays/contract.js';
import * as operators from './operators/contract.js';
import * as overview from './overview/contract.js';
import * as partners from './partners/contract.js';
import * as players from './players/contract.js';
import * as programChecks from './programChecks/contract.js';
import * as proofs from './proofs/contract.js';
import * as raffles from './raffles/contract.js';
import * as reports from './reports/contract.js';
import * as returns from './returns/contract.js';
import * as sandbox from './sandbox/contract.js';
import * as search from './search/contract.js';
import * as settlements from './settlements/contract.js';
import * as spins from './spins/contract.js';
import * as traffic from './traffic/contract.js';
import * as versions from './versions/contract.js';
import * as webhooks from './webhooks/contract.js';

export const CONTRACTS = [
  auditLog,
  blackjack,
  cells,
  communal,
  dealing,
  games,
  ledgerDays,
  operators,
  overview,
  partners,
  players,
  programChecks,
  proofs,
  raffles,
  reports,
  returns,
  sandbox,
  search,
  settlements,
  spins,
  traffic,
  versions,
  webhooks,
];

const isEndpoint = (value: unknown): value is Endpoint =>
  typeof value === 'object' && value !== null && 'operationId' in value;

export const ENDPOINTS: readonly Endpoint[] = CONTRACTS.flatMap((contract) =>
  Object.values<unknown>(contract).filter(isEndpoint),
);
