/**
 * Carries out the voids of raffles in the cells that this worker owns.
 *
 *   voided (Postgres) ──> ended (Redis sells no ticket any more) ──> committed (the ledger has all tickets)
 *     ──> closed ──> refunded group by group (an adjustment for each ticket, committed before the next group)
 *     ──> done
 *
 * The sale ends in Redis, so that no front end can sell another ticket, however late it learns of the void.
 * If a void was interrupted, or its partner has moved to another cell, it continues at the step where it
 * stopped. Each step can be repeated, because a refund is an adjustment whose requestId is derived from its
 * ticket.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { refundRequestId } from '../../domain/refund.js';
import type { SpinIds } from '../../domain/spinId.js';
import type { OnFailpoint } from '../../platform/failpoints.js';
import { IDLE } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import type { Adjuster } from '../cells/adjuster.js';
import { type CellLease, committedIdOf } from '../cells/cells.store.js';
import { OwnedWork } from '../cells/ownedWork.js';
import { type EventEmitter, taskFailed } from '../processEvents.js';
import { endPool } from '../redis/endPool.js';
import type { RedisNodes } from '../redis/nodes.js';
import {
  type CommittedTicket,
  closeVoided,
  finishVoid,
  noteRefunded,
  noteRefundFailure,
  openVoids,
  ticketsBehind,
  type VoidedRaffle,
} from './raffles.store.js';

const TURN_MS = 2000;
/**
 * Maximum number of raffles in one turn of this task. For each of these raffles, one group of tickets is
 * refunded in the turn.
 */
const RAFFLES_MAX = 32;
const PIECE_TICKETS = 200;
/** Maximum number of concurrent refunds. It leaves slots of the adjustment operation free for operators. */
const AT_ONCE = 16;
/**
 * Maximum time to wait for the ledger in a raffle's turn, in ms, before the other raffles have their turns.
 */
const BOOKED_WITHIN_MS = 5000;
const LOOK_MS = 20;
/** Back-off after a failed step, in ms. The back-off doubles with each further consecutive failure. */
const BACKOFF_MIN_MS = 500;
const BACKOFF_MAX_MS = 30_000;

export class RaffleVoids extends OwnedWork {
  readonly name = 'raffle voids';

  constructor(
    private readonly options: {
      readonly sql: Sql;
      readonly nodes: Pick<RedisNodes, 'cell'>;
      /** Makes adjustments. Each promise resolves once the ledger has the adjustment. */
      readonly adjuster: Pick<Adjuster, 'adjust'>;
      readonly spinIds: SpinIds;
      readonly events: EventEmitter;
      readonly onFailpoint: OnFailpoint;
    },
  ) {
    super(
      { turnMs: TURN_MS, backoffMinMs: BACKOFF_MIN_MS, backoffMaxMs: BACKOFF_MAX_MS },
      taskFailed(options.events, 'raffle void'),
    );
  }

  protected async turn(): Promise<typeof IDLE | undefined> {
    if (this.leases.size === 0) return IDLE;
    const raffles = await openVoids(this.options.sql, [...this.leases.keys()], RAFFLES_MAX);
    this.keepFailuresOf(new Set(raffles.map(({ gameId }) => gameId)));
    if (raffles.length === 0) return IDLE;
    for (const raffle of raffles) {
      const { gameId, cell } = raffle;
      const lease = this.leases.get(cell);
      if (this.isStopped) return;
      if (lease === undefined || this.rests(gameId)) continue;
      try {
        if (raffle.ticketsTo === undefined) await this.#close(lease, raffle);
        else await this.#refundPiece(raffle);
        this.forgetFailures(gameId);
        this.hurry();
      } catch (error) {
        if (this.isStopped) return;
        this.#fail(raffle, error);
      }
    }
  }

  #fail({ gameId, cell }: VoidedRaffle, error: unknown): void {
    this.options.events.emit('TaskFailed', { task: 'raffle void', error, cell, gameId });
    this.noteFailure(gameId);
  }

  /** Ends the sale of a raffle, waits until every sold ticket is committed, and closes the raffle. */
  async #close(lease: CellLease, raffle: VoidedRaffle): Promise<void> {
    const { sql, nodes, onFailpoint } = this.options;
    const store = nodes.cell(lease.cell);
    await endPool(store, lease, raffle.gameId, raffle.poolSize);
    onFailpoint('void.ended');
    // The newest entry is read after the end of the sale, so no ticket can follow it.
    const newest = await store.newestInOutbox();
    const deadline = performance.now() + BOOKED_WITHIN_MS;
    while ((await committedIdOf(sql, lease.cell)) < newest) {
      if (this.isStopped || performance.now() > deadline)
        throw new Error(`The tickets of raffle ${raffle.gameId} are not committed yet`);
      await pause(LOOK_MS);
    }
    await closeVoided(sql, lease, raffle);
    onFailpoint('void.closed');
  }

  /** Refunds the next group of tickets, or ends the void if no ticket is left. */
  async #refundPiece(raffle: VoidedRaffle): Promise<void> {
    const { sql, onFailpoint } = this.options;
    const { gameId } = raffle;
    const piece = await ticketsBehind(sql, raffle, PIECE_TICKETS);
    if (piece === undefined) {
      if (!(await finishVoid(sql, gameId)))
        throw new Error(`Some tickets of raffle ${gameId} have no refund yet`);
      onFailpoint('void.done');
      return;
    }
    await this.#refundAll(raffle, piece.tickets);
    onFailpoint('void.refunded');
    await noteRefunded(sql, gameId, piece.to);
    onFailpoint('void.noted');
  }

  /** @throws Error if a refund was refused or its result is unknown; the group is repeated later */
  async #refundAll(raffle: VoidedRaffle, tickets: readonly CommittedTicket[]): Promise<void> {
    const { gameId } = raffle;
    const left = [...tickets].reverse();
    let undone: string | undefined;
    const inTurn = async (): Promise<void> => {
      for (let ticket = left.pop(); ticket !== undefined; ticket = left.pop()) {
        // After one failed refund the other refunds would probably fail too, and each attempt adds an entry
        // to the audit log.
        if (undone !== undefined || this.isStopped) return;
        undone = await this.#refund(raffle, ticket);
      }
    };
    // After a failure only one refund runs at a time.
    const atOnce = this.hasFailed(gameId) ? 1 : AT_ONCE;
    await Promise.all(Array.from({ length: atOnce }, inTurn));
    if (undone !== undefined || left.length > 0)
      throw new Error(`A refund of raffle ${gameId} is not done yet (${undone ?? 'not begun'})`);
  }

  /** @returns why the refund may not be done; undefined if it is done or can never be done */
  async #refund(raffle: VoidedRaffle, ticket: CommittedTicket): Promise<string | undefined> {
    const { sql, adjuster, spinIds, events, onFailpoint } = this.options;
    const { gameId, partnerId, actor, reason } = raffle;
    const { entryId, playerId, priceMicros } = ticket;
    const requestId = refundRequestId(gameId, spinIds.encodeOne(entryId, partnerId));
    const wanted = { partnerId, playerId, requestId, amountMicros: priceMicros, reason };
    const adjusted = await adjuster.adjust(actor, wanted, raffle);
    onFailpoint('void.adjusted');
    if (typeof adjusted === 'object') {
      events.emit('TicketRefunded', { result: 'refunded' });
      return undefined;
    }
    if (adjusted === 'refused' || adjusted === 'unknown') return adjusted;
    await noteRefundFailure(sql, gameId, entryId, adjusted);
    events.emit('TicketRefunded', { result: 'failed' });
    return undefined;
  }
}
