/**
 * Reads the ledger once in the order of its entries and checks: the chain of balances of each player, the
 * indices of each game, dealt outcomes against sealed outcomes and payouts, daily totals, requestIds, and the
 * newest entry of each cell.
 */

import { hash } from 'node:crypto';
import { AUDITED_KINDS, auditedKindOf } from '../../domain/auditedKinds.js';
import { DAY_MS } from '../../domain/days.js';
import type { LedgerEntryKind } from '../../domain/ledgerEntry.js';
import { SpinIds } from '../../domain/spinId.js';
import type { CopyRow } from '../../postgres/copy.js';
import { LEDGER } from './auditColumns.js';
import { type AuditReads, type Facts, intentKey, type Snapshot } from './auditReads.store.js';
import { type BoundarySnapshot, beginAtBoundary, passBoundary } from './boundary.js';
import { CommunalReplay } from './communalReplay.js';
import { auditCursors } from './cursors.js';
import { dayTables } from './days.js';
import { allPayouts, type Payouts } from './payouts.js';
import { RefundReplay } from './refundReplay.js';
import type { CheckName, Findings, Place } from './report.js';
import {
  adjustmentHash,
  auditedTimeMs,
  cellOfPartnerAt,
  idOf,
  PlayerTable,
  playerHash,
  REQUEST,
  REQUEST_WORDS,
  RequestTable,
  Sum,
} from './tables.js';

/** Number of sealed outcomes of a game that are held in memory. They take 64 KB. */
const STRETCH_OUTCOMES = 16_384;
/**
 * Minimum number of loaded outcomes ahead of the current index. It exceeds the number of rows in a network
 * chunk, so that one chunk can't use them up.
 */
const AHEAD_OUTCOMES = 4096;
const NOT_SEALED = -1;
const NOTHING = new Int32Array(0);
/** Maximum outcome index. An index has 48 bits in Redis. */
const MAX_INDEX = 2 ** 48;
/**
 * Layout of an entry id. The audit has its own constants, so that an error in domain/entryId.ts does not go
 * unnoticed.
 */
const CELL_SHIFT = 14;
const CELL_MASK = 0xff;
/** Maximum length in bytes of a partner's number, a colon and a requestId of 128 characters in UTF-8. */
const REQUEST_TEXT_BYTES_MAX = 128 * 4 + 11;

interface GameState {
  readonly gameId: number;
  readonly partnerId: number;
  readonly payouts: Payouts | undefined;
  /** Next outcome index that the pass expects of the game. */
  next: number;
  readonly voids: { readonly fromIndex: number; readonly toIndex: number; readonly sealedTo: number }[];
  /** Position in `voids` of the first void that the pass has not reached. */
  voidAt: number;
  /**
   * Sealed outcomes from the index `stretchFrom` on; {@link NOT_SEALED} for an index without a sealed
   * outcome.
   */
  stretch: Int32Array;
  stretchFrom: number;
  /** True if the pass has read rows of the game since its last pause. */
  isTouched: boolean;
}

/** Row whose sealed outcome is not loaded yet. */
interface Unjudged {
  readonly game: GameState;
  readonly index: number;
  readonly code: number;
  readonly at: Place;
}

export class LedgerPass {
  readonly players = new PlayerTable();
  /** Table of the requestIds of each idempotency period, for the last two periods of the ledger. */
  readonly requests = new Map<number, RequestTable>();
  /**
   * Entries of forced spins with a requestId in the last two periods. A replay of such a spin must repeat the
   * mark of a forced spin.
   */
  readonly forced = new Set<bigint>();
  rows = 0;
  readonly #spinIds: SpinIds;
  readonly #periodMs: number;
  readonly #games = new Map<number, GameState>();
  #game: GameState | undefined;
  #touched: GameState[] = [];
  #unjudged: Unjudged[] = [];
  readonly #communal: CommunalReplay;
  readonly #refunds: RefundReplay;
  readonly #newest = new Map<number, { high: number; low: number }>();
  readonly #days: ReturnType<typeof dayTables>;
  /** Adjustment intents that have a ledger entry. */
  readonly #adjusted = new Set<string>();
  #dayNumber = -1;
  #period = -1;
  #requestsNow = new RequestTable();
  #requestsBefore: RequestTable | undefined;
  readonly #requestText = Buffer.alloc(REQUEST_TEXT_BYTES_MAX);
  #requestPartner = -1;
  #requestPrefixBytes = 0;
  readonly #record = new Uint32Array(REQUEST_WORDS);
  #requestCount = 0;
  readonly #counts = { tickets: 0, spins: 0, forcedSpins: 0 };

