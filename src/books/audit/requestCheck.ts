/**
 * Verifies that each requestId belongs to one entry while it binds, and each adjustment to one request of an
 * operator.
 */
import { hash } from 'node:crypto';
import { AUDITED_KINDS } from '../../domain/auditedKinds.js';
import { type Facts, intentKey, type Snapshot } from './auditReads.store.js';
import { KEPT } from './boundary.store.js';
import { idOf, timeMsOfWords } from './ids.js';
import type { CheckedEntry, LedgerCheck } from './ledgerCheck.js';
import type { RefundReplay } from './refundReplay.js';
import type { Findings, Place, Value } from './report.js';
import { adjustmentHash, playerHash, REQUEST, REQUEST_WORDS, RequestTable } from './tables.js';

/** Bytes of a partner's number, a colon and a requestId of 128 characters in UTF-8, at most. */
const TEXT_BYTES_MAX = 128 * 4 + 11;

export class RequestCheck implements LedgerCheck {
  /** RequestIds by idempotency period. Only the newest two are kept, because older requestIds don't bind. */
  readonly periods = new Map<number, RequestTable>();
  /** Forced spins with a requestId of these periods, because a replay must say that the spin was forced. */
  readonly forced = new Set<bigint>();
  readonly #periodMs: number;
  #period = -1;
  #now = new RequestTable();
  #before: RequestTable | undefined;
  /** Intents of adjustments that have an entry. */
  readonly #adjusted = new Set<string>();
  #count = 0;
  #tickets = 0;
  readonly #text = Buffer.alloc(TEXT_BYTES_MAX);
  #partner = -1;
  #prefixBytes = 0;
  readonly #record = new Uint32Array(REQUEST_WORDS);

  constructor(
    private readonly facts: Pick<Facts, 'binding' | 'intents' | 'raffles'>,
    private readonly findings: Findings,
    private readonly refunds: Pick<RefundReplay, 'ticket' | 'adjustment'>,
  ) {
    this.#periodMs = facts.binding.longestMs;
  }

  /** Takes the tickets and adjustments of dropped days. */
  async begin({ keptEntries }: Pick<Snapshot, 'keptEntries'>): Promise<void> {
    await keptEntries((row) => {
      const [partnerId, playerId] = [row.int(KEPT.partnerId), row.text(KEPT.playerId)];
      const id = row.big(KEPT.id);
      if (row.int(KEPT.kind) === AUDITED_KINDS.spin.code) {
        const ticket = { id, gameId: row.int(KEPT.gameId), partnerId, playerId };
        this.refunds.ticket(ticket, row.safe(KEPT.wagerMicros));
        return;
      }
      const requestId = row.isNull(KEPT.requestId) ? '' : row.text(KEPT.requestId);
      this.#adjusted.add(intentKey(partnerId, requestId));
      const at = (): Place => ({ entry: id.toString(), partner: partnerId, player: playerId });
      this.refunds.adjustment(requestId, partnerId, playerId, row.safe(KEPT.creditMicros), at);
    });
  }

  row(entry: CheckedEntry): void {
    const { kind, requestId, gameId, playerId, credit } = entry;
    if (kind === 'adjustment') this.#intended(entry);
    const binds = kind && AUDITED_KINDS[kind].binds;
    if (binds === undefined || requestId === undefined) return;
    if (binds === 'adjustments') {
      const [first, a, b] = adjustmentHash(playerId, credit);
      this.#bind(entry, requestId, '+', first, a, b);
      return;
    }
    const [a, b] = playerHash(playerId);
    this.#bind(entry, requestId, ':', gameId, a, b);
    if (kind === 'forcedSpin') this.forced.add(entry.id);
    else if (this.facts.raffles.has(gameId)) this.#tickets++;
  }

