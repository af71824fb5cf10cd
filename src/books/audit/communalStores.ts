/**
 * Compares the communal progressives in Redis with Postgres: pots, pending share notices, and the notices
 * that replays of spins repeat. Data is read in pages of bounded size. Concurrent commits are not reported as
 * faults.
 */
import type { PotRecord } from '../../domain/communal.js';
import { readNotice } from '../../domain/spinTail.js';
import type { RedisAuditReads } from '../../engine/redis/auditReads.js';
import { readWaitingShares, type WaitingShare } from '../../engine/redis/communalRecords.js';
import { playerField } from '../../engine/redis/keys.js';
import type { Facts } from './auditReads.store.js';
import type { AuditedShare, CommunalReads } from './communalAuditReads.store.js';
import type { Findings, Place } from './report.js';

/** Offsets of the flags and of the first shares in a player record. */
const FLAGS_AT = 28;
const SHARES_AT = 33;
/** Flag of a player record: further shares are in the player's list. */
const HAS_LISTED = 2;
const PAGE = 1000;
const TRIES = 8;
const PAUSE_MS = 125;
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));

interface Player {
  readonly cell: number;
  readonly partnerId: number;
  readonly playerId: string;
}

/** Stored reply of a requestId: its entry id and the tail of the reply. */
interface Bound {
  readonly cell: number;
  readonly spinId: bigint;
  readonly tail: Buffer;
  readonly at: Place;
}

export class CommunalStoresAudit {
  readonly #fundings: ReadonlySet<bigint>;
  readonly #hasPots: boolean;
  /**
   * Data collected for the next comparison: shares pending in Redis, players with further shares in a list,
   * and bound requestIds.
   */
  #waiting: { readonly player: Player; readonly share: WaitingShare }[] = [];
  #listing: Player[] = [];
  #bound: Bound[] = [];

  /** @param facts facts from the audit's snapshot of Postgres; all reads of Redis must follow the snapshot */
  constructor(
    private readonly facts: Facts,
    private readonly findings: Findings,
    private readonly stores: {
      readonly postgres: CommunalReads;
      readonly redis: Pick<RedisAuditReads, 'outboxEnd' | 'untold'>;
      findPot(cell: number, gameId: number): Promise<PotRecord | undefined>;
    },
  ) {
    this.#hasPots = facts.communal.pots.length > 0;
    this.#fundings = new Set(facts.communal.fundings.map(({ noteId }) => noteId));
  }

  /**
   * Collects the shares that follow the newest entry in a player's record in Redis.
   * @returns false if the record can't be parsed
   */
  player(cell: number, partnerId: number, playerId: string, record: Buffer): boolean {
    if (record.length <= FLAGS_AT) return true;
    const player = { cell, partnerId, playerId };
    if ((record[FLAGS_AT]! & HAS_LISTED) !== 0) this.#listing.push(player);
    try {
      for (const share of readWaitingShares(record.subarray(SHARES_AT)))
        this.#waiting.push({ player, share });
      return true;
    } catch {
      return false;
    }
  }

  /**
   * Collects the stored reply of a requestId.
   * @returns true if the requestId belongs to a funding, which is not a ledger entry
   */
  bound(cell: number, spinId: bigint, tail: Buffer, at: Place): boolean {
    if (this.#fundings.has(spinId)) return true;
    if (this.#hasPots || tail.length > 0) this.#bound.push({ cell, spinId, tail: Buffer.from(tail), at });
    return false;
  }

  /** True if so much data is collected that a comparison is worth its round trips. */
  get isDue(): boolean {
    return this.#waiting.length + this.#listing.length + this.#bound.length >= PAGE;
  }

  async compare(): Promise<void> {
    const listing = this.#listing;
    this.#listing = [];
    for (const player of listing) {
      const field = playerField(player.partnerId, player.playerId);
      for (const bytes of (await this.stores.redis.untold(player.cell, field)).slice(0, -1))
        for (const share of readWaitingShares(bytes)) this.#waiting.push({ player, share });
    }
    const waiting = this.#waiting;
    this.#waiting = [];
    for (let from = 0; from < waiting.length; from += PAGE) {
      const page = waiting.slice(from, from + PAGE);
      const ids = page.map(({ share }) => share.entryId);
      const booked = new Map((await this.stores.postgres.shares(ids)).map((share) => [share.entryId, share]));
      for (const { player, share } of page) this.#compare(player, share, booked.get(share.entryId));
    }
    const bound = this.#bound;
    this.#bound = [];
    if (bound.length > 0) await this.#compareBound(bound);
  }

  #isOfSnapshot(cell: number, entryId: bigint): boolean {
    return entryId <= (this.facts.cursors.get(cell) ?? 0n);
  }

  /** Compares a share that is pending in Redis with its committed record. */
  #compare(
    { cell, partnerId, playerId }: Player,
    found: WaitingShare,
    booked: AuditedShare | undefined,
  ): void {
    const at = { cell, partner: partnerId, player: playerId, entry: found.entryId.toString() };
    if (booked === undefined) {
      if (this.#isOfSnapshot(cell, found.entryId))
        this.#found('a share that is pending in Redis is not committed', at);
      return;
    }
    const isOwn = booked.partnerId === partnerId && booked.playerId === playerId;
    if (!isOwn || booked.eventId !== found.eventId || booked.amountMicros !== BigInt(found.shareMicros)) {
      this.#found('a share that is pending in Redis differs from its committed record', at);
    }
    // A share notified after the snapshot may still have been pending when Redis was read.
    if (booked.notifiedBy !== null && this.#isOfSnapshot(cell, booked.notifiedBy)) {
      this.#found('a share that is pending in Redis was already notified', at);
    }
  }

  /**
   * Compares the notices in replies stored in Redis, which replays of spins repeat, with the committed
   * notices.
   */
  async #compareBound(bound: readonly Bound[]): Promise<void> {
    const notices = await this.stores.postgres.notices(bound.map(({ spinId }) => spinId));
    for (const { cell, spinId, tail, at } of bound) {
      const booked = notices.get(spinId);
      if (booked === undefined && !this.#isOfSnapshot(cell, spinId)) continue;
      const expected =
        booked === undefined
          ? ''
          : [
              booked.eventId,
              booked.tierLevel,
              booked.tierName,
              booked.paidMicros,
              booked.shareMicros,
              booked.isTrigger,
            ].join(' ');
      const found = tail.length === 0 ? '' : repeated(tail);
      if (found !== expected)
        this.#found(
          'the share notice in a stored reply differs from the committed notice',
          at,
          expected,
          found,
        );
    }
  }

