/**
 * What callers send and get, as schemas: they validate, they serialise, and the OpenAPI documents are made of them.
 * PAR sheets have their own file (par.ts). The rules: docs/contract.md §2 to §15.
 */

export {
  ApiVersion,
  ApiVersionList,
  ApiVersionStatus,
  ApiVersionUse,
  DeprecateBody,
  ListedApiVersion,
} from './schemas/apiVersions.js';
export {
  amountMicros,
  ID_MAX,
  nullable,
  PATH,
  PATTERN_MESSAGES,
  Page,
} from './schemas/common.js';
export {
  BlocksAccepted,
  BlocksBody,
  GameBody,
  GameList,
  GamePatch,
  GameQueue,
  GameResponse,
  GameTotals,
  ListedGame,
  OperatorGame,
  OperatorParSheet,
  ParSheetList,
  ParSheetPatch,
  ParSheetResponse,
  SettableGameStatus,
} from './schemas/games.js';
export {
  ApiKey,
  BalanceMode,
  Environment,
  IssuedKey,
  KeyBody,
  KeyList,
  KeyStatus,
  PartnerBody,
  PartnerList,
  PartnerPatch,
  PartnerResponse,
} from './schemas/partners.js';
export {
  AdjustmentBody,
  AdjustmentOrder,
  AdjustmentResponse,
  PlayerResponse,
  PlayerSpins,
  PlayerStatus,
  PlayerStatusBody,
  PlayerStatusOrder,
  PlayerStatusResponse,
} from './schemas/players.js';
export {
  PoolPrize,
  PoolResponse,
  PoolReveal,
  RaffleBody,
  RafflePrize,
  RaffleResponse,
} from './schemas/raffles.js';
export {
  AuditEntry,
  AuditLog,
  ErrorDetail,
  ErrorResponse,
  VersionResponse,
} from './schemas/service.js';
export {
  DisputeBody,
  JudgedRevision,
  ReadRevision,
  ReportStatus,
  SettlementGame,
  SettlementList,
  SettlementReport,
} from './schemas/settlements.js';
export {
  AnimationHints,
  CelebrationTier,
  PlayerBalance,
  PlayerSpin,
  Presentation,
  RafflePresentation,
  ReelSymbol,
  SlotPresentation,
  SpinBody,
  SpinFeed,
  SpinFeedQuery,
  SpinOutcome,
  SpinRecord,
  SpinResponse,
} from './schemas/spins.js';
export {
  Delivery,
  DeliveryPage,
  DeliveryStatus,
  EVENTS,
  Event,
  EventFeed,
  EventFeedQuery,
  ResendBody,
  Resent,
  RotatedSecret,
  TestBody,
  TestSent,
  Webhook,
  WebhookBody,
  WebhookEvent,
  WebhookList,
  WebhookPatch,
  WebhookRegistered,
} from './schemas/webhooks.js';
