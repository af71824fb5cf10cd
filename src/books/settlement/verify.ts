/**
 * Verifies settlement reports against their hashes and against the ledger. The newest revision of each day is
 * computed from the ledger's rows, not from the daily totals from which reports are made. A report rewritten
 * with a valid hash is detected by the next report's previousHash, and by the audit log, which has every
 * hash.
 */

import { DAY_MS, dayOf, startOf } from '../../domain/days.js';
import { entryTimeMs, firstIdAt } from '../../domain/entryId.js';
import { ExactNumber, type JsonNumber, parseExactJson } from '../../domain/exactJson.js';
import type { EntryTotal } from '../../domain/ledgerDay.js';
import {
  composeReport,
  type GameFigures,
  type OpenRounds,
  type SettlementReportBody,
  seal,
} from '../../domain/settlement.js';
import type { Sql } from '../../postgres/connection.js';
import {
  archivedSums,
  type LedgerSums,
  type Link,
  NO_GAME_SUMS,
  type ReportText,
  type SettlementSnapshot,
  withSettlementSnapshot,
} from './settlementReads.store.js';

export interface Difference {
  readonly partnerId: number;
  readonly date: string;
  /** Revision that differs. Absent if the difference does not concern a certain revision. */
  readonly revision?: number;
  readonly problem: string;
  readonly expected: string | number | null;
  readonly found: string | number | null;
}

export interface Verification {
  readonly reports: number;
  readonly partners: number;
  readonly days: number;
  readonly rows: number;
  readonly seconds: number;
  readonly differences: readonly Difference[];
}

const NO_SUMS: LedgerSums = { games: new Map(), adjustmentsMicros: 0n, rows: 0 };

export interface VerifyOptions {
  readonly onProgress?: (days: number, total: number) => void;
  /**
   * Returns the totals of a dropped day from the files of its archive. If this function is absent, the totals
   * recorded when the day was archived are used.
   */
  readonly archive?: (day: string) => Promise<readonly EntryTotal[]>;
}

/** @param partnerId limits the check to one partner; undefined means all partners */
export async function verifySettlements(
  sql: Sql,
  partnerId: number | undefined,
  { onProgress = () => {}, archive }: VerifyOptions = {},
): Promise<Verification> {
  const started = performance.now();
  return withSettlementSnapshot(sql, partnerId, async (snapshot) => {
    const differences: Difference[] = [];
    const { links } = snapshot;
    compareWithAuditLog(snapshot, differences);
    findGaps(snapshot, differences);
    const previous = previousHashes(links);
    const newest = new Map(links.map((link) => [dayKey(link), link.revision]));
    const byKey = new Map(links.map((link) => [reportKey(link), link]));
    const reported = new Set(links.map(dayKey));
    /** Newest day with a complete report. Later days may not be settled yet. */
    const settledTo = links.reduce(
      (last, { date, isComplete }) => (isComplete && date > last ? date : last),
      '',
    );
    const days = daysToCheck(snapshot, settledTo);
    let rows = 0;
    for (const [index, date] of days.entries()) {
      onProgress(index, days.length);
      const ids = { from: firstIdAt(startOf(date)), to: firstIdAt(startOf(date) + DAY_MS) };
      const onRecord = snapshot.dropped.get(date);
      const sums =
        onRecord === undefined
          ? await snapshot.sums(ids)
          : archivedSums(archive === undefined ? onRecord : await archive(date), partnerId);
      for (const { rows: added } of sums.values()) rows += added;
      for (const [id, { games, adjustmentsMicros }] of sums) {
        const found = { partnerId: id, date };
        if (date > settledTo || reported.has(dayKey(found)) || (games.size === 0 && adjustmentsMicros === 0n))
          continue;
        const problem = 'the ledger has money of the day, but there is no report';
        differences.push({ ...found, problem, expected: 'a report', found: null });
      }
      for (const each of await snapshot.texts(date)) {
        const link = byKey.get(reportKey({ ...each, date }))!;
        const differ = (problem: string, expected: string | number | null, found: string | number | null) =>
          differences.push({
            partnerId: link.partnerId,
            date,
            revision: link.revision,
            problem,
            expected,
            found,
          });
        const report = sealedReport(each, link, differ);
        if (report === undefined) continue;
        const before = previous.get(reportKey(link))!;
        if (report.previousHash !== before) {
          differ('previousHash is not the hash of the previous report', before, report.previousHash);
        }
        if (report.ledgerFrom !== String(ids.from)) {
          differ('ledgerFrom is not the first entry id of the day', String(ids.from), report.ledgerFrom);
        }
        if (link.isComplete && report.ledgerTo !== String(ids.to)) {
          differ('ledgerTo is not the first entry id of the next day', String(ids.to), report.ledgerTo);
        }
        // Only the newest revision is compared with the ledger, because an earlier revision may have been
        // wrong and corrected.
        if (newest.get(dayKey(link)) !== link.revision) continue;
        const covered = link.isComplete
          ? sums
          : await snapshot.sums({ from: ids.from, to: idOf(report.ledgerTo, ids.from) }, link.partnerId);
        const open = await snapshot.openRounds(link.partnerId, idOf(report.ledgerTo, ids.to));
        compareWithLedger(report, covered.get(link.partnerId) ?? NO_SUMS, open, differ);
      }
    }
    return {
      reports: links.length,
      partners: new Set(links.map((link) => link.partnerId)).size,
      days: days.length,
      rows,
      seconds: (performance.now() - started) / 1000,
      differences,
    };
  });
}

