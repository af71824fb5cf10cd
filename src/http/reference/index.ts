/**
 * Descriptions and examples of all operations, by operationId; a file for each resource. A test checks that each operation has
 * them and that the examples fit its schemas (test/tidy/openApi.unit.test.ts).
 */
import { COMMUNAL_REFERENCES } from './communal.js';
import { EVENT_REFERENCES, type EventReference } from './events.js';
import { GAME_REFERENCES } from './games.js';
import type { OperationReference, References } from './operationReference.js';
import { OPERATOR_READ_REFERENCES } from './operatorReads.js';
import { OPERATOR_REFERENCES } from './operators.js';
import { PARTNER_REFERENCES } from './partners.js';
import { PLAYER_REFERENCES } from './players.js';
import { RAFFLE_REFERENCES } from './raffles.js';
import { ROUND_REFERENCES } from './rounds.js';
import { SERVICE_REFERENCES } from './service.js';
import { SETTLEMENT_REFERENCES } from './settlements.js';
import { SPIN_REFERENCES } from './spins.js';
import { WEBHOOK_REFERENCES } from './webhooks.js';

export type { OperationReference } from './operationReference.js';

const REFERENCES: References = {
  ...SPIN_REFERENCES,
  ...GAME_REFERENCES,
  ...RAFFLE_REFERENCES,
  ...ROUND_REFERENCES,
  ...PLAYER_REFERENCES,
  ...COMMUNAL_REFERENCES,
  ...SETTLEMENT_REFERENCES,
  ...WEBHOOK_REFERENCES,
  ...PARTNER_REFERENCES,
  ...OPERATOR_REFERENCES,
  ...OPERATOR_READ_REFERENCES,
  ...SERVICE_REFERENCES,
};

/** Of an operation that has none: nothing, which the test reports. */
export const referenceOf = (operationId: string): OperationReference => REFERENCES[operationId] ?? {};

/** @param event its type */
export const eventReferenceOf = (event: string): EventReference | undefined => EVENT_REFERENCES[event];
