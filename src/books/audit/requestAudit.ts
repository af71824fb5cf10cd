/** Compares the requestIds bound in Redis with the ledger, in both directions. */
import { createHash } from 'node:crypto';
import { readId, readSafeInt64 } from '../../domain/layout.js';
import { BOUND, CORE } from '../../domain/layouts.js';
import { SpinIds } from '../../domain/spinId.js';
import { segmentNumbers } from '../../engine/redis/segmentRecords.js';
import type { AuditedEntry } from './auditReads.store.js';
import { cellOf, idOf } from './ids.js';
import { LedgerEntryLookUp } from './ledgerEntryLookUp.js';
import type { Findings, Place } from './report.js';
import type { RequestCheck } from './requestCheck.js';
import type { StoresAudit } from './storeAudit.js';
import { adjustmentHash, playerHash, REQUEST, REQUEST_WORDS } from './tables.js';

/** Tail of the stored reply of a forced spin. The audit defines it independently of the engine. */
const FORCED_MARK = Buffer.from([1]);
const NOTHING = Buffer.alloc(0);

/**
 * Verifies that every requestId of the ledger that must still bind is bound to its entry in Redis, and that
 * every bound requestId belongs to an entry. RequestIds that were released to Postgres are compared with the
 * runs in the snapshot.
 */
export async function auditRequests(
  audit: StoresAudit,
  pass: Pick<RequestCheck, 'periods' | 'forced'>,
): Promise<void> {
  const { facts, findings, redis } = audit;
  const entries = new LedgerEntryLookUp(audit);
  const spinIds = new SpinIds(facts.spinIdKey);
  let count = 0;
  const held: Held[] = [];
  let total = 0;
  for (let cell = 0; cell < facts.cells; cell++) {
    const segments = await redis.segments(cell);
    if (segments === undefined) continue;
    for (const segment of segmentNumbers(segments)) {
      total += (await redis.counts(cell, segment)).bound;
      held.push({ cell, segment, closedAt: segments.closed[segment - segments.first] });
    }
  }
  // If the open segment was closed during the audit, a new open segment follows it, so the next segment is
  // read as well.
  for (const [cell, segment] of new Map(held.map((each) => [each.cell, each.segment + 1])))
    held.push({ cell, segment, closedAt: undefined });
  for (const where of held) {
    for await (const page of redis.bound(where.cell, where.segment)) {
      for (const [field, value] of page) {
        count++;
        auditBound(audit, pass, entries, where, field, value);
      }
      if (entries.isDue) await entries.answerAll();
      if (audit.communal.isDue) await audit.communal.compare();
      audit.onProgress('requests', count, total);
    }
  }
  await entries.answerAll();
  findings.looked('requests', 'requestIds bound in Redis', count);

  // The audit must have seen in Redis every requestId of the ledger that is not released yet. The position up
  // to which ids are released is read only now.
  const released = await Promise.all(
    Array.from({ length: facts.cells }, async (_, cell) => (await redis.segments(cell))?.releasedId ?? 0n),
  );
  for (const table of pass.periods.values()) {
    for (const at of table.records()) {
      if (table.seen[at / REQUEST_WORDS] === 1) continue;
      const id = idOf(table.words[at + REQUEST.idHigh]!, table.words[at + REQUEST.idLow]!);
      if (id <= released[cellOf(id)]!) continue;
      if (!findings.lists('requests')) {
        findings.found('requests', '', {});
        continue;
      }
      const [entry] = await audit.postgres.entries([id]);
      findings.found(
        'requests',
        'a requestId of the ledger is not bound in Redis',
        {
          cell: cellOf(id),
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

/** Segment of request ids that Redis holds. */
interface Held {
  readonly cell: number;
  readonly segment: number;
  /** Newest entry of the cell when the segment was closed; undefined if the segment is open. */
  readonly closedAt: bigint | undefined;
}

function auditBound(
  { facts, findings, communal }: StoresAudit,
  pass: Pick<RequestCheck, 'periods' | 'forced'>,
  entries: LedgerEntryLookUp,
  { cell, segment, closedAt }: Held,
  field: Buffer,
  value: Buffer,
): void {
  const where = { cell, segment, field: field.toString('hex') };
  if (field.length !== 16 || value.length < BOUND.bytes) {
    findings.found('requests', "the binding of a requestId can't be read", where);
    return;
  }
  const id = readId(value, 0);
  // An idle cell releases expired requestIds late, so their entries may have been dropped already.
  if (id < facts.boundary.fromId) return;
  const at = { ...where, entry: id.toString() };
  const tail = value.subarray(BOUND.bytes);
  const isMarked = tail.equals(FORCED_MARK);
  if (communal.bound(cell, id, isMarked ? NOTHING : tail, at)) return;
  const high = value.readUInt32LE(4);
  const low = value.readUInt32LE(0);
  // A requestId in a segment that is already closed would be released too early.
  if (closedAt !== undefined && id > closedAt) {
    const problem = 'the requestId is bound in a segment that was closed before its entry';
    findings.found('requests', problem, at, `closed at ${id} or later`, `closed at ${closedAt}`);
  }
  const hashed = [field.readUInt32LE(0), field.readUInt32LE(4), field.readUInt32LE(8)] as const;
  for (const table of pass.periods.values()) {
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
    if (pass.forced.has(id) === isMarked && expected.every((word, i) => word === found[i])) return;
    // The stored reply differs from the values of the ledger pass. compareBound reads the ledger entry to
    // find the differing field.
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
  entry: AuditedEntry | undefined,
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
    findings.found('requests', 'the bound entry has another requestId', where, field.toString('hex'), key);
    return;
  }
  const differs = (what: string, expected: string | number, found: string | number): void => {
    if (found !== expected)
      findings.found('requests', `the bound ${what} differs from the entry`, where, expected, found);
  };
  differs('outcome code', entry.outcomeCode, value.readUInt16LE(8));
  differs('balance', entry.balanceMicros, readSafeInt64(value, 10));
  if (value.subarray(BOUND.bytes).equals(FORCED_MARK) !== entry.isForced) {
    const problem = entry.isForced
      ? 'the stored reply of a forced spin is not marked as forced'
      : 'the stored reply of a drawn spin is marked as forced';
    findings.found('requests', problem, where);
  }
  const expected = fingerprintOf(entry).toString('hex');
  const bound = value.toString('hex', CORE.bytes, BOUND.bytes);
  if (bound !== expected) {
    const problem = 'the bound fingerprint does not match the request';
    findings.found('requests', problem, where, expected, bound);
  }
}

function fingerprintOf({ isAdjustment, playerId, creditMicros, gameId }: AuditedEntry): Buffer {
  const [first, a, b] = isAdjustment
    ? adjustmentHash(playerId, creditMicros)
    : [gameId, ...playerHash(playerId)];
  const fingerprint = Buffer.alloc(10);
  fingerprint.writeUInt32LE(first, 0);
  fingerprint.writeUInt32LE(a, 4);
  fingerprint.writeUInt16LE(b, 8);
  return fingerprint;
}
