/**
 * `spindle audit`: runs the checks of src/books/audit/audit.ts, shows their progress, and prints their
 * findings.
 */

import { audit } from '../books/audit/audit.js';
import type { AuditReport, Check, Violation } from '../books/audit/report.js';
import { FormatError } from '../domain/formats.js';
import { installation } from '../engine/recovery/installation.store.js';
import type { RedisNodes } from '../engine/redis/nodes.js';
import { openNodes } from '../engine/redis/openNodes.js';
import { type StoreUrls, whole } from './command.js';
import { openPostgres } from './openPostgres.store.js';
import { Progress } from './progress.js';

const LIMIT = 100;
const MOVES_WITHIN_MS = 120_000;
/** Maximum wait for closing the connections, in ms, because a hanging store never closes them. */
const END_WITHIN_MS = 1000;

/** @returns the exit status: 0 if clean, 1 for violations or if a store does not answer */
export async function runAudit(
  { redisUrl, databaseUrl }: StoreUrls,
  options: { readonly limit: string | undefined; readonly json: boolean; readonly redraw: boolean },
): Promise<number> {
  const limit = options.limit === undefined ? LIMIT : whole(options.limit, '--limit');
  let nodes: RedisNodes | undefined;
  const sql = openPostgres(databaseUrl, 'audit', 2);
  const progress = new Progress(process.stderr);
  try {
    nodes = await openNodes(redisUrl, () => {}).catch((error: Error) => {
      throw new Error(`The audit was not run because Redis is not responding: ${error.message}`);
    });
    await installation(sql).catch((error: unknown) => {
      if (error instanceof FormatError) throw error;
    });
    const report = await audit(sql, nodes, {
      limit,
      redraw: options.redraw,
      movesWithinMs: MOVES_WITHIN_MS,
      onProgress: (phase, done, total) => progress.show(phase, done, total),
    });
    progress.end();
    process.stdout.write(options.json ? `${JSON.stringify(report)}\n` : plain(report));
    return isClean(report) ? 0 : 1;
  } finally {
    progress.end();
    nodes?.close();
    await endWithin(sql.end());
  }
}

async function endWithin(ending: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, END_WITHIN_MS);
  });
  await Promise.race([ending, late]);
  clearTimeout(timer);
}

const thousands = (count: number): string => Math.round(count).toLocaleString('en');
const counted = (count: number, what: string): string =>
  `${thousands(count)} ${what}${count === 1 ? '' : 's'}`;

function plain(report: AuditReport): string {
  const lines = report.checks.map((check) => checkLine(check, report.interrupted !== undefined));
  for (const check of report.checks) {
    if (check.violations === 0) continue;
    lines.push('', `${check.name}: ${counted(check.violations, 'violation')}`);
    for (const violation of check.listed) lines.push(...violationLines(violation));
    const more = check.violations - check.listed.length;
    if (more > 0) lines.push(`  … and ${thousands(more)} more`);
  }
  lines.push('', verdict(report), '');
  return lines.join('\n');
}

function checkLine({ name, title, looked, violations }: Check, isInterrupted: boolean): string {
  const mark = violations > 0 ? 'WRONG' : isInterrupted ? '?' : 'ok';
  const what = Object.entries(looked).map(([noun, count]) => `${thousands(count)} ${noun}`);
  const lookedAt = what.length === 0 ? 'not checked' : what.join(', ');
  return [
    `${mark.padEnd(6)} ${name.padEnd(13)} ${title}`,
    `${' '.repeat(21)}${lookedAt}: ${counted(violations, 'violation')}`,
  ].join('\n');
}

function violationLines({ problem, at, expected, found }: Violation): string[] {
  // Names chosen by partners are quoted, because they may contain any characters.
  const place = Object.entries(at).map(([name, value]) =>
    name === 'player' || name === 'request' || name === 'field'
      ? `${name} ${JSON.stringify(value)}`
      : `${name} ${value}`,
  );
  const lines = [`  ${problem}`];
  if (place.length > 0) lines.push(`    ${place.join('  ')}`);
  if (expected !== undefined || found !== undefined) {
    lines.push(`    expected ${expected ?? 'nothing'}, found ${found ?? 'nothing'}`);
  }
  return lines;
}

const isClean = ({ violations, interrupted, moving }: AuditReport): boolean =>
  violations === 0 && interrupted === undefined && moving.length === 0;

function verdict(report: AuditReport): string {
  const { violations, interrupted, moving, rows, seconds, rowsPerSecond } = report;
  const work = `${thousands(rows)} ledger rows (${thousands(rowsPerSecond)}/s), ${seconds.toFixed(1)} s`;
  if (interrupted !== undefined) {
    return `NOT FINISHED: ${interrupted}. ${counted(violations, 'violation')} found before the interruption. The remaining data was not checked. ${work}`;
  }
  const moves = moving.map(
    ({ slug, fromCell, toCell }) =>
      `Partner ${slug} was moving from cell ${fromCell} to cell ${toCell}, so its data in Redis was not checked.`,
  );
  if (isClean(report)) return `CLEAN: ${work}`;
  const found =
    violations === 0
      ? 'NOT COMPLETE: no violations in the checked data'
      : `NOT CLEAN: ${counted(violations, 'violation')}`;
  const again = moves.length === 0 ? [] : [...moves, 'Run the audit again after the move has ended.'];
  return [`${found}. ${work}`, ...again].join('\n');
}
