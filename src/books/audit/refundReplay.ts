/**
 * The refunds of voided raffles, checked in one pass over the ledger: each is of a ticket that was booked before, of its price and to
 * its player, and a ticket has one. As far as a void says that it has come, each ticket, also one of a dropped day, has its refund or
 * is among the failures on record.
 */
import type { SpinIds } from '../../domain/spinId.js';
import type { CopyRow } from '../../postgres/copy.js';
import { LEDGER } from './auditColumns.js';
import type { Facts } from './auditReads.store.js';
import type { AuditedRaffle, AuditedRefunds } from './gameAuditReads.store.js';
import type { Findings, Place } from './report.js';
import { idOf, type PlayerTable } from './tables.js';

/** The audit has a pattern of its own, against domain/refund.ts. */
const REFUND = /^raffle-void:(\d+):([0-9a-f]{32})$/;
const PREFIX = 'raffle-void:';

/** What a ticket cost, and the place of its player in the table of players. */
interface Ticket {
  readonly price: number;
  readonly player: number;
}

interface VoidedRaffle extends AuditedRefunds {
  /** Booked tickets without a refund so far, by entry. */
  readonly tickets: Map<bigint, Ticket>;
  refunded: number;
}

export class RefundReplay {
  readonly #findings: Findings;
  readonly #players: PlayerTable;
  readonly #spinIds: SpinIds;
  readonly #raffles: ReadonlyMap<number, AuditedRaffle>;
  readonly #voided = new Map<number, VoidedRaffle>();

  constructor(
    { raffles }: Pick<Facts, 'raffles'>,
    findings: Findings,
    players: PlayerTable,
    spinIds: SpinIds,
  ) {
    this.#players = players;
    this.#findings = findings;
    this.#spinIds = spinIds;
    this.#raffles = raffles;
    for (const [gameId, { refunds }] of raffles)
      if (refunds !== undefined) this.#voided.set(gameId, { ...refunds, tickets: new Map(), refunded: 0 });
  }

  /** Takes note of a spin where it is a ticket of a voided raffle. @param high, low of the entry's id */
  ticket(row: CopyRow, high: number, low: number, playerId: string, price: number): void {
    if (this.#voided.size === 0) return;
    const player = this.#players.slot(row.int(LEDGER.partnerId), playerId);
    this.#voided.get(row.int(LEDGER.gameId))?.tickets.set(idOf(high, low), { price, player });
  }

  /** The same of a ticket whose day is dropped. */
  keptTicket(
    { gameId, partnerId, price }: { gameId: number; partnerId: number; price: number },
    entryId: bigint,
    playerId: string,
  ): void {
    const raffle = this.#voided.get(gameId);
    raffle?.tickets.set(entryId, { price, player: this.#players.slot(partnerId, playerId) });
  }

  /** Judges an adjustment by its requestId: most are no refunds. @param at where it stands in the ledger */
  adjustment(requestId: string, partnerId: number, playerId: string, amount: number, at: () => Place): void {
    if (!requestId.startsWith(PREFIX)) return;
    const [, gameId, spinId] = REFUND.exec(requestId) ?? [];
    const raffle = this.#voided.get(Number(gameId));
    const named = spinId === undefined ? undefined : this.#spinIds.decode(spinId);
    const ticket = named?.partnerId === partnerId ? raffle?.tickets.get(named.entryId) : undefined;
    const found = (problem: string, expected?: number, is?: number): void =>
      this.#findings.found('requests', problem, at(), expected, is);
    if (raffle === undefined || ticket === undefined) {
      found('the refund is of no ticket of a voided raffle, or of one that has a refund');
      return;
    }
    raffle.tickets.delete(named!.entryId);
    raffle.refunded++;
    if (amount !== ticket.price) found("the refund is not the ticket's price", ticket.price, amount);
    if (this.#players.slot(partnerId, playerId) !== ticket.player)
      found("the refund is not the ticket's player's");
    if (raffle.failures.has(named!.entryId)) found('the ticket is on record as not refunded');
  }

  /** @param nextOf the index after the last ticket of a raffle in the ledger */
  finish(nextOf: (gameId: number) => number): void {
    const findings = this.#findings;
    for (const [game, { poolSize, isClosed, refunds }] of this.#raffles) {
      const next = nextOf(game);
      if (refunds === undefined ? (next === poolSize) === isClosed : isClosed || !refunds.isDone) continue;
      const problem =
        'a raffle must be closed once all its tickets are in the ledger or it is voided, and not before';
      findings.found('indices', problem, { game }, poolSize, next);
    }
    let refunded = 0;
    for (const [game, raffle] of this.#voided) {
      refunded += raffle.refunded;
      for (const entryId of raffle.failures) {
        if (raffle.tickets.delete(entryId)) continue;
        // With a refund it was found already.
        findings.found('requests', 'a refund that failed is of no ticket, or of one that has a refund', {
          game,
          entry: entryId.toString(),
        });
      }
      const missing = [...raffle.tickets.keys()].filter((id) => raffle.isDone || id <= raffle.refundedTo);
      if (missing.length === 0) continue;
      const at = { game, entry: String(missing[0]) };
      const problem = raffle.isDone
        ? 'tickets of a raffle that is voided and done have no refund; the first is named'
        : 'tickets that the void of a raffle has gone through have no refund; the first is named';
      findings.found('requests', problem, at, 0, missing.length);
    }
    findings.looked('requests', 'refunds of voided raffles', refunded);
  }
}