/** Returns the days that have reports, and those of the ledger up to the newest settled day, oldest first. */
function daysToCheck({ links, dropped, firstEntryId }: SettlementSnapshot, settledTo: string): string[] {
  const days = new Set(links.map(({ date }) => date));
  for (const day of dropped.keys()) if (day <= settledTo) days.add(day);
  if (firstEntryId !== undefined && settledTo !== '')
    for (let ms = startOf(dayOf(entryTimeMs(firstEntryId))); ms <= startOf(settledTo); ms += DAY_MS)
      days.add(dayOf(ms));
  return [...days].sort();
}

type Differ = (problem: string, expected: string | number | null, found: string | number | null) => void;
type Named = Pick<Link, 'partnerId' | 'date' | 'revision'>;

const dayKey = ({ partnerId, date }: Pick<Named, 'partnerId' | 'date'>): string =>
  `settlement:${partnerId}:${date}`;
const reportKey = (named: Named): string => `${dayKey(named)}:${named.revision}`;
const idOf = (text: string, fallback: bigint): bigint => (/^\d{1,20}$/.test(text) ? BigInt(text) : fallback);

/** Parses a report and checks its hash and form. Returns undefined if it can't be parsed. */
function sealedReport({ text }: ReportText, link: Link, differ: Differ): SettlementReportBody | undefined {
  let report: SettlementReportBody;
  let sealed: { text: string; integrityHash: string };
  try {
    report = parseExactJson(text) as SettlementReportBody;
    sealed = seal(report);
  } catch (error) {
    differ('the report is not JSON with a canonical form', null, String(error));
    return undefined;
  }
  if (sealed.text !== text) differ('the report is not stored in its canonical form', sealed.text, text);
  if (sealed.integrityHash !== link.integrityHash) {
    differ('integrityHash is not the hash of the report', sealed.integrityHash, link.integrityHash);
  }
  if (report.reportDate !== link.date)
    differ('reportDate differs from the day of its row', link.date, report.reportDate);
  if (report.revision !== link.revision) {
    differ('revision differs from the revision of its row', link.revision, report.revision);
  }
  return report;
}

/**
 * Returns, for each report, the hash of the newest revision of its partner's nearest earlier day, as of the
 * time when the report was generated.
 */
function previousHashes(links: readonly Link[]): Map<string, string | null> {
  const previous = new Map<string, string | null>();
  /** Days of each partner that have a report, in order, and the newest hash of each day. */
  const made = new Map<number, { days: string[]; newest: Map<string, string> }>();
  for (const link of links) {
    let of = made.get(link.partnerId);
    if (of === undefined) {
      of = { days: [], newest: new Map() };
      made.set(link.partnerId, of);
    }
    const before = of.days.findLast((day) => day < link.date);
    previous.set(reportKey(link), before === undefined ? null : of.newest.get(before)!);
    if (!of.newest.has(link.date)) {
      const at = before === undefined ? 0 : of.days.lastIndexOf(before) + 1;
      of.days.splice(at, 0, link.date);
    }
    of.newest.set(link.date, link.integrityHash);
  }
  return previous;
}

/**
 * Verifies that every report is in the audit log with its hash and status, and that no report of the audit
 * log is missing.
 */
