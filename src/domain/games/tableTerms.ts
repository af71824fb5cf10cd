/** What a blackjack table is made of. */
import type { BlackjackRules } from './blackjackRules.js';

/** What the operator fixes for the life of a table. */
export interface TableTerms {
  readonly wagerMicros: number;
  readonly rules: BlackjackRules;
  /** An open round is played out by itself so long after its deal. */
  readonly roundTimeoutSeconds: number;
}

export interface BlackjackTable extends TableTerms {
  /** SHA-256 of the rules (blackjackRules.ts). */
  readonly rulesHash: Buffer;
}
