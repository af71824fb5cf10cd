/**
 * What Redis holds against the ledger, while both go on. Every question is asked in an order in which the service can
 * only have made the answers agree more: what Redis shows was in the outbox before it left it, and was booked before.
 */
import { createHash } from 'node:crypto';
import { streamIdBefore, streamIdOf } from '../domain/entryId.js';
import { SpinIds } from '../domain/spinId.js';
import type { AuditedCell, AuditReads, Facts } from '../postgres/auditReads.js';
import type { CellRecord, OutboxPage, RedisAuditReads } from '../redis/auditReads.js';
import {
  CORE_BYTES,
  cellToken,
  isPlayer,
  type OutboxRecord,
  REFUSED_BYTES,
  readId,
  readPlayer,
  readSafeInt64,
  type Totals,
} from '../redis/records.js';
import type { CommunalStoresAudit } from './communalStores.js';
import type { LedgerPass } from './ledger.js';
import type { SeenStatuses } from './playerStatuses.js';
import type { Findings, Place } from './report.js';
import {
  adjustmentHash,
  idOf,
  type PlayerTable,
  playerHash,
  REQUEST,
  REQUEST_WORDS,
  timeOf,
} from './tables.js';

export interface StoresAudit {
  readonly facts: Facts;
  readonly findings: Findings;
  readonly postgres: AuditReads;
  readonly redis: RedisAuditReads;
  readonly communal: CommunalStoresAudit;
  readonly onProgress: (phase: 'players' | 'requests' | 'cells', done: number, total: number) => void;
}

/** An entry, wherever it is. */
interface Entry {
  readonly isAdjustment: boolean;
  readonly partnerId: number;
  readonly playerId: string;
  readonly gameId: number;
  readonly entryNumber: number;
  readonly outcomeCode: number;
  readonly creditMicros: number;
  readonly balanceMicros: number;
  readonly requestId: string | null;
}

const BOUND_BYTES = CORE_BYTES + 10;
/** Entries asked for at a time. */
const ENTRIES_AT_A_TIME = 1000;
/** The audit reads an id by constants of its own: a wrong layout in domain/entryId.ts must not pass unnoticed. */
const CELL_MASK = 0xffn;
const CELL_SHIFT = 14n;
/** An id may be ahead of the clock that a requestId's period is told by: after a clock was put back. */
const AHEAD_MS_MAX = 60_000;
const TRIES = 8;
const PAUSE_MS = 125;
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
const cellOfId = (id: bigint): number => Number((id >> CELL_SHIFT) & CELL_MASK);

/** A record of Redis that names an entry which is not in the snapshot, and what to do once the entry is known. */
interface Question {
  readonly cell: number;
  readonly id: bigint;
  readonly answer: (entry: Entry | undefined) => void;
}

/** Finds entries that Redis names: in the ledger as it is now, in the outbox, or in the ledger a moment later. */
class Entries {
  readonly #audit: StoresAudit;
  #waiting: Question[] = [];

  constructor(audit: StoresAudit) {
    this.#audit = audit;
  }

  ask(question: Question): void {
    this.#waiting.push(question);
  }

  /** There are enough questions to be worth the way. */
  get isDue(): boolean {
    return this.#waiting.length >= ENTRIES_AT_A_TIME;
  }

  async answerAll(): Promise<void> {
    let waiting = this.#waiting;
    this.#waiting = [];
    waiting = await this.#fromLedger(waiting);
    waiting = await this.#fromOutboxes(waiting);
    // What left the outbox since is in the ledger now.
    waiting = await this.#fromLedger(waiting);
    for (const question of waiting) question.answer(undefined);
  }

