/**
 * Catalogue of all errors that a caller can get: code, HTTP status, retry class and message. It is the only
 * place where an error code is written; other code refers to its entries. docs/contract.md §14 says what the
 * retry classes require of callers.
 */

/**
 * What a caller should do next.
 * - `never`: the same request will fail again.
 * - `later`: try again after a wait (`Retry-After` if it is sent).
 * - `same-request-id`: try again later with the same requestId, to read the original result.
 * - `new-request-id`: the spin did not happen and bound nothing; try again with the same requestId, or with
 *   a new one if every attempt was answered.
 */
export type RetryClass = 'never' | 'later' | 'same-request-id' | 'new-request-id';

/**
 * What an error says about the request that got it, such as a bet. An earlier attempt at the same bet may
 * have happened even if this one did not.
 * - `no`: the request changed nothing.
 * - `unknown`: it may have happened. Repeating it with the same requestId tells.
 * - `no-with-request-id`: `no` if the request had a requestId (an action of a round: a `seq`). Otherwise
 *   `unknown`, because KS-4110 would name nothing to repeat.
 * - `other-request`: the request changed nothing, but its requestId belongs to another one that happened.
 */
export type Happened = 'no' | 'unknown' | 'no-with-request-id' | 'other-request';

export interface ErrorEntry {
  readonly code: string;
  readonly status: number;
  readonly retry: RetryClass;
  readonly happened: Happened;
  readonly message: string;
  /**
   * An error code of the contract for an operation that this service does not offer. The service never sends
   * it.
   */
  readonly reserved?: true;
}

/** What an error with a status says unless its code says something else: a 5xx may have happened. */
export const happenedAt = (status: number): Happened => (status >= 500 ? 'unknown' : 'no');

const entry = (
  code: string,
  status: number,
  retry: RetryClass,
  message: string,
  happened = happenedAt(status),
): ErrorEntry => Object.freeze({ code, status, retry, happened, message });
const reserved = (code: string, status: number, message: string): ErrorEntry =>
  Object.freeze({ ...entry(code, status, status >= 500 ? 'later' : 'never', message), reserved: true });

