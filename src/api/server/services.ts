/** What the handlers ask of the rest of the program, by what it is about. */

import type { SettlementReports } from '../../books/settlement/settlementReports.js';
import type { ErrorEntry } from '../../domain/errors.js';
import type { Environment, Game, Partner } from '../../domain/game.js';
import type { OutcomeStatistics } from '../../domain/presentation.js';
import type { SpinIds } from '../../domain/spinId.js';
import type { UrlJudgement } from '../../domain/webhookUrl.js';
import type { RoundPlay } from '../../engine/blackjack/roundPlay.js';
import type { Shoes } from '../../engine/blackjack/shoes.js';
import type { Adjuster } from '../../engine/cells/adjuster.js';
import type { CellViews } from '../../engine/cells/cellViews.js';
import type { Confirmations } from '../../engine/cells/confirmations.js';
import type { ForcedOutcome } from '../../engine/cells/forceOutcome.js';
import type { PartnerReads } from '../../engine/cells/partnerReads.js';
import type { PlayerBlocking } from '../../engine/cells/playerBlocking.js';
import type { rotate } from '../../engine/cells/rotate.js';
import type { SpinPath } from '../../engine/cells/spinPath.js';
import type { SpinRules } from '../../engine/cells/spinRules.js';
import type { PotKeeper } from '../../engine/communal/potKeeper.js';
import type { DrawAgain, Proofs } from '../../publicLog/log/proofs.js';
import type { Store } from '../api.store.js';
import type { ProcessFigures } from '../overview/contract.js';
import type { Exchange } from './exchange.js';
import type { SessionTokens } from './sessionTokens.js';

/** Partners and games as this process knows them. */
export interface KnownCatalog {
  partner(partnerId: number): Partner | undefined;
  game(gameId: number): Game | undefined;
  /** What many spins of a game come to; undefined: it is left to no chance. */
  statistics(gameId: number): OutcomeStatistics | undefined;
  /** Reads what changed, without waiting for the next poll; a game may have been registered a moment ago. */
  refresh(): Promise<void>;
}

/** Counts spins and money for the metrics (src/app/metrics/metrics.ts). */
export interface DealtCounter {
  /** @param payoutMicros micro-USD; undefined: a tester chose the outcome */
  dealt(wagerMicros: number, payoutMicros: number | undefined): void;
}

/** What is read of the cells, and done in them beside dealing. */
export interface CellServices {
  readonly reads: PartnerReads;
  readonly views: CellViews;
  readonly confirmations: Pick<Confirmations, 'cameTo'>;
  readonly adjuster: Adjuster;
  readonly playerBlocking: PlayerBlocking;
  readonly pots: PotKeeper;
  /** @returns until when the choice stands */
  forceOutcome(wanted: ForcedOutcome): Promise<Date | 'full' | 'unavailable'>;
  /** Voids what is sealed of a game and not dealt. */
  rotate(wanted: Parameters<typeof rotate>[2]): ReturnType<typeof rotate>;
}

export interface WebhookServices {
  /** Judges a URL and what its name resolves to now. */
  judgeUrl(url: string, environment: Environment): Promise<UrlJudgement>;
  /** Encrypts a secret for the database. */
  sealSecret(secret: string): string;
  /** Deliveries were committed. */
  recorded(deliveries: number): void;
}

/** This process: its clock, its state, its faults. */
export interface ProcessServices {
  /** Milliseconds since the epoch. */
  now(): number;
  /** The newest UTC day that is over, however far the clocks are apart. */
  overDay(): string;
  /** Days of notice before the end of a version of the API; undefined: six calendar months. */
  readonly noticeDays: number | undefined;
  /** Complete days of the ledger that are kept at least. */
  readonly ledgerKeepDays: number;
  /** SHA-256 of the list of the program's files, hexadecimal; null: there is none. */
  manifest(): string | null;
  /** What this process has counted since its start. */
  figures(): Promise<ProcessFigures>;
  /** What is missing before this process can serve; empty once it can. */
  readiness(): Promise<{ readonly status: number; readonly body: string }>;
  /** @param entry what is answered */
  onFault(exchange: Exchange, operation: string, error: unknown, entry: ErrorEntry): void;
  /** The error says that a store does not answer, and nothing of this program. */
  isStoreAway(error: unknown): boolean;
}

export interface Services {
  readonly store: Store;
  readonly catalog: KnownCatalog;
  readonly spinIds: SpinIds;
  /** Key of the user ids, 32 bytes. */
  readonly playerIdKey: Buffer;
  /** How spins and tickets are dealt, and requests counted. */
  readonly spinPath: Pick<SpinPath, 'submit'>;
  readonly spinRules: SpinRules;
  /** What was dealt, as it is counted. */
  readonly metrics: DealtCounter;
  readonly blackjack: { readonly rounds: RoundPlay; readonly shoes: Shoes };
  readonly drawAgain: DrawAgain;
  readonly proofs: Proofs;
  readonly cells: CellServices;
  readonly settlementReports: SettlementReports;
  readonly webhooks: WebhookServices;
  /** How long sessions of the console last, and what makes their tokens. */
  readonly sessions: { readonly minutes: number; readonly tokens: SessionTokens };
  readonly process: ProcessServices;
}
