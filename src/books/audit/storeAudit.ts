/**
 * Compares Redis with the ledger while the service runs. The order of the reads prevents false findings. A
 * record in Redis is read before the ledger entry that it names is looked up. When the record was read, this
 * entry was already in the outbox or committed, so the look-up must find it.
 */

import { streamIdOf } from '../../domain/entryId.js';
import type { Totals } from '../../domain/layouts.js';
import { ENTRY_KINDS } from '../../domain/ledgerEntry.js';
import type { CellRecord, OutboxPage, RedisAuditReads } from '../../engine/redis/auditReads.js';
import { cellToken, isPlayer, type OutboxRecord, readPlayer } from '../../engine/redis/cellRecords.js';
import type { AuditedCell, AuditedEntry, AuditReads, Facts } from './auditReads.store.js';
import type { CommunalStoresAudit } from './communalStores.js';
import { cellOf } from './ids.js';
import { LedgerEntryLookUp } from './ledgerEntryLookUp.js';
import type { SeenStatuses } from './playerStatusAudit.js';
import type { Findings, Place } from './report.js';
import type { PlayerTable } from './tables.js';

export interface StoresAudit {
  readonly facts: Facts;
  readonly findings: Findings;
  readonly postgres: AuditReads;
  readonly redis: RedisAuditReads;
  readonly communal: CommunalStoresAudit;
  readonly onProgress: (phase: 'players' | 'requests' | 'cells', done: number, total: number) => void;
}

const TRIES = 8;
const PAUSE_MS = 125;
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));

/**
 * Compares every player in Redis with the player's newest entry, and verifies that Redis has every player of
 * the ledger.
 */
export async function auditPlayers(audit: StoresAudit, players: PlayerTable, statuses: SeenStatuses) {
  const { facts, findings, redis } = audit;
  const entries = new LedgerEntryLookUp(audit);
  let count = 0;
  let total = 0;
  for (let cell = 0; cell < facts.cells; cell++) total += (await redis.counts(cell, 0)).players;
  for (let cell = 0; cell < facts.cells; cell++) {
    for await (const page of redis.players(cell)) {
      for (const [field, value] of page) {
        count++;
        statuses.note(cell, field, value);
        auditPlayer(audit, players, entries, cell, field, value);
      }
      if (entries.isDue) await entries.answerAll();
      if (audit.communal.isDue) await audit.communal.compare();
      audit.onProgress('players', count, total);
    }
  }
  await entries.answerAll();
  for (const [slot, partnerId, playerId] of players.names()) {
    if (players.seen[slot] === 1) continue;
    findings.found(
      'balances',
      'a player of the ledger is missing in Redis',
      {
        cell: facts.partnerCells.get(partnerId) ?? '-',
        partner: partnerId,
        player: playerId,
        entry: players.newestId(slot).toString(),
      },
      `balance ${players.balance[slot]}`,
      'no record',
    );
  }
  findings.looked('balances', 'players in Redis', count);
}

function auditPlayer(
  { facts, findings, communal }: StoresAudit,
  players: PlayerTable,
  entries: LedgerEntryLookUp,
  cell: number,
  field: Buffer,
  value: Buffer,
): void {
  const colon = field.indexOf(0x3a);
  const partnerId = Number(field.toString('latin1', 0, colon));
  const playerId = field.toString('utf8', colon + 1);
  const where = { cell, partner: partnerId, player: playerId };
  if (colon < 1 || !isPlayer(value) || !communal.player(cell, partnerId, playerId, value)) {
    const problem = "the record of the player in Redis can't be read";
    findings.found('balances', problem, { ...where, field: field.toString() });
    return;
  }
  const { newestEntryId: id, balanceMicros, entries: entryNumber, createdAtMs } = readPlayer(value);
  const outcomeCode = value.readUInt16LE(8);
  const at = { ...where, entry: id.toString() };
  const compare = (entry: Pick<AuditedEntry, 'balanceMicros' | 'entryNumber' | 'outcomeCode'>): void => {
    if (entry.balanceMicros !== balanceMicros) {
      findings.found(
        'balances',
        "the balance in Redis differs from the player's newest entry",
        at,
        entry.balanceMicros,
        balanceMicros,
      );
    }
    if (entry.entryNumber !== entryNumber) {
      findings.found(
        'balances',
        "the number of the player's entries in Redis is wrong",
        at,
        entry.entryNumber,
        entryNumber,
      );
    }
    if (entry.outcomeCode !== outcomeCode) {
      findings.found(
        'balances',
        "the outcome code in Redis differs from the player's newest entry",
        at,
        entry.outcomeCode,
        outcomeCode,
      );
    }
  };
  const ownCell = facts.partnerCells.get(partnerId);
  if (ownCell !== undefined && ownCell !== cell) {
    findings.found('balances', 'the player is in the wrong cell of Redis', at, ownCell, cell);
    return;
  }
  const slot = players.find(partnerId, playerId);
  if (slot !== undefined) {
    players.seen[slot] = 1;
    if (players.firstMs[slot] !== createdAtMs) {
      const problem = "the time of the player's first entry in Redis is wrong";
      findings.found('balances', problem, at, players.firstMs[slot]!, createdAtMs);
    }
    const booked = players.newestId(slot);
    if (id < booked) {
      findings.found('balances', 'the ledger is ahead of Redis', at, booked, id);
      return;
    }
    if (id === booked) {
      compare({
        balanceMicros: players.balance[slot]!,
        entryNumber: players.entries[slot]!,
        outcomeCode: players.code[slot]!,
      });
      return;
    }
  }
  entries.ask({
    cell,
    id,
    answer: (entry) => {
      if (entry === undefined) {
        findings.found(
          'balances',
          "the player's newest entry in Redis is neither in the ledger nor in the outbox",
          at,
        );
      } else if (entry.partnerId !== partnerId || entry.playerId !== playerId) {
        const problem = "the player's newest entry in Redis belongs to another player";
        findings.found(
          'balances',
          problem,
          at,
          `${partnerId}:${playerId}`,
          `${entry.partnerId}:${entry.playerId}`,
        );
      } else {
        compare(entry);
      }
    },
  });
}

