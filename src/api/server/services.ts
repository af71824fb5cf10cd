/** What the handlers ask of the rest of the program, by what it is about. */

import type { Settlements } from '../../books/settlement/settlements.js';
import type { Judgement } from '../../domain/destination.js';
import type { ErrorEntry } from '../../domain/errors.js';
import type { Environment, Game, Partner } from '../../domain/game.js';
import type { EntryKind } from '../../domain/ledgerEntry.js';
import type { OutcomeStatistics } from '../../domain/presentation.js';
import type { SpinIds } from '../../domain/spinId.js';
import type { SpinTail } from '../../domain/spinTail.js';
import type { Rounds } from '../../engine/blackjack/rounds.js';
import type { Shoes } from '../../engine/blackjack/shoes.js';
import type { Adjuster } from '../../engine/cells/adjuster.js';
import type { CellViews } from '../../engine/cells/cellViews.js';
import type { Confirmations } from '../../engine/cells/confirmations.js';
import type { SpinCommand } from '../../engine/cells/deal.js';
import type { ForcedOutcome } from '../../engine/cells/forceOutcome.js';
import type { PartnerReads } from '../../engine/cells/partnerReads.js';
import type { PlayerStatuses } from '../../engine/cells/playerStatuses.js';
import type { rotate } from '../../engine/cells/rotate.js';
import type { PotKeeper } from '../../engine/communal/potKeeper.js';
import type { Found } from '../../engine/requestIds/secondPass.js';
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

/** What the ledger has of a requestId that Redis binds no more: a spin, or round, as it was dealt. */
interface BoundEntry {
  readonly kind: EntryKind;
  readonly gameId: number;
  readonly playerId: string;
  readonly spinId: string;
  readonly outcomeCode: number;
  /** Micro-USD after it. */
  readonly balanceMicros: number;
  readonly tail: SpinTail;
}

/** How spins and tickets are dealt. */
export interface SpinServices {
  /** Has a request of a partner dealt or counted. */
  submit(command: SpinCommand): void;
  /** Why nothing may be dealt for a partner now, whatever the game: a switch, or that this can't be known. Undefined: it may. */
  stopOf(partner: Partner): ErrorEntry | undefined;
  /** A spin of the game is answered only once the ledger has it. */
  waitsForLedger(game: Game | undefined): boolean;
  /** A ticket of the raffle may have been sold under a requestId that neither Redis nor its filters know any more. */
  mayForget(game: Game): boolean;
  /** What the ledger has of a requestId that Redis does not bind. Rejects where that can't be known now. */
  findBound(partner: Partner, requestId: string, game: Game | undefined): Promise<Found<BoundEntry>>;
  /** All tickets of a raffle are dealt. True once the last one is booked; false where that does not come to be known. */
  isSoldOut(game: Game): Promise<boolean>;
  /**
   * The partner as it is once a spin should be sent again that its cell turned away, since it moves; undefined: refuse the spin.
   * @param since when it was turned away first, as performance.now() counts
   */
  whereIs(known: Partner, since: number): Promise<Partner | undefined>;
  /** Called with every spin that was dealt. @param payoutMicros micro-USD; undefined: a tester chose the outcome */
  onDealt(game: Game, payoutMicros: number | undefined): void;
  /** For how long the request id of a spin or deal binds that is dealt now. */
  requestIdBindsSeconds(): number;
}

/** What is read of the cells, and done in them beside dealing. */
export interface CellServices {
  readonly reads: PartnerReads;
  readonly views: CellViews;
  readonly confirmations: Pick<Confirmations, 'cameTo'>;
  readonly adjuster: Adjuster;
  readonly playerStatuses: PlayerStatuses;
  readonly pots: PotKeeper;
  /** @returns until when the choice stands */
  forceOutcome(wanted: ForcedOutcome): Promise<Date | 'full' | 'unavailable'>;
  /** Voids what is sealed of a game and not dealt. */
  rotate(wanted: Parameters<typeof rotate>[2]): ReturnType<typeof rotate>;
}

export interface WebhookServices {
  /** Judges a URL and what its name resolves to now. */
  judgeUrl(url: string, environment: Environment): Promise<Judgement>;
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
  readonly spins: SpinServices;
  readonly blackjack: { readonly rounds: Rounds; readonly shoes: Shoes };
  readonly drawAgain: DrawAgain;
  readonly proofs: Proofs;
  readonly cells: CellServices;
  readonly settlements: Settlements;
  readonly webhooks: WebhookServices;
  /** How long sessions of the console last, and what makes their tokens. */
  readonly sessions: { readonly minutes: number; readonly tokens: SessionTokens };
  readonly process: ProcessServices;
}