  async #fromLedger(questions: Question[]): Promise<Question[]> {
    if (questions.length === 0) return questions;
    const ids = [...new Set(questions.map((question) => question.id))].filter((id) => id < 1n << 63n);
    const entries = new Map((await this.#audit.postgres.entries(ids)).map((entry) => [entry.id, entry]));
    return answered(questions, entries);
  }

  async #fromOutboxes(questions: Question[]): Promise<Question[]> {
    const byCell = new Map<number, Question[]>();
    for (const question of questions) {
      const asked = byCell.get(question.cell);
      if (asked === undefined) byCell.set(question.cell, [question]);
      else asked.push(question);
    }
    const left: Question[] = [];
    for (const [cell, asked] of byCell) left.push(...(await this.#fromOutbox(cell, asked)));
    return left;
  }

  async #fromOutbox(cell: number, questions: Question[]): Promise<Question[]> {
    const { redis } = this.#audit;
    const end = await redis.outboxEnd(cell);
    if (end === undefined) return questions;
    const ids = questions.map((question) => question.id);
    const oldest = ids.reduce((least, id) => (id < least ? id : least));
    const wanted = new Set(ids);
    const entries = new Map<bigint, Entry>();
    for (let after = streamIdBefore(oldest); entries.size < wanted.size; ) {
      const page = await redis.outbox(cell, after, end);
      if (page.length === 0) break;
      after = page.at(-1)!.streamId;
      for (const { records } of page) {
        for (const record of records ?? []) {
          if (wanted.has(record.id))
            entries.set(record.id, { ...record, isAdjustment: record.kind === 'adjustment' });
        }
      }
    }
    return answered(questions, entries);
  }
}

/** Answers what can be answered; gives the rest. */
function answered(questions: readonly Question[], entries: ReadonlyMap<bigint, Entry>): Question[] {
  return questions.filter((question) => {
    const entry = entries.get(question.id);
    if (entry === undefined) return true;
    question.answer(entry);
    return false;
  });
}

/** Every player in Redis against its newest entry; every player of the ledger is in Redis. */
export async function auditPlayers(audit: StoresAudit, players: PlayerTable, statuses: SeenStatuses) {
  const { facts, findings, redis } = audit;
  const entries = new Entries(audit);
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
      if (audit.communal.isDue) await audit.communal.settle();
      audit.onProgress('players', count, total);
    }
  }
  await entries.answerAll();
  for (const [slot, partnerId, playerId] of players.names()) {
    if (players.seen[slot] === 1) continue;
    findings.found(
      'balances',
      'a player of the ledger is not in Redis',
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
  entries: Entries,
  cell: number,
  field: Buffer,
  value: Buffer,
): void {
  const colon = field.indexOf(0x3a);
  const partnerId = Number(field.toString('latin1', 0, colon));
  const playerId = field.toString('utf8', colon + 1);
  const where = { cell, partner: partnerId, player: playerId };
  if (colon < 1 || !isPlayer(value) || !communal.player(cell, partnerId, playerId, value)) {
    const problem = "Redis's record of the player can't be read";
    findings.found('balances', problem, { ...where, field: field.toString() });
    return;
  }
  const { newestEntryId: id, balanceMicros, entries: entryNumber, createdAtMs } = readPlayer(value);
  const outcomeCode = value.readUInt16LE(8);
  const at = { ...where, entry: id.toString() };
  const compare = (entry: Pick<Entry, 'balanceMicros' | 'entryNumber' | 'outcomeCode'>): void => {
    if (entry.balanceMicros !== balanceMicros) {
      findings.found(
        'balances',
        "Redis's balance is not that of the player's newest entry",
        at,
        entry.balanceMicros,
        balanceMicros,
      );
    }
    if (entry.entryNumber !== entryNumber) {
      findings.found(
        'balances',
        'Redis counts another number of entries of the player',
        at,
        entry.entryNumber,
        entryNumber,
      );
    }
    if (entry.outcomeCode !== outcomeCode) {
      findings.found(
        'balances',
        "Redis's outcome code is not that of the player's newest entry",
        at,
        entry.outcomeCode,
        outcomeCode,
      );
    }
  };
  const ownCell = facts.partnerCells.get(partnerId);
  if (ownCell !== undefined && ownCell !== cell) {
    findings.found('balances', 'Redis has the player in another cell', at, ownCell, cell);
    return;
  }
  const slot = players.find(partnerId, playerId);
  if (slot !== undefined) {
    players.seen[slot] = 1;
    if (players.firstMs[slot] !== createdAtMs) {
      const problem = "Redis's time of the player's first entry is another";
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
        const problem = "the player's newest entry in Redis is another player's";
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

/** Every requestId of the ledger that must bind does, to its entry; whatever binds leads to an entry. */
export async function auditRequests(audit: StoresAudit, pass: LedgerPass): Promise<void> {
  const { facts, findings, redis } = audit;
  const ttlMs = facts.idempotencyTtlSeconds * 1000;
  const periodNow = async (): Promise<number> => Math.floor((await redis.timeMs()) / ttlMs);
  const entries = new Entries(audit);
  const spinIds = new SpinIds(facts.spinIdKey);
  let count = 0;
  const current = await periodNow();
  const periods = [current - 1, current];
  let total = 0;
  for (const period of periods) {
    for (let cell = 0; cell < facts.cells; cell++) total += (await redis.counts(cell, period)).bound;
  }
  for (const period of periods) {
    for (let cell = 0; cell < facts.cells; cell++) {
      for await (const page of redis.bound(cell, period)) {
        for (const [field, value] of page) {
          count++;
          auditBound(audit, pass, entries, { cell, period, ttlMs }, field, value);
        }
        if (entries.isDue) await entries.answerAll();
        if (audit.communal.isDue) await audit.communal.settle();
        audit.onProgress('requests', count, total);
      }
    }
  }
  await entries.answerAll();
  findings.looked('requests', 'requestIds bound in Redis', count);

  // Whatever the ledger has of the periods that still bind, as of now.
  const oldest = (await periodNow()) - 1;
  for (const [period, table] of pass.requests) {
    if (period < oldest) continue;
    for (const at of table.records()) {
      if (table.seen[at / REQUEST_WORDS] === 1) continue;
      const id = idOf(table.words[at + REQUEST.idHigh]!, table.words[at + REQUEST.idLow]!);
      if (!findings.lists('requests')) {
        findings.found('requests', '', {});
        continue;
      }
      const [entry] = await audit.postgres.entries([id]);
      findings.found(
        'requests',
        'a requestId of the ledger is not bound in Redis',
        {
          cell: cellOfId(id),
          period,
          entry: id.toString(),
          ...(entry === undefined
            ? {}
            : {
                spin: spinIds.encodeOne(id, entry.partnerId),
                partner: entry.partnerId,
                player: entry.playerId,
                game: entry.gameId,
                request: entry.requestId ?? '-',
              }),
        },
        `bound to entry ${id}`,
        'no record',
      );
    }
  }
}

function auditBound(
  { findings, communal }: StoresAudit,
  pass: LedgerPass,
  entries: Entries,
  { cell, period, ttlMs }: { cell: number; period: number; ttlMs: number },
  field: Buffer,
  value: Buffer,
): void {
  const where = { cell, period, field: field.toString('hex') };
  // An adjustment that was refused: it stands for no entry.
  if (field.length === 16 && value.length === REFUSED_BYTES) return;
  if (field.length !== 16 || value.length < BOUND_BYTES) {
    findings.found('requests', "what a requestId is bound to can't be read", where);
    return;
  }
  const id = readId(value, 0);
  const at = { ...where, entry: id.toString() };
  if (communal.bound(cell, id, value.subarray(BOUND_BYTES), at)) return;
  const high = value.readUInt32LE(4);
  const low = value.readUInt32LE(0);
  // Bound in an earlier period than its entry's, it would be forgotten before its time.
  const entryMs = timeOf(high, low);
  const entryPeriod = Math.floor(entryMs / ttlMs);
  if (period < entryPeriod && entryMs - entryPeriod * ttlMs > AHEAD_MS_MAX) {
    const problem = 'the requestId is bound in an earlier period than its entry';
    findings.found('requests', problem, at, entryPeriod, period);
  }
  const hashed = [field.readUInt32LE(0), field.readUInt32LE(4), field.readUInt32LE(8)] as const;
  for (const table of pass.requests.values()) {
    const place = table.find(...hashed);
    if (place < 0) continue;
    const { words } = table;
    if (words[place + REQUEST.idHigh] !== high || words[place + REQUEST.idLow] !== low) continue;
    table.seen[place / REQUEST_WORDS] = 1;
    const expected = [
      words[place + REQUEST.balanceHigh]!,
      words[place + REQUEST.balanceLow]!,
      words[place + REQUEST.game]!,
      words[place + REQUEST.player]!,
      words[place + REQUEST.codeAndPlayer]!,
    ];
    const found = [
      value.readUInt32LE(14),
      value.readUInt32LE(10),
      value.readUInt32LE(18),
      value.readUInt32LE(22),
      ((value.readUInt16LE(8) << 16) | value.readUInt16LE(26)) >>> 0,
    ];
    if (expected.every((word, i) => word === found[i])) return;
    // What differs is told by the entry itself.
    break;
  }
  entries.ask({
    cell,
    id,
    answer: (entry) => compareBound(findings, at, field, value, entry),
  });
}

function compareBound(
  findings: Findings,
  at: Place,
  field: Buffer,
  value: Buffer,
  entry: Entry | undefined,
): void {
  if (entry === undefined) {
    findings.found(
      'requests',
      'a requestId is bound to an entry that is neither in the ledger nor in the outbox',
      at,
    );
    return;
  }
  const { isAdjustment, partnerId, playerId, gameId, requestId } = entry;
  const where = {
    ...at,
    partner: partnerId,
    player: playerId,
    game: gameId,
    ...(requestId === null ? {} : { request: requestId }),
  };
  const key =
    requestId === null
      ? 'none'
      : createHash('sha256')
          .update(`${partnerId}${isAdjustment ? '+' : ':'}${requestId}`)
          .digest('hex')
          .slice(0, 32);
  if (key !== field.toString('hex')) {
    findings.found(
      'requests',
      'a requestId is bound to an entry that has another one',
      where,
      field.toString('hex'),
      key,
    );
    return;
  }
  const code = value.readUInt16LE(8);
  if (code !== entry.outcomeCode) {
    findings.found(
      'requests',
      'the bound outcome code is not that of the entry',
      where,
      entry.outcomeCode,
      code,
    );
  }
  const balance = readSafeInt64(value, 10);
  if (balance !== entry.balanceMicros) {
    findings.found(
      'requests',
      'the bound balance is not that of the entry',
      where,
      entry.balanceMicros,
      balance,
    );
  }
  const [first, a, b] = isAdjustment
    ? adjustmentHash(playerId, entry.creditMicros)
    : [gameId, ...playerHash(playerId)];
  const fingerprint = Buffer.alloc(10);
  fingerprint.writeUInt32LE(first, 0);
  fingerprint.writeUInt32LE(a, 4);
  fingerprint.writeUInt16LE(b, 8);
  const bound = value.subarray(CORE_BYTES, BOUND_BYTES);
  if (!bound.equals(fingerprint)) {
    findings.found(
      'requests',
      'the bound fingerprint is not that of the request',
      where,
      fingerprint.toString('hex'),
      bound.toString('hex'),
    );
  }
}

/** Counters and outboxes, cell by cell. */
export async function auditCells(audit: StoresAudit): Promise<void> {
  const { facts, findings, redis } = audit;
  let outboxEntries = 0;
  let games = 0;
  for (let cell = 0; cell < facts.cells; cell++) {
    await auditCell(audit, cell, await redis.serverId(cell));
    const before = new Map<number, number>();
    for await (const [field, game] of redis.games(cell)) {
      if (game === undefined)
        findings.found('indices', "Redis's record of the game can't be read", { cell, game: field });
      else before.set(Number(field), game.nextIndex);
    }
    // What was dealt up to here is in the outbox when it is read now, or booked; nothing can be below it afterwards.
    const accounted = await new OutboxWalk(audit, cell).walk();
    outboxEntries += accounted.entries;
    for (const gameId of new Set([...before.keys(), ...accounted.next.keys()])) {
      games++;
      const next = accounted.next.get(gameId) ?? 0;
      const counter = before.get(gameId) ?? 0;
      const at = { cell, game: gameId };
      if (counter > next) {
        const problem = "Redis's counter is ahead of what is booked and what waits in the outbox";
        findings.found('indices', problem, at, next, counter);
        continue;
      }
      const now = (await redis.game(cell, gameId))?.nextIndex ?? 0;
      if (now < next) {
        const problem = "Redis's counter is behind what is booked and what waits in the outbox";
        findings.found('indices', problem, at, next, now);
      }
    }
    audit.onProgress('cells', cell + 1, facts.cells);
  }
  findings.looked('indices', 'counters in Redis', games);
  findings.looked('cursors', 'entries in the outboxes', outboxEntries);
}

/** What a cell's two records disagree about. */
type Disagreement = readonly [
  problem: string,
  at: Place,
  expected?: string | bigint,
  found?: string | bigint,
];

/** Compares the cell's records; what a change under way may explain is looked at again. */
async function auditCell(
  { findings, postgres, redis }: StoresAudit,
  cell: number,
  serverId: string,
): Promise<void> {
  let disagreements: Disagreement[] = [];
  for (let attempt = 0; attempt < TRIES; attempt++) {
    if (attempt > 0) await pause();
    // Redis is asked between two looks at Postgres: it may be neither behind the first nor ahead of the second.
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
  // No worker has come to it yet.
  if (epoch === undefined && newestEntryId === undefined && cursorId === 0n) return list;
  const expected = cellToken(token, serverId);
  if (epoch !== expected) {
    const problem =
      epoch?.startsWith(`${token}:`) === true
        ? 'no worker has found the cell fit to be dealt from in this run of Redis'
        : "Redis's epoch is not the cell's";
    list.push([problem, at, expected, epoch ?? 'none']);
  }
  if (newestEntryId === undefined ? cursorId > 0n : newestEntryId < cursorId) {
    list.push(["Redis's newest entry is below the cursor", at, cursorId, newestEntryId ?? 'none']);
  }
  if (booked !== undefined && booked.id > cursorAfter) {
    list.push(['Redis takes an entry above the cursor for booked', at, cursorAfter, booked.id]);
  }
  if (booked !== undefined && added !== undefined && booked.id === newestEntryId) {
    if (!areEqual(booked.totals, added)) {
      const problem = 'all is booked, but Redis counts otherwise what was added and what was booked';
      list.push([problem, at, totalsText(added), totalsText(booked.totals)]);
    }
  }
  return list;
}

const areEqual = (a: Totals, b: Totals): boolean => a.entries === b.entries && a.bytes === b.bytes;
const totalsText = ({ entries, bytes }: Totals): string => `${entries} entries, ${bytes} bytes`;

/**
 * Reads the outbox of a cell from the cursor to its present end: ids go up, each game's indices go on where the ledger
 * stands, and so do the totals. The flusher may overtake the reading: then it begins again at the new cursor, as all
 * before that is booked.
 */
class OutboxWalk {
  readonly #audit: StoresAudit;
  readonly #cell: number;
  /** By game the next index after all that is booked or was read. */
  #next = new Map<number, number>();
  /** Id of the last entry that was read. */
  #position = 0n;
  /** What was added up to there, where that is known. */
  #totals: Totals | undefined;
  #entries = 0;
  #counted = 0n;

  constructor(audit: StoresAudit, cell: number) {
    this.#audit = audit;
    this.#cell = cell;
  }

  async walk(): Promise<{ entries: number; next: Map<number, number> }> {
    const { postgres, redis } = this.#audit;
    const cell = this.#cell;
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

  /** False where the flusher was faster. */
  async #readFrom(cursorId: bigint, end: string): Promise<boolean> {
    const { postgres, redis } = this.#audit;
    const { booked } = await redis.cell(this.#cell);
    if (booked?.id === cursorId) this.#totals = booked.totals;
    for (let after = streamIdOf(cursorId); ; ) {
      const page = await redis.outbox(this.#cell, after, end);
      if ((await postgres.cursor(this.#cell)) > this.#position) return false;
      if (page.length === 0) return true;
      after = page.at(-1)!.streamId;
      for (const batch of page) this.#batch(batch);
    }
  }

  #batch({ streamId, records, bytes, before, isCounted }: OutboxPage): void {
    const at = { cell: this.#cell, streamId };
    if (records === undefined || before === undefined) {
      this.#found("an outbox entry can't be read", at);
      this.#totals = undefined;
      return;
    }
    if (this.#totals !== undefined && !areEqual(this.#totals, before)) {
      const problem = 'the totals of an outbox entry do not follow from what comes before it';
      this.#found(problem, at, totalsText(this.#totals), totalsText(before));
    }
    this.#totals = isCounted
      ? { entries: before.entries + records.length, bytes: before.bytes + bytes }
      : before;
    for (const record of records) this.#record(record, at);
    const last = streamIdOf(records.at(-1)!.id);
    if (last !== streamId) {
      this.#found('an outbox entry does not bear the id of its last ledger entry', at, last, streamId);
    }
  }

  #record(record: OutboxRecord, where: Place): void {
    const { id, partnerId, playerId, gameId, outcomeIndex } = record;
    const at = { ...where, entry: id.toString(), partner: partnerId, player: playerId };
    if (id <= this.#position) {
      const problem = 'an entry of the outbox is not above what comes before it';
      this.#found(problem, at, `above ${this.#position}`, id);
    } else {
      this.#position = id;
    }
    if (cellOfId(id) !== this.#cell) {
      this.#found("an entry of the outbox has another cell's id", at, this.#cell, cellOfId(id));
    }
    if (id > this.#counted) {
      this.#counted = id;
      this.#entries++;
    }
    if (record.kind !== 'spin' && record.kind !== 'roundDeal') return;
    const expected = this.#next.get(gameId) ?? 0;
    if (outcomeIndex !== expected) {
      const problem = 'the outbox does not go on where the ledger stands';
      this.#found(problem, { ...at, game: gameId, index: outcomeIndex }, expected, outcomeIndex);
    }
    this.#next.set(gameId, outcomeIndex + 1);
  }

  #found(
    problem: string,
    at: Place,
    expected?: string | number | bigint,
    found?: string | number | bigint,
  ): void {
    this.#audit.findings.found('cursors', problem, at, expected, found);
  }
}
