/** All operations of all APIs; a file for each resource. */

import * as rounds from './blackjack/contract.js';
import * as communal from './communal/contract.js';
import type { Endpoint } from './contract/endpoint.js';
import * as dealing from './dealing/contract.js';
import * as games from './games/contract.js';
import * as ledgerDays from './ledgerDays/contract.js';
import * as operators from './operators/contract.js';
import * as operatorReads from './overview/contract.js';
import * as partners from './partners/contract.js';
import * as players from './players/contract.js';
import * as programChecks from './programChecks/contract.js';
import * as proofs from './proofs/contract.js';
import * as raffles from './raffles/contract.js';
import * as reports from './reports/contract.js';
import * as rtp from './returns/contract.js';
import * as operatorFinds from './search/contract.js';
import * as service from './service/contract.js';
import * as settlements from './settlements/contract.js';
import * as spins from './spins/contract.js';
import * as webhooks from './webhooks/contract.js';

const RESOURCES = [
  communal,
  dealing,
  games,
  ledgerDays,
  operatorFinds,
  operatorReads,
  operators,
  partners,
  players,
  programChecks,
  proofs,
  raffles,
  reports,
  rounds,
  rtp,
  service,
  settlements,
  spins,
  webhooks,
];

export const ENDPOINTS: readonly Endpoint[] = RESOURCES.flatMap((resource) =>
  Object.values<Endpoint>(resource),
);
