/** @spindle/client: the public exports of the client package for a partner's back end. */
export {
  type ApiOptions,
  bodyOf,
  type PartnerApi,
  type PlayApi,
  type PlaySchemas,
  partnerApi,
  playApi,
  type Schemas,
  type Send,
} from './api.js';
export { Blackjack, type RoundFilter } from './blackjack.js';
export { Spindle, type SpindleOptions, type SpinRange } from './client.js';
export { ERROR_CATALOG } from './errorCatalog.js';
export {
  type ErrorCode,
  type Fault,
  type Happened,
  NoAnswerError,
  type RetryClass,
  SpindleError,
  UnknownSpinError,
} from './errors.js';
/** Types of the round endpoints, for partners who send requests with their own HTTP client. */
export type { paths as PlayPaths } from './play.v1.js';
export type { NewDeal, NewSpin, Round, Spin, SpinAttempt, SpinOptions } from './spins.js';
export { type SpindleEvent, verifyWebhook, WebhookVerificationError } from './webhooks.js';
