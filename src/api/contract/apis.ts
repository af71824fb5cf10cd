/** The three APIs: their base paths, versions, limits and tags. */
import { pathOfVersion } from '../../domain/apiVersion.js';

export const PARTNER_VERSION = 'v1';
export const PARTNER_BASE = pathOfVersion(PARTNER_VERSION);
export const OPERATOR_BASE = '/api/operator/v1';

/** Base path of each API. The `play` API has its own version and accepts partners' keys. */
export const BASES = {
  partner: PARTNER_BASE,
  operator: OPERATOR_BASE,
  play: '/api/play/blackjack',
} as const;

export type Scope = keyof typeof BASES;

/**
 * Semantic version of the API, as its OpenAPI documents and GET /version report it. It is also the version of
 * the service and of the client package.
 */
export const API_VERSION = '1.5.0';

/** Maximum size of a request body, in bytes, unless the endpoint has its own limit. */
export const BODY_LIMIT = 65_536;

/** Tags by which the OpenAPI documents group operations. */
export const TAGS = {
  'PAR sheets': 'The mathematics of slot games',
  Games: 'Games, their queues of outcomes and their totals',
  Raffles: 'Finite sealed pools, which anybody can check once they are sold out',
  Rounds: 'Play blackjack, one action after the other; read, void and close what was dealt',
  'Communal progressive': 'A bonus pot that the players of a slot game share',
  Spins: 'Deal the next outcome of a game, and read what was dealt',
  Proofs: 'What was fixed in the public log before it was dealt',
  Players: 'Balances of players',
  Sandbox: 'Try outcomes that are rare; of sandbox accounts only',
  Settlements: 'One report for each UTC day with games, by revision',
  Reports: 'Figures over intervals, what is owed to players, significant events',
  Webhooks: 'Signed events to a URL of the partner',
  Partners: 'Accounts of partners and their settings',
  'API keys': 'Keys of partners',
  Operators: 'Who runs the service: names, roles and keys; sessions of the console',
  'API versions': 'Versions of the partner API, who uses them and when they end',
  Ledger: 'Days of the ledger',
  'Audit log': 'Changes that the operator made',
  Service: 'The service itself',
} as const;