  #intended(entry: CheckedEntry): void {
    const { partnerId, playerId, place, credit, wager, index, gameId, code } = entry;
    const requestId = entry.requestId?.toString();
    const key = requestId === undefined ? '' : intentKey(partnerId, requestId);
    const intent = this.facts.intents.get(key);
    const found = (problem: string, expected?: Value, is?: Value): void =>
      this.findings.found('requests', problem, place, expected, is);
    if (intent === undefined) {
      found('the adjustment has no recorded request of an operator');
      return;
    }
    if (this.#adjusted.has(key)) found('the adjustment was made twice', 'one entry', 'a second entry');
    this.#adjusted.add(key);
    this.refunds.adjustment(requestId!, partnerId, playerId, credit, place);
    if (intent.playerId !== playerId)
      found('the adjustment is for another player than requested', intent.playerId, playerId);
    if (intent.amountMicros !== credit)
      found('the amount of the adjustment differs from the requested amount', intent.amountMicros, credit);
    const rest = [wager, index, gameId, code];
    if (rest.some((value) => value !== 0)) {
      const problem = 'an adjustment must not have a wager, index, game or outcome';
      this.findings.found('double-entry', problem, place, '0, 0, 0, 0', rest.join(', '));
    }
  }

  /**
   * @param separator between partner and requestId in the hash; it differs between spins and adjustments
   * @param first first 4 bytes of the request's fingerprint, followed by 4 and 2 bytes
   */
  #bind(
    entry: CheckedEntry,
    requestId: Buffer,
    separator: string,
    first: number,
    a: number,
    b: number,
  ): void {
    this.#count++;
    const period = Math.floor(entry.timeMs / this.#periodMs);
    if (period !== this.#period) this.#enterPeriod(period);
    const text = this.#text;
    if (entry.partnerId !== this.#partner) {
      this.#partner = entry.partnerId;
      this.#prefixBytes = text.write(`${entry.partnerId}:`);
    }
    text[this.#prefixBytes - 1] = separator.charCodeAt(0);
    const length = this.#prefixBytes + requestId.copy(text, this.#prefixBytes);
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
    record[REQUEST.idHigh] = entry.high;
    record[REQUEST.idLow] = entry.low;
    record[REQUEST.balanceHigh] = Math.floor(entry.balance / 2 ** 32);
    record[REQUEST.balanceLow] = entry.balance;
    record[REQUEST.game] = first;
    record[REQUEST.player] = a;
    record[REQUEST.codeAndPlayer] = (entry.code << 16) | b;

    const place = this.#now.find(record[0]!, record[1]!, record[2]!);
    if (place >= 0) {
      if (!this.#isBound(entry, this.#now, place)) this.#now.replace(place, record);
      return;
    }
    const earlier = this.#before?.find(record[0]!, record[1]!, record[2]!) ?? -1;
    if (earlier >= 0 && this.#isBound(entry, this.#before!, earlier)) return;
    this.#now.insert(place, record);
  }

  /** Reports an entry whose requestId still belongs to an earlier one. */
  #isBound({ timeMs, place }: CheckedEntry, { words }: RequestTable, at: number): boolean {
    const high = words[at + REQUEST.idHigh]!;
    const low = words[at + REQUEST.idLow]!;
    if (timeMs >= this.facts.binding.untilMs(timeMsOfWords(high, low))) return false;
    const problem = 'an earlier entry already has the requestId';
    this.findings.found('requests', problem, place, `entry ${idOf(high, low)} alone`, 'this entry, too');
    return true;
  }

  #enterPeriod(period: number): void {
    this.#before = period === this.#period + 1 ? this.#now : undefined;
    this.#now = new RequestTable();
    this.periods.clear();
    if (this.#before === undefined) this.forced.clear();
    else this.periods.set(this.#period, this.#before);
    this.periods.set(period, this.#now);
    this.#period = period;
  }

  end(): void {
    this.findings.looked('requests', 'requestIds in the ledger', this.#count);
    this.findings.looked('requests', 'tickets with requestIds', this.#tickets);
    this.findings.looked('requests', 'adjustments with their intents', this.#adjusted.size);
  }
}