export const ERRORS = {
  missingApiKey: entry('KS-4001', 401, 'never', 'The X-API-Key header is missing'),
  invalidApiKey: entry('KS-4002', 401, 'never', 'The API key is not valid'),
  revokedApiKey: entry('KS-4003', 401, 'never', 'The API key is revoked or inactive'),
  expiredApiKey: entry('KS-4004', 401, 'never', 'The API key has expired'),
  partnerDeactivated: entry('KS-4005', 401, 'never', 'The partner account is deactivated'),
  gameNotRegistered: entry(
    'KS-4006',
    403,
    'never',
    'The game is not found or not registered to this partner',
  ),
  validationFailed: entry('KS-4101', 400, 'never', 'The request is not valid'),
  fieldMissing: entry('KS-4102', 400, 'never', 'A required field is missing'),
  wagerMismatch: entry('KS-4103', 400, 'never', "The wager must equal the game's fixed wager"),
  invalidParSheet: entry('KS-4104', 400, 'never', 'The PAR sheet is not valid'),
  invalidDate: entry('KS-4105', 400, 'never', 'The date is not valid; use YYYY-MM-DD'),
  invalidWebhookUrl: entry('KS-4106', 400, 'never', 'The webhook URL is not valid'),
  invalidWebhookEvents: entry('KS-4107', 400, 'never', 'The webhook event types are not valid'),
  configNameTaken: entry('KS-4108', 409, 'never', 'A game with this configName already exists'),
  deprecated4109: reserved('KS-4109', 400, 'Deprecated, no longer returned'),
  spinInProgress: entry(
    'KS-4110',
    409,
    'same-request-id',
    'A request with this requestId is in progress',
    'unknown',
  ),
  requestIdReused: entry(
    'KS-4111',
    409,
    'never',
    'The requestId was used for a different spin request',
    'other-request',
  ),
  unsupportedInterfaceVersion: entry(
    'KS-4112',
    426,
    'never',
    'The interface_version is not supported; send a semver version with major 1',
  ),
  apiVersionGone: entry('KS-4113', 410, 'never', 'This version of the API has ended'),
  capReached: entry('KS-4114', 409, 'never', 'The partner has reached its limit'),
  playerBlocked: entry('KS-4115', 403, 'never', 'The player is blocked'),
  notPermitted: entry('KS-4116', 403, 'never', "The operator's role does not permit this"),
  gameNotFound: entry('KS-4201', 404, 'never', 'The game is not found'),
  gameNotActive: entry('KS-4202', 400, 'never', 'The game is not active'),
  queueExhausted: entry(
    'KS-4203',
    503,
    'later',
    'The outcome queue of the game is exhausted for the moment',
    'no',
  ),
  playerNotFound: entry('KS-4204', 404, 'never', 'The player is not found'),
  parSheetNotFound: entry('KS-4205', 404, 'never', 'The PAR sheet is not found'),
  webhookNotFound: entry('KS-4206', 404, 'never', 'The webhook is not found'),
  webhookForeign: entry('KS-4207', 403, 'never', 'The webhook does not belong to this partner'),
  parSheetNotActive: entry('KS-4208', 400, 'never', 'The PAR sheet is not active'),
  partnerNotFound: entry('KS-4209', 404, 'never', 'The partner is not found'),
  partnerIsDeactivated: entry('KS-4210', 403, 'never', 'The partner is deactivated'),
  slugTaken: entry('KS-4211', 409, 'never', 'A partner with this slug already exists'),
  keyNotFound: entry('KS-4212', 404, 'never', 'The API key is not found'),
  keyForeign: entry('KS-4213', 403, 'never', 'The API key does not belong to this partner'),
  noGames: entry('KS-4214', 404, 'never', 'The partner has no games'),
  notFound: entry('KS-4215', 404, 'never', 'The resource is not found'),
  gameTypeUnsupported: entry('KS-4216', 400, 'never', 'The game type is not supported in the partner API'),
  webhookDestinationDisallowed: entry(
    'KS-4217',
    400,
    'never',
    'The webhook URL targets a disallowed destination',
  ),
  raffleClosed: entry('KS-4218', 410, 'never', 'The raffle is closed and sells no more tickets'),
  noProof: entry('KS-4219', 404, 'never', 'There is no proof of this outcome'),
  blackjackOnly: entry('KS-4220', 400, 'never', 'The game is played through the blackjack round endpoints'),
  roundNotFound: entry('KS-4221', 404, 'never', 'The round is not found'),
  roundOpen: entry('KS-4222', 409, 'never', 'An open round already exists for this game'),
  actionIllegal: entry('KS-4223', 409, 'never', 'The action is not legal in the state of the round'),
  actionStale: entry('KS-4224', 409, 'never', 'The action sequence number is stale or out of order'),
  insufficientBalance: entry('KS-4225', 400, 'never', 'The balance is too low for this action'),
  spinRateExceeded: entry('KS-4291', 429, 'later', 'The spin rate limit is exceeded'),
  apiRateExceeded: entry('KS-4292', 429, 'later', 'The API rate limit is exceeded'),
  tooManyFailedLogins: entry('KS-4293', 429, 'later', 'Too many failed authentications from this address'),
  reportNotFound: entry('KS-4301', 404, 'never', 'The settlement report is not found'),
  reportAcknowledged: entry('KS-4302', 409, 'never', 'The settlement report is already acknowledged'),
  reportDisputed: entry('KS-4303', 409, 'never', 'The settlement report is already disputed'),
  reportStatus: entry(
    'KS-4304',
    409,
    'never',
    'The status of the settlement report does not allow this action',
  ),
  progressiveNotConfigured: entry(
    'KS-4601',
    404,
    'never',
    'No communal progressive is configured for this game',
  ),
  progressiveDisabled: entry('KS-4602', 409, 'never', 'The communal progressive is disabled for this game'),
  progressiveExhausted: entry(
    'KS-4603',
    409,
    'never',
    'The promotional budget of the communal progressive is exhausted',
  ),
  progressiveSplit: entry('KS-4604', 400, 'never', 'triggerSplitPct and communitySplitPct must sum to 100'),
  progressiveInterval: entry('KS-4605', 400, 'never', 'triggerAtSpins must be a multiple of triggerInterval'),
  progressiveFailed: entry('KS-4606', 500, 'later', 'The communal progressive could not be advanced'),
  internal: entry('KS-5001', 500, 'later', 'Internal server error'),
  unavailable: entry(
    'KS-5002',
    503,
    'later',
    'The service is unavailable for the moment',
    'no-with-request-id',
  ),
  spinFailed: entry('KS-5003', 500, 'new-request-id', 'The spin failed; the wager was not deducted', 'no'),
  authenticationFailed: entry('KS-5004', 500, 'later', 'The API key could not be checked', 'no'),
  gameRegistrationFailed: entry('KS-5005', 500, 'later', 'The game could not be registered'),
  parUploadFailed: entry('KS-5006', 500, 'later', 'The PAR sheet could not be stored'),
  partnerCreationFailed: entry('KS-5007', 500, 'later', 'The partner could not be created'),
  keyIssueFailed: entry('KS-5008', 500, 'later', 'The API key could not be issued'),
  reportFailed: entry('KS-5009', 500, 'later', 'The settlement report could not be generated'),
  playerResolutionFailed: entry('KS-5010', 500, 'later', 'The player could not be resolved'),
  fundingUnavailable: entry(
    'KS-5011',
    503,
    'new-request-id',
    'Funding is unavailable for the moment; the spin did not happen',
    'no',
  ),
  noBlockServable: entry(
    'KS-5012',
    503,
    'new-request-id',
    'No outcome block is available; the spin did not happen',
    'no',
  ),
  dealingOff: entry(
    'KS-5013',
    503,
    'new-request-id',
    'Dealing is switched off for the moment; nothing was dealt',
    'no',
  ),
} as const satisfies Record<string, ErrorEntry>;

