/** Properties of a blackjack table: its wager, its rules and the timeout of its rounds. */
import type { BlackjackRules } from './blackjackRules.js';

/** Properties that the operator fixes for the life of a table. */
export interface TableTerms {
  readonly wagerMicros: number;
  readonly rules: BlackjackRules;
  /** Time after the deal at which an open round is played out automatically, in seconds. */
  readonly roundTimeoutSeconds: number;
}

export interface BlackjackTable extends TableTerms {
  /** SHA-256 of the table's rules (blackjackRules.ts). */
  readonly rulesHash: Buffer;
}
