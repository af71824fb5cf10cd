/** A check of the pass over the ledger (ledgerPass.ts), and the entries that it gets. */
import { AUDITED_KINDS, auditedKindOf } from '../../domain/auditedKinds.js';
import type { LedgerEntryKind } from '../../domain/ledgerEntry.js';
import type { SpinIds } from '../../domain/spinId.js';
import type { CopyRow } from '../../postgres/copy.js';
import { LEDGER } from './auditColumns.js';
import type { Snapshot } from './auditReads.store.js';
import { idOf, timeMsOf, timeMsOfWords } from './ids.js';
import type { Place } from './report.js';

/** Reports what it finds to the `Findings` that it was made with. */
export interface LedgerCheck {
  /** Starts at the boundary, where the oldest kept day begins, and checks the dropped days before it. */
  begin?(snapshot: Snapshot): Promise<void>;
  /** Gets every entry, in the order of the ledger. */
  row(entry: CheckedEntry): void;
  /** Follows each network chunk, and may read what the next one needs. */
  pause?(): Promise<void>;
  end(): void;
}

/** Every dealt outcome that takes an index of its game; a forced spin has none. */
export const isDealt = (kind: LedgerEntryKind | undefined): boolean =>
  kind === 'spin' || kind === 'roundDeal';

/** An entry of the ledger as plain values. The pass fills the same object again for each row. */
export class CheckedEntry {
  /** Undefined if no kind has the code. */
  kind: LedgerEntryKind | undefined;
  kindCode = 0;
  /** Upper and lower 32 bits of the id. */
  high = 0;
  low = 0;
  timeMs = 0;
  partnerId = 0;
  playerId = '';
  number = 0;
  previousHigh = 0;
  previousLow = 0;
  wager = 0;
  credit = 0;
  balance = 0;
  gameId = 0;
  index = 0;
  code = 0;
  /** In UTF-8. */
  requestId: Buffer | undefined;
  /** Records of communal progressives: the event that this entry fired, … */
  event: EventRecord | undefined;
  /** … the share that a communalShare pays, … */
  share: ShareRecord | undefined;
  /** … and the share that this entry told its player about. */
  told: ToldRecord | undefined;

  /** @param hasPots whether the rows have the communal fields */
  constructor(
    private readonly spinIds: SpinIds,
    private readonly hasPots: boolean,
  ) {}

  get id(): bigint {
    return idOf(this.high, this.low);
  }

  take(row: CopyRow): void {
    this.kindCode = row.int(LEDGER.kind);
    this.kind = auditedKindOf(this.kindCode);
    this.high = row.word(LEDGER.id, 0);
    this.low = row.word(LEDGER.id, 4);
    this.timeMs = timeMsOfWords(this.high, this.low);
    this.partnerId = row.int(LEDGER.partnerId);
    this.playerId = row.text(LEDGER.playerId);
    this.number = row.int(LEDGER.entryNumber);
    this.previousHigh = row.word(LEDGER.previousId, 0);
    this.previousLow = row.word(LEDGER.previousId, 4);
    this.wager = row.safe(LEDGER.wagerMicros);
    this.credit = row.safe(LEDGER.creditMicros);
    this.balance = row.safe(LEDGER.balanceMicros);
    this.gameId = row.int(LEDGER.gameId);
    this.index = row.safe(LEDGER.outcomeIndex);
    this.code = row.int(LEDGER.outcomeCode);
    this.requestId = row.isNull(LEDGER.requestId) ? undefined : row.bytes(LEDGER.requestId);
    if (!this.hasPots) return;
    this.event = row.isNull(LEDGER.eventGame) ? undefined : eventOf(row);
    this.share = row.isNull(LEDGER.shareEvent) ? undefined : shareOf(row);
    this.told = row.isNull(LEDGER.toldShare) ? undefined : toldOf(row);
  }

  /** The entry's place in a report. */
  readonly place = (): Place => {
    const { partnerId, kind } = this;
    const id = BigInt.asIntN(64, this.id);
    const binds = kind && AUDITED_KINDS[kind].binds;
    const [isSpin, isAdjustment] = [binds === 'spins', binds === 'adjustments'];
    return {
      entry: id.toString(),
      at: new Date(timeMsOf(id)).toISOString(),
      ...(isSpin ? { spin: this.spinIds.encodeOne(id, partnerId) } : {}),
      ...(isAdjustment ? { adjustment: this.spinIds.encodeOne(id, partnerId) } : {}),
      partner: partnerId,
      player: this.playerId,
      number: this.number,
      ...(isSpin ? { game: this.gameId, index: this.index } : {}),
      ...(this.requestId === undefined ? {} : { request: this.requestId.toString() }),
    };
  };
}

type EventRecord = ReturnType<typeof eventOf>;
const eventOf = (row: CopyRow) => ({
  gameId: row.int(LEDGER.eventGame),
  version: row.int(LEDGER.eventVersion),
  progress: row.big(LEDGER.eventProgress),
  tier: row.int(LEDGER.eventTier),
  paid: row.big(LEDGER.eventPaid),
  winners: row.int(LEDGER.eventWinners),
  status: row.text(LEDGER.eventStatus),
});

type ShareRecord = ReturnType<typeof shareOf>;
const shareOf = (row: CopyRow) => ({
  eventId: row.big(LEDGER.shareEvent),
  micros: row.big(LEDGER.shareAmount),
  gameId: row.int(LEDGER.shareGame),
  playerId: row.text(LEDGER.sharePlayer),
});

type ToldRecord = ReturnType<typeof toldOf>;
const toldOf = (row: CopyRow) => ({
  shareId: row.big(LEDGER.toldShare),
  eventId: row.big(LEDGER.toldEvent),
  isTrigger: row.int(LEDGER.toldTrigger) === 1,
  partnerId: row.int(LEDGER.toldPartner),
  playerId: row.text(LEDGER.toldPlayer),
});