/** Path of the page, served by the service, that describes an error and its remedy. */
export const docUrlOf = ({ code }: ErrorEntry): string => `/docs/errors#${code}`;

/** One fault of a refused request. `path` is a JSON Pointer (RFC 6901) into the request. */
export interface Fault {
  readonly path: string;
  readonly message: string;
  /** For KS-4222: the open round, and the number of the newest action in it. */
  readonly roundId?: string;
  readonly lastActionSeq?: number;
  /** For KS-4223 and KS-4224: the actions that are legal now; empty if the round has ended. */
  readonly legalActions?: readonly string[];
  /** For KS-4223 and KS-4224: the `seq` of the round's next action; absent if the round has ended. */
  readonly expectedSeq?: number;
  /** For KS-4219: the reason why there is no proof. */
  readonly reason?: 'FORCED' | 'BEFORE_LOG' | 'ARCHIVED';
}

/**
 * A refusal of a request with an entry of the catalogue of errors. It is a response to the caller, not a
 * defect of the service.
 */
export class ApiError extends Error {
  readonly entry: ErrorEntry;
  readonly details: readonly Fault[] | undefined;
  /** Undefined if waiting does not help. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    entry: ErrorEntry,
    options: { details?: readonly Fault[]; retryAfterSeconds?: number; cause?: unknown } = {},
  ) {
    super(
      `${entry.code} ${entry.message}`,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.entry = entry;
    this.details = options.details;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** Creates a validation error (KS-4101) with its faults. */
export const invalid = (details: readonly Fault[]): ApiError =>
  new ApiError(ERRORS.validationFailed, { details });
