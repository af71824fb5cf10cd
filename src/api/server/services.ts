/** Defines what the handlers need from the other parts of the program, grouped by subject. */

import type { SettlementReports } from '../../books/settlement/settlementReports.js';
import type { ErrorEntry } from '../../domain/errors.js';
import type { Environment } from '../../domain/game.js';
import type { SpinIds } from '../../domain/spinId.js';
import type { UrlJudgement } from '../../domain/webhookUrl.js';
import type { RoundPlay } from '../../engine/blackjack/roundPlay.js';
import type { Shoes } from '../../engine/blackjack/shoes.js';
import type { Catalog } from '../../engine/catalog/catalog.js';
import type { Adjuster } from '../../engine/cells/adjuster.js';
import type { CellViews } from '../../engine/cells/cellViews.js';
import type { Confirmations } from '../../engine/cells/confirmations.js';
import type { ForcedOutcome, forceOutcome } from '../../engine/cells/forceOutcome.js';
import type { PartnerReads } from '../../engine/cells/partnerReads.js';
import type { PlayerBlocking } from '../../engine/cells/playerBlocking.js';
import type { rotate } from '../../engine/cells/rotate.js';
import type { SpinPath } from '../../engine/cells/spinPath.js';
import type { SpinRules } from '../../engine/cells/spinRules.js';
import type { PotKeeper } from '../../engine/communal/potKeeper.js';
import type { Problems } from '../../engine/problems.js';
import type { RequestIds } from '../../engine/requestIds/requestIds.js';
import type { DrawAgain, Proofs } from '../../publicLog/log/proofs.js';
import type { Store } from '../api.store.js';
import type { ProcessFigures } from '../overview/contract.js';
import type { Exchange } from './exchange.js';
import type { SessionTokens } from './sessionTokens.js';

export interface Services {
  readonly store: Store;
  readonly catalog: Pick<Catalog, 'version' | 'partner' | 'game' | 'statistics' | 'refresh'>;
  readonly spinIds: SpinIds;
  /** Key for the derivation of user ids, 32 bytes. */
  readonly playerIdKey: Buffer;
  readonly spinPath: Pick<SpinPath, 'submit' | 'onceFresh' | 'deadlineMs'>;
  readonly spinRules: SpinRules;
  readonly metrics: {
    /** @param payoutMicros payout in micro-USD; undefined: a tester chose the outcome */
    dealt(wagerMicros: number, payoutMicros: number | undefined): void;
  };
  readonly requestIds: Pick<RequestIds, 'find' | 'refresh'>;
  readonly blackjack: { readonly rounds: RoundPlay; readonly shoes: Shoes };
  readonly drawAgain: DrawAgain;
  readonly proofs: Proofs;
  readonly cells: {
    readonly reads: PartnerReads;
    readonly views: CellViews;
    readonly confirmations: Pick<Confirmations, 'cameTo'>;
    readonly adjuster: Adjuster;
    readonly playerBlocking: PlayerBlocking;
    readonly pots: PotKeeper;
    /** Stores an outcome that a tester chose. Returns the time until which the choice is valid. */
    forceOutcome(wanted: ForcedOutcome): ReturnType<typeof forceOutcome>;
    /** Returns whether Redis is certain to sell no further ticket. */
    endSale(gameId: number): Promise<boolean>;
    /** Voids the sealed outcomes of a game that have not been dealt. */
    rotate(wanted: Parameters<typeof rotate>[2]): ReturnType<typeof rotate>;
  };
  readonly settlementReports: SettlementReports;
  readonly webhooks: {
    /** Checks a URL and the addresses that its host name currently resolves to. */
    judgeUrl(url: string, environment: Environment): Promise<UrlJudgement>;
    sealSecret(secret: string): string;
    /** Called after deliveries were committed. */
    recorded(deliveries: number): void;
  };
  /** Duration of a console session in minutes, and the object that creates the tokens of sessions. */
  readonly sessions: { readonly minutes: number; readonly tokens: SessionTokens };
  readonly process: {
    /** Returns the time in ms since the epoch. */
    now(): number;
    /** Returns the newest UTC day that has ended on the clocks of all processes. */
    overDay(): string;
    /** Days of notice before the end of an API version; undefined: six calendar months. */
    readonly noticeDays: number | undefined;
    readonly ledgerKeepDays: number;
    /** Returns the hexadecimal SHA-256 of the list of the program's files; null if there is no such list. */
    manifest(): string | null;
    figures(): Promise<ProcessFigures>;
    readonly problems: Pick<Problems, 'list'>;
    /** @param entry error of the error catalog that the client receives */
    onFault(exchange: Exchange, operation: string, error: unknown, entry: ErrorEntry): void;
    /** Returns whether the error means that a store does not answer, and is not a defect of this program. */
    isStoreAway(error: unknown): boolean;
  };
}