/** Audits game counters and outboxes, cell by cell. */
export async function auditCells(audit: StoresAudit): Promise<void> {
  const { facts, findings, redis } = audit;
  let outboxEntries = 0;
  let games = 0;
  for (let cell = 0; cell < facts.cells; cell++) {
    await auditCell(audit, cell, await redis.serverId(cell));
    const before = new Map<number, number>();
    for await (const [field, game] of redis.games(cell)) {
      if (game === undefined)
        findings.found('indices', "the record of the game in Redis can't be read", { cell, game: field });
      else before.set(Number(field), game.nextIndex);
    }
    // Every outcome dealt before the counters were read is now in the outbox or committed, so the counters
    // can't be ahead of both.
    const accounted = await new OutboxWalk(audit, cell).walk();
    outboxEntries += accounted.entries;
    for (const gameId of new Set([...before.keys(), ...accounted.next.keys()])) {
      games++;
      const next = accounted.next.get(gameId) ?? 0;
      const counter = before.get(gameId) ?? 0;
      const at = { cell, game: gameId };
      // For a voided raffle the counter in Redis is set to the pool size, so that no ticket can be sold.
      const raffle = facts.raffles.get(gameId);
      if (counter > next && !(raffle?.refunds && counter === raffle.poolSize)) {
        const problem = 'the counter in Redis is ahead of the ledger and the outbox';
        findings.found('indices', problem, at, next, counter);
        continue;
      }
      const now = (await redis.game(cell, gameId))?.nextIndex ?? 0;
      if (now < next) {
        const problem = 'the counter in Redis is behind the ledger and the outbox';
        findings.found('indices', problem, at, next, now);
      }
    }
    audit.onProgress('cells', cell + 1, facts.cells);
  }
  findings.looked('indices', 'counters in Redis', games);
  findings.looked('cursors', 'entries in the outboxes', outboxEntries);
}

/** Difference between a cell's record in Redis and its row in Postgres. */
type Disagreement = readonly [
  problem: string,
  at: Place,
  expected?: string | bigint,
  found?: string | bigint,
];

/** Differences are compared again a few times, because a change in progress may explain them. */
async function auditCell(
  { findings, postgres, redis }: StoresAudit,
  cell: number,
  serverId: string,
): Promise<void> {
  let disagreements: Disagreement[] = [];
  for (let attempt = 0; attempt < TRIES; attempt++) {
    if (attempt > 0) await pause();
    // Redis is read between two reads of Postgres. The state of Redis must be neither behind the first of
    // these reads nor ahead of the second.
    const before = await postgres.cell(cell);
    const record = await redis.cell(cell);
    const after = await postgres.cursor(cell);
    disagreements = cellDisagreements(before, after, record, serverId);
    if (disagreements.length === 0) return;
  }
  for (const [problem, at, expected, found] of disagreements) {
    findings.found('cursors', problem, at, expected, found);
  }
}

function cellDisagreements(
  { cell, token, cursorId, halted, recoveringSince }: AuditedCell,
  cursorAfter: bigint,
  record: CellRecord,
  serverId: string,
): Disagreement[] {
  const list: Disagreement[] = [];
  const at = { cell };
  if (halted !== null) list.push([`the cell is halted: ${halted}`, at]);
  if (recoveringSince !== null) {
    list.push([`a recovery of the cell began at ${recoveringSince.toISOString()} and has not ended`, at]);
  }
  const { epoch, newestEntryId, added, booked } = record;
  // No worker has prepared the cell yet, so there is nothing to compare.
  if (epoch === undefined && newestEntryId === undefined && cursorId === 0n) return list;
  const expected = cellToken(token, serverId);
  if (epoch !== expected) {
    const problem =
      epoch?.startsWith(`${token}:`) === true
        ? 'no worker has prepared the cell since the last start of Redis'
        : 'the epoch in Redis differs from the epoch of the cell';
    list.push([problem, at, expected, epoch ?? 'none']);
  }
  if (newestEntryId === undefined ? cursorId > 0n : newestEntryId < cursorId) {
    list.push(['the newest entry in Redis is below the cursor', at, cursorId, newestEntryId ?? 'none']);
  }
  if (booked !== undefined && booked.id > cursorAfter) {
    list.push(['Redis records an entry above the cursor as committed', at, cursorAfter, booked.id]);
  }
  if (booked !== undefined && added !== undefined && booked.id === newestEntryId) {
    if (!areEqual(booked.totals, added)) {
      const problem =
        'everything is committed, but the totals of added and committed entries in Redis differ';
      list.push([problem, at, totalsText(added), totalsText(booked.totals)]);
    }
  }
  return list;
}

