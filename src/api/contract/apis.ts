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

export const TAGS = {
  'PAR sheets': 'The mathematics of slot games',
  Games: 'Games, their queues of outcomes and their totals',
  Raffles: 'Raffles with a finite sealed pool of tickets, which anybody can verify once all tickets are sold',
  Rounds: 'Deal, play, read, void and finish blackjack rounds',
  'Communal progressive': 'A bonus pot that the players of a slot game share',
  Spins: 'Deal the next outcome of a game, and read past spins',
  Proofs: 'Proofs that outcomes were fixed in the public log before they were dealt',
  Players: 'Players, their balances and their past games',
  Sandbox: 'Choose outcomes for tests of rare cases; available to sandbox accounts only',
  Settlements: 'Settlement reports: one for each UTC day with games, with revisions',
  Reports: 'Reports of game figures, liabilities to players and significant events',
  Webhooks: 'Signed events that are sent to a URL of the partner',
  Partners: 'Accounts of partners and their settings',
  'API keys': 'Keys of partners',
  Operators: 'People and programs that run the service: their names, roles, keys and console sessions',
  'API versions': 'Versions of the partner API, the partners that use them, and their end dates',
  Ledger: 'Days of the ledger and their archives',
  'Audit log': 'Changes by operators, and system events',
  Service: 'State and operation of the service',
} as const;