  async finish(): Promise<void> {
    await this.compare();
    if (this.#hasPots) await this.#auditWaitingShares();
    for (const pot of this.facts.communal.pots) await this.#auditPot(pot.cell, pot.gameId);
  }

  /** Verifies that every committed share without a notice is pending in Redis. */
  async #auditWaitingShares(): Promise<void> {
    const { postgres } = this.stores;
    let shares = await postgres.untold(0n, PAGE);
    let count = 0;
    while (shares.length > 0) {
      count += shares.length;
      const last = shares.at(-1)!.entryId;
      for (const share of await this.#notWaiting(shares)) {
        const { cell, entryId, partnerId, playerId, gameId } = share;
        const at = { cell, entry: entryId.toString(), partner: partnerId, player: playerId, game: gameId };
        this.#found('a share was not notified and is not pending in Redis', at);
      }
      shares = await postgres.untold(last, PAGE);
    }
    this.findings.looked('communal', 'shares to be notified', count);
  }

  /** Returns those of the shares that are neither pending in Redis nor notified since. */
  async #notWaiting(shares: readonly AuditedShare[]): Promise<readonly AuditedShare[]> {
    let missing = shares;
    for (let attempt = 0; attempt < TRIES && missing.length > 0; attempt++) {
      if (attempt > 0) await pause();
      const fields = new Map(
        missing.map((share) => [playerField(share.partnerId, share.playerId), share.cell]),
      );
      const waiting = new Set<bigint>();
      for (const [field, cell] of fields)
        for (const bytes of await this.stores.redis.untold(cell, field))
          for (const { entryId } of readWaitingShares(bytes)) waiting.add(entryId);
      const left = missing.filter(({ entryId }) => !waiting.has(entryId));
      const booked = await this.stores.postgres.shares(left.map(({ entryId }) => entryId));
      missing = booked.filter(({ notifiedBy }) => notifiedBy === null);
    }
    return missing;
  }

  /** Verifies that the pot in Redis equals the committed pot once the outbox is empty. */
  async #auditPot(cell: number, gameId: number): Promise<void> {
    const at = { cell, game: gameId };
    for (let attempt = 0; attempt < TRIES; attempt++) {
      if (attempt > 0) await pause();
      const before = await this.stores.postgres.pot(gameId);
      const pot = await this.stores.findPot(cell, gameId);
      const end = await this.stores.redis.outboxEnd(cell);
      const after = await this.stores.postgres.pot(gameId);
      if (pot === undefined) {
        if (attempt === TRIES - 1) this.#found('Redis lacks the pot', at);
        continue;
      }
      if (end !== undefined || before !== after) continue;
      const found = [pot.version, pot.progress, pot.budgetMicros].join(', ');
      if (found === after) return;
      if (attempt === TRIES - 1)
        this.#found('the pot in Redis differs from the committed pot', at, after, found);
    }
  }

  #found(problem: string, at: Place, expected?: string, found?: string): void {
    this.findings.found('communal', problem, at, expected, found);
  }
}

/** Returns the notice in the stored reply of a requestId as comparable text. */
function repeated(tail: Buffer): string {
  try {
    const { eventId, tierLevel, tierName, paidMicros, shareMicros, isTrigger } = readNotice(tail);
    return [eventId, tierLevel, tierName, paidMicros, shareMicros, isTrigger].join(' ');
  } catch {
    return tail.toString('hex');
  }
}
