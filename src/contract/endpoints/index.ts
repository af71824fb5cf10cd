/** All operations of all APIs; a file for each resource. */
import type { Endpoint } from '../endpoint.js';
import * as communal from './communal.js';
import * as dealing from './dealing.js';
import * as games from './games.js';
import * as ledgerDays from './ledgerDays.js';
import * as operatorFinds from './operatorFinds.js';
import * as operatorReads from './operatorReads.js';
import * as operators from './operators.js';
import * as partners from './partners.js';
import * as players from './players.js';
import * as programChecks from './programChecks.js';
import * as proofs from './proofs.js';
import * as raffles from './raffles.js';
import * as reports from './reports.js';
import * as rounds from './rounds.js';
import * as rtp from './rtp.js';
import * as service from './service.js';
import * as settlements from './settlements.js';
import * as spins from './spins.js';
import * as webhooks from './webhooks.js';

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