const areEqual = (a: Totals, b: Totals): boolean => a.entries === b.entries && a.bytes === b.bytes;
const totalsText = ({ entries, bytes }: Totals): string => `${entries} entries, ${bytes} bytes`;

/**
 * Reads the outbox of a cell from the cursor to its current end. Entry ids must ascend, and game indices and
 * totals must continue from the ledger. If the flusher overtakes the read, the read starts again at the new
 * cursor, because everything before it is committed.
 */
class OutboxWalk {
  /** Next index of each game after all committed entries and all entries read so far. */
  #next = new Map<number, number>();
  /** Id of the last entry that was read from the outbox. */
  #position = 0n;
  /** Totals after the outbox entries read so far; undefined if unknown. */
  #totals: Totals | undefined;
  #entries = 0;
  #counted = 0n;

  constructor(
    private readonly audit: StoresAudit,
    private readonly cell: number,
  ) {}

  async walk(): Promise<{ entries: number; next: Map<number, number> }> {
    const { postgres, redis } = this.audit;
    const cell = this.cell;
    const end = await redis.outboxEnd(cell);
    for (;;) {
      const { cursorId, next } = await postgres.cellProgress(cell);
      this.#next = next;
      this.#position = cursorId;
      this.#totals = undefined;
      if (end === undefined || (await this.#readFrom(cursorId, end))) break;
    }
    return { entries: this.#entries, next: this.#next };
  }

  /**
   * Reads the outbox from the cursor to its end and checks each entry.
   * @returns false if the flusher has meanwhile committed entries that this read had not reached, so that the
   * read must start again at the new cursor
   */
  async #readFrom(cursorId: bigint, end: string): Promise<boolean> {
    const { postgres, redis } = this.audit;
    const { booked } = await redis.cell(this.cell);
    if (booked?.id === cursorId) this.#totals = booked.totals;
    for (let after = streamIdOf(cursorId); ; ) {
      const page = await redis.outbox(this.cell, after, end);
      if ((await postgres.cursor(this.cell)) > this.#position) return false;
      if (page.length === 0) return true;
      after = page.at(-1)!.streamId;
      for (const batch of page) this.#batch(batch);
    }
  }

  #batch({ streamId, records, bytes, before }: OutboxPage): void {
    const at = { cell: this.cell, streamId };
    if (records === undefined || before === undefined) {
      this.#found("an outbox entry can't be read", at);
      this.#totals = undefined;
      return;
    }
    if (this.#totals !== undefined && !areEqual(this.#totals, before)) {
      const problem = 'the totals of an outbox entry do not follow from the previous outbox entry';
      this.#found(problem, at, totalsText(this.#totals), totalsText(before));
    }
    this.#totals = { entries: before.entries + records.length, bytes: before.bytes + bytes };
    for (const record of records) this.#record(record, at);
    const last = streamIdOf(records.at(-1)!.id);
    if (last !== streamId) {
      this.#found('the id of an outbox entry differs from its last ledger entry', at, last, streamId);
    }
  }

  #record(record: OutboxRecord, where: Place): void {
    const { id, partnerId, playerId, gameId, outcomeIndex } = record;
    const at = { ...where, entry: id.toString(), partner: partnerId, player: playerId };
    if (id <= this.#position) {
      const problem = 'the id of a ledger entry in the outbox does not increase';
      this.#found(problem, at, `above ${this.#position}`, id);
    } else {
      this.#position = id;
    }
    if (cellOf(id) !== this.cell) {
      this.#found('a ledger entry in the outbox has an id of another cell', at, this.cell, cellOf(id));
    }
    if (id > this.#counted) {
      this.#counted = id;
      this.#entries++;
    }
    const { advancesGameIndex } = ENTRY_KINDS[record.kind];
    if (!advancesGameIndex && record.voidedTo === undefined) return;
    const expected = this.#next.get(gameId) ?? 0;
    if (outcomeIndex !== expected) {
      const problem = 'an index in the outbox does not follow the ledger';
      this.#found(problem, { ...at, game: gameId, index: outcomeIndex }, expected, outcomeIndex);
    }
    this.#next.set(gameId, record.voidedTo ?? outcomeIndex + 1);
  }

  #found(
    problem: string,
    at: Place,
    expected?: string | number | bigint,
    found?: string | number | bigint,
  ): void {
    this.audit.findings.found('cursors', problem, at, expected, found);
  }
}