  /** @param facts facts of the same snapshot as the ledger rows */
  constructor(
    private readonly facts: Facts,
    private readonly findings: Findings,
  ) {
    this.#spinIds = new SpinIds(facts.spinIdKey);
    this.#communal = new CommunalReplay(facts.communal, findings, this.players);
    this.#refunds = new RefundReplay(facts, findings, this.players, this.#spinIds);
    this.#periodMs = facts.binding.longestMs;
    const { payouts, prizes } = allPayouts(facts, findings);
    for (const { gameId, partnerId, parSheetId } of facts.games) {
      this.#games.set(gameId, {
        gameId,
        partnerId,
        payouts: parSheetId === null ? prizes.get(gameId) : payouts.get(parSheetId),
        next: 0,
        voids: [],
        voidAt: 0,
        stretch: NOTHING,
        stretchFrom: 0,
        isTouched: false,
      });
    }
    for (const range of facts.voids) this.#games.get(range.gameId)?.voids.push(range);
    passBoundary(facts.boundary, this.#games, this.#newest);
    this.#days = dayTables(facts, findings);
  }

  /**
   * Initializes all state at the boundary, where the oldest kept day begins. The caller must do this before
   * the ledger is read.
   */
  begin(snapshot: BoundarySnapshot): Promise<void> {
    const into = {
      players: this.players,
      days: this.#days,
      refunds: this.#refunds,
      adjusted: this.#adjusted,
      communal: this.#communal,
      findings: this.findings,
    };
    return beginAtBoundary(snapshot, into);
  }

  /** @param onRows called after each chunk */
  async read(ledger: Snapshot['ledger'], reads: AuditReads, onRows: () => void): Promise<void> {
    await ledger(
      (row) => this.#row(row),
      async () => {
        await this.#judgeWaiting(reads);
        onRows();
      },
    );
    this.#finish();
  }

  /**
   * Checks the rows that were put aside because their sealed outcomes were not loaded, and loads the outcomes
   * needed for the next chunk.
   */
  async #judgeWaiting(reads: AuditReads): Promise<void> {
    for (const { game, index, code, at } of this.#unjudged) {
      if (this.#sealed(game, index) === undefined) await this.#load(reads, game, index);
      this.#judge(this.#sealed(game, index)!, code, () => at);
    }
    this.#unjudged = [];
    for (const game of this.#touched) {
      game.isTouched = false;
      if (this.#sealed(game, game.next + AHEAD_OUTCOMES) === undefined)
        await this.#load(reads, game, game.next);
    }
    this.#touched = [];
  }

  async #load(reads: AuditReads, game: GameState, index: number): Promise<void> {
    if (game.stretch === NOTHING) game.stretch = new Int32Array(STRETCH_OUTCOMES);
    game.stretch.fill(NOT_SEALED);
    for (const { fromIndex, outcomes } of await reads.sealed(game.gameId, index, STRETCH_OUTCOMES)) {
      const place = fromIndex - index;
      const count = Math.min(Math.floor(outcomes.length / 2), STRETCH_OUTCOMES - place);
      for (let i = 0; i < count; i++) game.stretch[place + i] = outcomes.readUInt16LE(i * 2);
    }
    game.stretchFrom = index;
  }

  /**
   * Returns the sealed outcome of an index, {@link NOT_SEALED} if there is none, or undefined if it is not
   * loaded.
   */
  #sealed(game: GameState, index: number): number | undefined {
    return game.stretch[index - game.stretchFrom];
  }

  #judge(sealed: number, code: number, at: () => Place): void {
    if (sealed === code) return;
    const isSealed = sealed !== NOT_SEALED;
    const problem = isSealed
      ? 'the outcome differs from the sealed outcome'
      : 'no sealed block has an outcome of this index';
    const place = this.findings.lists('outcomes') ? at() : {};
    this.findings.found('outcomes', problem, place, isSealed ? sealed : undefined, code);
  }

  #row(row: CopyRow): void {
    this.rows++;
    const kind = auditedKindOf(row.int(LEDGER.kind));
    const id = row.bytes(LEDGER.id);
    const high = id.readUInt32BE(0);
    const low = id.readUInt32BE(4);
    const ms = auditedTimeMs(high, low);
    const partnerId = row.int(LEDGER.partnerId);
    const wager = row.safe(LEDGER.wagerMicros);
    const credit = row.safe(LEDGER.creditMicros);
    const cell = (low >>> CELL_SHIFT) & CELL_MASK;
    this.#cell(row, cell, high, low, partnerId);
    const playerId = this.#chain(row, kind, high, low, partnerId, wager, credit);

    const dayNumber = Math.floor(ms / DAY_MS);
    if (dayNumber !== this.#dayNumber) {
      this.#closeDay();
      this.#dayNumber = dayNumber;
    }
    switch (kind) {
      case 'spin':
      case 'roundDeal':
        this.#counts.spins++;
        this.#days.games.add(row.int(LEDGER.gameId), partnerId, wager, credit);
        this.#dealt(row, partnerId, wager, credit);
        this.#communal.spin(row, high, low, playerId);
        this.#refunds.ticket(row, high, low, playerId, wager);
        if (!row.isNull(LEDGER.requestId)) {
          this.#request(row, ms, high, low, partnerId, ':', row.int(LEDGER.gameId), playerHash(playerId));
          if (this.facts.raffles.has(row.int(LEDGER.gameId))) this.#counts.tickets++;
        }
        break;
      case 'forcedSpin':
        this.#counts.forcedSpins++;
        this.#days.sandbox.add(row.int(LEDGER.gameId), partnerId, wager, credit);
        this.#dealtByChoice(row, partnerId, wager, credit);
        if (!row.isNull(LEDGER.requestId)) {
          this.#request(row, ms, high, low, partnerId, ':', row.int(LEDGER.gameId), playerHash(playerId));
          this.forced.add(idOf(high, low));
        }
        break;
      case 'roundAction':
        this.#days.games.add(row.int(LEDGER.gameId), partnerId, wager, credit, 0);
        break;
      case 'roundVoid':
        this.#days.games.add(row.int(LEDGER.gameId), partnerId, wager, credit, -1);
        break;
      case 'opening':
        this.#days.openings.add(partnerId, partnerId, 0, credit);
        break;
      case 'adjustment':
        this.#days.adjustments.add(partnerId, partnerId, 0, credit);
        this.#intended(row, partnerId, playerId, credit);
        if (!row.isNull(LEDGER.requestId)) {
          const [first, second, rest] = adjustmentHash(playerId, credit);
          this.#request(row, ms, high, low, partnerId, '+', first, [second, rest]);
        }
        break;
      case 'communalShare':
        this.#communal.share(row, idOf(high, low), ms, playerId);
        break;
      case undefined: {
        const code = row.int(LEDGER.kind);
        this.#report('double-entry', row, 'the kind of the entry is unknown', '1 to 4, or 6 to 9', code);
        break;
      }
      default:
        kind satisfies never;
    }
  }

  #cell(row: CopyRow, cell: number, high: number, low: number, partnerId: number): void {
    const newest = this.#newest.get(cell);
    if (newest === undefined) this.#newest.set(cell, { high, low });
    else {
      newest.high = high;
      newest.low = low;
    }
    const expected = cellOfPartnerAt(this.facts, partnerId, high, low);
    if (expected !== cell)
      this.#report(
        'cursors',
        row,
        "the cell in the entry's id is not the cell of its partner",
        expected,
        cell,
      );
  }

  /** Checks entry number, predecessor and balance of a player's entry. Returns the player's name. */
  #chain(
    row: CopyRow,
    kind: LedgerEntryKind | undefined,
    high: number,
    low: number,
    partnerId: number,
    wager: number,
    credit: number,
  ): string {
    const { players } = this;
    const playerId = row.text(LEDGER.playerId);
    const slot = players.slot(partnerId, playerId);
    const number = row.int(LEDGER.entryNumber);
    const balance = row.safe(LEDGER.balanceMicros);
    const previous = row.bytes(LEDGER.previousId);
    const previousHigh = previous.readUInt32BE(0);
    const previousLow = previous.readUInt32BE(4);
    const before = players.entries[slot]!;
    if (before === 0) players.firstMs[slot] = auditedTimeMs(high, low);
    // Only the first fault of an entry is reported, because later faults are usually consequences.
    const isNumbered = kind !== undefined && AUDITED_KINDS[kind].isNumbered;
    const expectedNumber = isNumbered ? before + 1 : before;
    if (number !== expectedNumber) {
      this.#report(
        'balances',
        row,
        "the numbers of the player's entries are not consecutive",
        expectedNumber,
        `${number} (its previous entry is ${idOf(previousHigh, previousLow)}; the previous entry in the ledger is ${players.newestId(slot)})`,
      );
    } else if (previousHigh !== players.high[slot] || previousLow !== players.low[slot]) {
      const found = idOf(previousHigh, previousLow);
      this.#report(
        'balances',
        row,
        "the entry does not name the player's previous entry",
        players.newestId(slot),
        found,
      );
    } else if ((kind === 'opening') !== (before === 0)) {
      const expected = before === 0 ? '2 (an opening)' : 'any but 2';
      const problem = 'the first entry of a player must be an opening, and no later entry may be one';
      this.#report('balances', row, problem, expected, row.int(LEDGER.kind));
    } else if (balance !== players.balance[slot]! - wager + credit) {
      const expected = players.balance[slot]! - wager + credit;
      this.#report(
        'balances',
        row,
        'the balance does not follow from the previous balance',
        expected,
        balance,
      );
    }
    players.high[slot] = high;
    players.low[slot] = low;
    players.balance[slot] = balance;
    players.entries[slot] = number;
    players.code[slot] = row.int(LEDGER.outcomeCode);
    return playerId;
  }

  #dealt(row: CopyRow, partnerId: number, wager: number, credit: number): void {
    const game = this.#gameOf(row, partnerId);
    if (game === undefined) return;
    const index = row.safe(LEDGER.outcomeIndex);
    const code = row.int(LEDGER.outcomeCode);
    const isPossible = index >= 0 && index <= MAX_INDEX;
    if (isPossible) this.#advance(row, game, index);
    else this.#report('indices', row, 'the index is out of range', game.next, index);
    if (!game.isTouched) {
      game.isTouched = true;
      this.#touched.push(game);
    }
    const sealed = isPossible ? this.#sealed(game, index) : NOT_SEALED;
    if (sealed === undefined) this.#unjudged.push({ game, index, code, at: this.#place(row) });
    else if (sealed !== code) this.#judge(sealed, code, () => this.#place(row));
    this.#paid(row, game, wager, credit);
  }

  /**
   * Checks a forced spin: it must belong to a sandbox partner, have no index, and have the payout that a
   * drawn outcome with its code would have.
   */
  #dealtByChoice(row: CopyRow, partnerId: number, wager: number, credit: number): void {
    if (!this.facts.sandboxPartners.has(partnerId))
      this.#report('outcomes', row, 'a production partner has a forced outcome', 'a sandbox', partnerId);
    const index = row.safe(LEDGER.outcomeIndex);
    if (index !== 0) this.#report('indices', row, 'a forced spin must not have an index', 0, index);
    const game = this.#gameOf(row, partnerId);
    if (game !== undefined) this.#paid(row, game, wager, credit);
  }

  /** Returns the game of an entry and checks that it belongs to the entry's partner. */
  #gameOf(row: CopyRow, partnerId: number): GameState | undefined {
    const gameId = row.int(LEDGER.gameId);
    if (this.#game?.gameId !== gameId) this.#game = this.#games.get(gameId);
    const game = this.#game;
    if (game?.partnerId !== partnerId)
      this.#report('outcomes', row, 'the game belongs to another partner', partnerId, game?.partnerId);
    return game;
  }

  /** Checks wager and credit against the PAR sheet or prize table. */
  #paid(row: CopyRow, { payouts }: GameState, wager: number, credit: number): void {
    if (payouts === undefined) {
      this.#report('outcomes', row, "the PAR sheet or prize table of the game can't be read");
      return;
    }
    const paid = payouts.paid[row.int(LEDGER.outcomeCode)];
    if (credit !== paid) {
      this.#report(
        'outcomes',
        row,
        'the credit differs from the payout of the PAR sheet or prize table',
        paid,
        credit,
      );
    }
    if (wager !== payouts.wager) {
      this.#report(
        'outcomes',
        row,
        'the wager is neither the denomination of the sheet nor the ticket price',
        payouts.wager,
        wager,
      );
    }
  }

  #advance(row: CopyRow, game: GameState, index: number): void {
    this.#passVoids(game, index);
    if (index === game.next) {
      game.next++;
      return;
    }
    if (index > game.next) {
      this.#gap(game, index);
      game.next = index + 1;
      return;
    }
    const range = game.voids.find(({ fromIndex, toIndex }) => fromIndex <= index && index < toIndex);
    const problem =
      range === undefined ? 'the index was already dealt' : 'the index was dealt although it is voided';
    this.#report('indices', row, problem, game.next, index);
  }

  /** Advances past the voids of a game that begin at or before an index. */
  #passVoids(game: GameState, index: number): void {
    for (; game.voidAt < game.voids.length; game.voidAt++) {
      const { fromIndex, toIndex } = game.voids[game.voidAt]!;
      if (fromIndex > index) return;
      if (fromIndex > game.next) this.#gap(game, fromIndex);
      else if (fromIndex < game.next) {
        this.findings.found(
          'indices',
          'a void covers indices that are already dealt or voided',
          { game: game.gameId, partner: game.partnerId, voidFrom: fromIndex, voidTo: toIndex },
          `from ${game.next}`,
          `from ${fromIndex}`,
        );
      }
      game.next = Math.max(game.next, toIndex);
    }
  }

  #gap(game: GameState, index: number): void {
    this.findings.found(
      'indices',
      'indices were neither dealt nor voided',
      { game: game.gameId, partner: game.partnerId, index: game.next, upTo: index - 1 },
      game.next,
      index,
    );
  }

  /** Checks that an adjustment matches the operator's intent and was made only once. */
  #intended(row: CopyRow, partnerId: number, playerId: string, amount: number): void {
    const requestId = row.isNull(LEDGER.requestId) ? undefined : row.text(LEDGER.requestId);
    const key = requestId === undefined ? '' : intentKey(partnerId, requestId);
    const intent = this.facts.intents.get(key);
    if (intent === undefined) {
      this.#report('requests', row, 'the adjustment has no recorded request of an operator');
      return;
    }
    if (this.#adjusted.has(key)) {
      this.#report('requests', row, 'the adjustment was made twice', 'one entry', 'a second entry');
    }
    this.#adjusted.add(key);
    this.#refunds.adjustment(requestId!, partnerId, playerId, amount, () => this.#place(row));
    if (intent.playerId !== playerId) {
      this.#report(
        'requests',
        row,
        'the adjustment is for another player than requested',
        intent.playerId,
        playerId,
      );
    }
    if (intent.amountMicros !== amount) {
      const problem = 'the amount of the adjustment differs from the requested amount';
      this.#report('requests', row, problem, intent.amountMicros, amount);
    }
    const rest = [LEDGER.wagerMicros, LEDGER.outcomeIndex].map((field) => row.safe(field));
    rest.push(row.int(LEDGER.gameId), row.int(LEDGER.outcomeCode));
    if (rest.some((value) => value !== 0)) {
      const problem = 'an adjustment must not have a wager, index, game or outcome';
      this.#report('double-entry', row, problem, '0, 0, 0, 0', rest.join(', '));
    }
  }

  /**
   * Records the requestId of an entry and checks that it was not bound to another entry.
   * @param separator character between partner and requestId in the hash; it differs between spins and
   * adjustments
   * @param first first 4 bytes of the fingerprint
   * @param rest last 6 bytes of the fingerprint, as numbers of 4 and 2 bytes
   */
  #request(
    row: CopyRow,
    ms: number,
    high: number,
    low: number,
    partnerId: number,
    separator: string,
    first: number,
    rest: readonly [number, number],
  ): void {
    this.#requestCount++;
    const period = Math.floor(ms / this.#periodMs);
    if (period !== this.#period) this.#enterPeriod(period);
    const text = this.#requestText;
    if (partnerId !== this.#requestPartner) {
      this.#requestPartner = partnerId;
      this.#requestPrefixBytes = text.write(`${partnerId}:`);
    }
    text[this.#requestPrefixBytes - 1] = separator.charCodeAt(0);
    const length =
      this.#requestPrefixBytes + row.bytes(LEDGER.requestId).copy(text, this.#requestPrefixBytes);
    const digest = hash('sha256', text.subarray(0, length), 'binary');
    const record = this.#record;
    for (let word = 0; word < 3; word++) {
      const at = word * 4;
      record[word] =
        digest.charCodeAt(at) |
        (digest.charCodeAt(at + 1) << 8) |
        (digest.charCodeAt(at + 2) << 16) |
        (digest.charCodeAt(at + 3) << 24);
    }
    const balance = row.bytes(LEDGER.balanceMicros);
    const [a, b] = rest;
    record[REQUEST.idHigh] = high;
    record[REQUEST.idLow] = low;
    record[REQUEST.balanceHigh] = balance.readUInt32BE(0);
    record[REQUEST.balanceLow] = balance.readUInt32BE(4);
    record[REQUEST.game] = first;
    record[REQUEST.player] = a;
    record[REQUEST.codeAndPlayer] = (row.int(LEDGER.outcomeCode) << 16) | b;

    const place = this.#requestsNow.find(record[0]!, record[1]!, record[2]!);
    if (place >= 0) {
      if (!this.#duplicate(row, ms, this.#requestsNow, place)) this.#requestsNow.replace(place, record);
      return;
    }
    const earlier = this.#requestsBefore?.find(record[0]!, record[1]!, record[2]!) ?? -1;
    if (earlier >= 0 && this.#duplicate(row, ms, this.#requestsBefore!, earlier)) return;
    this.#requestsNow.insert(place, record);
  }

  /** @returns true if the requestId was still bound to an earlier entry */
  #duplicate(row: CopyRow, ms: number, table: RequestTable, at: number): boolean {
    const high = table.words[at + REQUEST.idHigh]!;
    const low = table.words[at + REQUEST.idLow]!;
    if (ms >= this.facts.binding.untilMs(auditedTimeMs(high, low))) return false;
    this.#report(
      'requests',
      row,
      'an earlier entry already has the requestId',
      `entry ${idOf(high, low)} alone`,
      'this entry, too',
    );
    return true;
  }

  /** Only the tables of two periods are kept, because requestIds of earlier periods no longer bind. */
  #enterPeriod(period: number): void {
    this.#requestsBefore = period === this.#period + 1 ? this.#requestsNow : undefined;
    this.#requestsNow = new RequestTable();
    this.requests.clear();
    if (this.#requestsBefore === undefined) this.forced.clear();
    if (this.#requestsBefore !== undefined) this.requests.set(this.#period, this.#requestsBefore);
    this.requests.set(period, this.#requestsNow);
    this.#period = period;
  }

  /** Compares the sums of a day with the daily tables. */
  #closeDay(): void {
    if (this.#dayNumber < 0) return;
    const day = new Date(this.#dayNumber * DAY_MS).toISOString().slice(0, 10);
    for (const table of Object.values(this.#days)) table.close(day);
  }

  #finish(): void {
    this.#closeDay();
    const findings = this.findings;
    const { cursors, progress } = this.facts;
    const { games, sandbox, openings, adjustments } = this.#days;
    for (const table of Object.values(this.#days)) table.finish();
    this.#communal.finish();
    const balances = new Sum();
    for (let slot = 0; slot < this.players.count; slot++) balances.add(this.players.balance[slot]!);
    let expected = games.netMicros + sandbox.netMicros + openings.netMicros + adjustments.netMicros;
    for (const { paidMicros } of this.facts.communal.days) expected += paidMicros;
    if (balances.value !== expected) {
      const problem = 'the sum of all balances is not openings − wagers + payouts + adjustments + shares';
      findings.found('double-entry', problem, {}, expected, balances.value);
    }
    let voided = 0;
    for (const game of this.#games.values()) {
      this.#passVoids(game, Number.POSITIVE_INFINITY);
      for (const range of game.voids) voided += range.sealedTo - range.fromIndex;
      const booked = progress.get(game.gameId) ?? 0;
      if (booked !== game.next) {
        findings.found(
          'indices',
          'game_progress.next_index is not the index after the last dealt or voided outcome',
          { game: game.gameId, partner: game.partnerId },
          game.next,
          booked,
        );
      }
    }
    this.#refunds.finish((gameId) => this.#games.get(gameId)?.next ?? 0);
    auditCursors(this.facts, findings, this.#newest);
    findings.looked('balances', 'ledger rows', this.rows);
    findings.looked('balances', 'players in the ledger', this.players.count);
    findings.looked('indices', 'outcomes dealt', this.#counts.spins);
    findings.looked('indices', 'outcomes voided', voided);
    findings.looked('outcomes', 'spins', this.#counts.spins);
    findings.looked('outcomes', 'forced spins', this.#counts.forcedSpins);
    findings.looked('outcomes', 'PAR sheets', this.facts.sheets.size);
    findings.looked('outcomes', 'prize tables', this.facts.raffles.size);
    findings.looked('double-entry', 'days of games', games.rows);
    findings.looked('double-entry', 'days of openings', openings.rows);
    findings.looked('double-entry', 'days of adjustments', adjustments.rows);
    findings.looked('requests', 'requestIds in the ledger', this.#requestCount);
    findings.looked('requests', 'tickets with requestIds', this.#counts.tickets);
    findings.looked('requests', 'adjustments with their intents', this.#adjusted.size);
    findings.looked('cursors', 'cells', cursors.size);
  }

  #report(
    check: CheckName,
    row: CopyRow,
    problem: string,
    expected?: string | number | bigint,
    found?: string | number | bigint,
  ): void {
    const at = this.findings.lists(check) ? this.#place(row) : {};
    this.findings.found(check, problem, at, expected, found);
  }

  #place(row: CopyRow): Place {
    const id = row.big(LEDGER.id);
    const partnerId = row.int(LEDGER.partnerId);
    const kind = auditedKindOf(row.int(LEDGER.kind));
    const binds = kind && AUDITED_KINDS[kind].binds;
    const [isSpin, isAdjustment] = [binds === 'spins', binds === 'adjustments'];
    return {
      entry: id.toString(),
      at: new Date(Number(id >> 22n)).toISOString(),
      ...(isSpin ? { spin: this.#spinIds.encodeOne(id, partnerId) } : {}),
      ...(isAdjustment ? { adjustment: this.#spinIds.encodeOne(id, partnerId) } : {}),
      partner: partnerId,
      player: row.text(LEDGER.playerId),
      number: row.int(LEDGER.entryNumber),
      ...(isSpin ? { game: row.int(LEDGER.gameId), index: row.safe(LEDGER.outcomeIndex) } : {}),
      ...(row.isNull(LEDGER.requestId) ? {} : { request: row.text(LEDGER.requestId) }),
    };
  }
}
