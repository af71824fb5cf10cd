/** @spindle/client: what a partner's back end imports. */
export { type ApiOptions, bodyOf, type PartnerApi, partnerApi, type Schemas, type Send } from './api.js';
export { Spindle, type SpindleOptions } from './client.js';
export { ERROR_CATALOG } from './errorCatalog.js';
export {
  type ErrorCode,
  type Fault,
  NoAnswerError,
  type RetryClass,
  SpindleError,
  UnknownSpinError,
} from './errors.js';
export type { NewSpin, Spin, SpinAttempt, SpinOptions } from './spins.js';
export { type SpindleEvent, verifyWebhook, WebhookVerificationError } from './webhooks.js';
