/**
 * Checks the refunds of voided raffles in one pass over the ledger. A refund must name an earlier ticket,
 * have its price, go to its player, and be the only refund of the ticket. Every ticket up to the watermark of
 * the void must have a refund or a recorded failure, including tickets of dropped days.
 */
import type { SpinIds } from '../../domain/spinId.js';
import type { Facts } from './auditReads.store.js';
import type { AuditedRaffle, AuditedRefunds } from './gameAuditReads.store.js';
import type { IndexCheck } from './indexCheck.js';
import { type CheckedEntry, isDealt, type LedgerCheck } from './ledgerCheck.js';
import type { Findings, Place } from './report.js';
import type { PlayerTable } from './tables.js';

/** Pattern of a refund's requestId. The audit has its own pattern, independent of domain/refund.ts. */
const REFUND = /^raffle-void:(\d+):([0-9a-f]{32})$/;
const PREFIX = 'raffle-void:';

/** Price of a ticket, and the slot (row number) of its player in the player table. */
interface Ticket {
  readonly price: number;
  readonly player: number;
}

interface VoidedRaffle extends AuditedRefunds {
  /** Committed tickets without a refund so far, by entry id. */
  readonly tickets: Map<bigint, Ticket>;
  refunded: number;
}

export class RefundReplay implements LedgerCheck {
  readonly #raffles: ReadonlyMap<number, AuditedRaffle>;
  readonly #voided = new Map<number, VoidedRaffle>();

  constructor(
    { raffles }: Pick<Facts, 'raffles'>,
    private readonly findings: Findings,
    private readonly players: PlayerTable,
    private readonly spinIds: SpinIds,
    private readonly indices: Pick<IndexCheck, 'nextOf'>,
  ) {
    this.#raffles = raffles;
    for (const [gameId, { refunds }] of raffles)
      if (refunds !== undefined) this.#voided.set(gameId, { ...refunds, tickets: new Map(), refunded: 0 });
  }

  row(entry: CheckedEntry): void {
    if (this.#voided.size > 0 && isDealt(entry.kind)) this.ticket(entry, entry.wager);
  }

  /** Records a spin if it is a ticket of a voided raffle; those of dropped days are kept. */
  ticket(
    { gameId, partnerId, playerId, id }: Pick<CheckedEntry, 'gameId' | 'partnerId' | 'playerId' | 'id'>,
    price: number,
  ): void {
    const tickets = this.#voided.get(gameId)?.tickets;
    tickets?.set(id, { price, player: this.players.slot(partnerId, playerId) });
  }

  /**
   * Checks an adjustment if its requestId has the form of a refund's.
   * @param at returns the position in the ledger, for findings
   */
  adjustment(requestId: string, partnerId: number, playerId: string, amount: number, at: () => Place): void {
    if (!requestId.startsWith(PREFIX)) return;
    const [, gameId, spinId] = REFUND.exec(requestId) ?? [];
    const raffle = this.#voided.get(Number(gameId));
    const named = spinId === undefined ? undefined : this.spinIds.decode(spinId);
    const ticket = named?.partnerId === partnerId ? raffle?.tickets.get(named.entryId) : undefined;
    const found = (problem: string, expected?: number, is?: number): void =>
      this.findings.found('requests', problem, at(), expected, is);
    if (raffle === undefined || ticket === undefined) {
      found('the refund names no ticket of a voided raffle, or a ticket that already has a refund');
      return;
    }
    raffle.tickets.delete(named!.entryId);
    raffle.refunded++;
    if (amount !== ticket.price)
      found('the refund differs from the price of the ticket', ticket.price, amount);
    if (this.players.slot(partnerId, playerId) !== ticket.player)
      found("the refund went to another player than the ticket's");
    if (raffle.failures.has(named!.entryId)) found('the refunded ticket is on record as not refunded');
  }

  /** Reports tickets without a refund and raffles with a wrong status. */
  end(): void {
    const findings = this.findings;
    for (const [game, { poolSize, isClosed, refunds }] of this.#raffles) {
      const next = this.indices.nextOf(game);
      if (refunds === undefined ? (next === poolSize) === isClosed : isClosed || !refunds.isDone) continue;
      const problem =
        'a raffle must be closed if, and only if, all its tickets are in the ledger or it is voided';
      findings.found('indices', problem, { game }, poolSize, next);
    }
    let refunded = 0;
    for (const [game, raffle] of this.#voided) {
      refunded += raffle.refunded;
      for (const entryId of raffle.failures) {
        if (raffle.tickets.delete(entryId)) continue;
        // A failed refund whose ticket also has a refund was already reported with the adjustment.
        findings.found('requests', 'a failed refund names no ticket, or a ticket that has a refund', {
          game,
          entry: entryId.toString(),
        });
      }
      const missing = [...raffle.tickets.keys()].filter((id) => raffle.isDone || id <= raffle.refundedTo);
      if (missing.length === 0) continue;
      const at = { game, entry: String(missing[0]) };
      const problem = raffle.isDone
        ? 'a voided raffle is on record as refunded, but tickets lack a refund; the first one is listed'
        : 'tickets lack a refund, although the void has passed them; the first one is listed';
      findings.found('requests', problem, at, 0, missing.length);
    }
    findings.looked('requests', 'refunds of voided raffles', refunded);
  }
}
