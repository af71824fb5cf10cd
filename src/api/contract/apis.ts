/** The APIs: where their routes are, and what holds for all operations of one. */
import { pathOfVersion } from '../../domain/apiVersion.js';

export const PARTNER_VERSION = 'v1';
export const PARTNER_BASE = pathOfVersion(PARTNER_VERSION);
export const OPERATOR_BASE = '/api/operator/v1';

/** Where the routes of each API are. `play` has a version of its own, and takes the keys of partners. */
export const BASES = {
  partner: PARTNER_BASE,
  operator: OPERATOR_BASE,
  play: '/api/play/blackjack',
} as const;

export type Scope = keyof typeof BASES;

/** Of the API, as its documents and GET /version tell it (semver): that of the service, and of the client. */
export const API_VERSION = '1.5.0';

/** Bytes of a request's body, where its endpoint has no limit of its own. */
export const BODY_LIMIT = 65_536;

/** The nouns by which the documents group operations. */
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