function compareWithAuditLog({ links, witnesses }: SettlementSnapshot, differences: Difference[]): void {
  const witnessed = new Map(witnesses.map((witness) => [`${witness.subject}:${witness.revision}`, witness]));
  for (const link of links) {
    const { partnerId, date, revision } = link;
    const witness = witnessed.get(reportKey(link));
    witnessed.delete(reportKey(link));
    const differ = (problem: string, expected: string | null, found: string): void => {
      if (expected !== found) differences.push({ partnerId, date, revision, problem, expected, found });
    };
    if (witness === undefined) {
      differ('the report is not in the audit log', null, link.integrityHash);
      continue;
    }
    differ('integrityHash differs from the audit log', witness.integrityHash, link.integrityHash);
    differ('reportStatus differs from the audit log', witness.status, link.status);
  }
  for (const { subject, revision, integrityHash } of witnessed.values()) {
    const [, partnerId, date] = subject.split(':');
    differences.push({
      partnerId: Number(partnerId),
      date: date ?? '',
      revision,
      problem: 'a report of the audit log is missing',
      expected: integrityHash,
      found: null,
    });
  }
}

/**
 * Verifies that each day from a partner's first to its last complete report has a complete report, and that
 * revisions are numbered 1, 2, 3 and so on.
 */
function findGaps({ links, firstDays }: SettlementSnapshot, differences: Difference[]): void {
  const complete = new Map<number, Set<string>>();
  const revisions = new Map<string, number>();
  for (const link of links) {
    const { partnerId, date, revision, isComplete } = link;
    const expected = (revisions.get(dayKey(link)) ?? 0) + 1;
    if (revision !== expected) {
      const problem = 'the previous revision of this report is missing';
      differences.push({ partnerId, date, revision, problem, expected, found: revision });
    }
    revisions.set(dayKey(link), revision);
    if (!isComplete) continue;
    let days = complete.get(partnerId);
    if (days === undefined) {
      days = new Set();
      complete.set(partnerId, days);
    }
    days.add(date);
  }
  for (const [partnerId, days] of complete) {
    const dates = [...days].sort();
    const first = firstDays.get(partnerId) ?? dates[0]!;
    const last = dates.at(-1)!;
    for (let ms = startOf(first); ms <= startOf(last); ms += DAY_MS) {
      const date = dayOf(ms);
      if (days.has(date)) continue;
      const problem = 'the day has no complete report, although a later day has one';
      differences.push({ partnerId, date, problem, expected: 'a report', found: null });
    }
  }
}

const plain = (value: JsonNumber | null): string | number | null =>
  value instanceof ExactNumber ? value.text : value;
const COMPARED = ['spins', 'wageredUsd', 'paidOutUsd', 'ggrUsd', 'actualRtp', 'communityBonusUsd'] as const;

/** Computes a report from the ledger's rows and compares every figure. */
function compareWithLedger(
  report: SettlementReportBody,
  sums: LedgerSums,
  open: OpenRounds,
  differ: Differ,
): void {
  const listed = new Map(report.gameBreakdown.map((row) => [row.gameConfigId, row]));
  const names = [...new Set([...listed.keys(), ...sums.games.keys()])].sort((a, b) => a - b);
  const games = names.map((gameConfigId): GameFigures => {
    const { configName, displayName, gameType, certifiedRtp } = listed.get(gameConfigId) ?? {
      configName: '',
      displayName: '',
      gameType: '',
      certifiedRtp: null,
    };
    const booked = sums.games.get(gameConfigId) ?? NO_GAME_SUMS;
    return { gameConfigId, configName, displayName, gameType, certifiedRtp, ...booked };
  });
  const expected = composeReport(report, { games, adjustmentsMicros: sums.adjustmentsMicros, open });
  for (const name of [
    'totalSpins',
    'totalWageredUsd',
    'totalPaidOutUsd',
    'netPositionUsd',
    'ggrUsd',
    'communityBonusUsd',
    'adjustmentsUsd',
    ...(report.openRounds === undefined ? [] : (['openRounds', 'openWageredUsd'] as const)),
  ] as const) {
    if (String(report[name]) !== String(expected[name]))
      differ(`${name} differs from the ledger`, plain(expected[name]!), plain(report[name]!));
  }
  for (const row of expected.gameBreakdown) {
    const found = listed.get(row.gameConfigId);
    for (const name of COMPARED) {
      // Reports of earlier versions lack communityBonusUsd, because there was no communal bonus; the value is
      // then 0.
      const value = found?.[name] ?? (name === 'communityBonusUsd' && found !== undefined ? 0 : null);
      const expectedValue = row[name] ?? null;
      if (found !== undefined && String(value) === String(expectedValue)) continue;
      const problem = `${name} of game ${row.gameConfigId} differs from the ledger`;
      differ(problem, plain(expectedValue), plain(value));
    }
  }
}
