/** Formats the output of a chaos run: a line for each round, a table by kind of fault, and the totals. */
import type { FaultName } from './faults.js';
import type { RoundResult } from './round.js';

export const isHeld = ({ findings }: RoundResult): boolean =>
  findings.lost.length + findings.twice.length + findings.missing.length + findings.other.length === 0;

const EXAMPLES_MAX = 5;

export function roundLine(result: RoundResult): string {
  const { plan, counts, readyMs, seconds, cut } = result;
  const kinds = plan.faults.map(({ name }) => name).join(' + ') + (plan.isQuiet ? ' (spins paused)' : '');
  const spins = counts.ok + counts.failed + counts.unknown;
  const ready = readyMs === undefined ? 'never ready' : `ready in ${readyMs.toFixed(0)} ms`;
  return (
    `round ${String(plan.round).padStart(3)}  ACK=${plan.acknowledgement.padEnd(6)}  ${kinds.padEnd(34)} ` +
    `${String(spins).padStart(6)} spins: ${counts.ok} ok, ${counts.failed} failed, ${counts.unknown} unknown; ` +
    `${ready}; ${cut === undefined ? '' : `${cut} spins cut off by the restore; `}${seconds.toFixed(1)} s; ${isHeld(result) ? 'held' : 'BROKEN'}`
  );
}

/** Returns the first few findings of each kind. */
export function findingLines({ findings }: RoundResult): string[] {
  const { lost, twice, missing, other } = findings;
  const sorts = { 'lost spin': lost, 'dealt twice': twice, 'index missing': missing, wrong: other };
  return Object.entries(sorts).flatMap(([sort, found]) => [
    ...found.slice(0, EXAMPLES_MAX).map((line) => `  ${sort}: ${line}`),
    ...(found.length > EXAMPLES_MAX ? [`  ${sort}: and ${found.length - EXAMPLES_MAX} more`] : []),
  ]);
}

export function summary(results: readonly RoundResult[]): string {
  const names = [...new Set(results.flatMap(({ plan }) => plan.faults.map(({ name }) => name)))].sort();
  const sum = (value: (result: RoundResult) => number): number =>
    results.reduce((total, result) => total + value(result), 0);
  const audits = results.filter(({ isAuditClean }) => isAuditClean !== undefined);
  return [
    '| fault | times | spins | unknown | ready p50 ms | ready max ms | broken |',
    '|---|---|---|---|---|---|---|',
    ...names.map((name) => row(name, results)),
    '',
    `rounds ${results.length}, held ${results.filter(isHeld).length}`,
    `spins ${sum(({ counts }) => counts.ok + counts.failed + counts.unknown)}, answered 200 ${sum(({ counts }) => counts.ok)}, ` +
      `refused ${sum(({ counts }) => counts.failed)}, unknown ${sum(({ counts }) => counts.unknown)}`,
    `acknowledged spins lost ${sum(({ findings }) => findings.lost.length)}`,
    `outcomes or requestIds dealt twice ${sum(({ findings }) => findings.twice.length)}`,
    `gaps in the outcome indices ${sum(({ findings }) => findings.missing.length)}`,
    `other breaches ${sum(({ findings }) => findings.other.length)}`,
    `unknown spins that had no effect ${sum(({ findings }) => findings.unknowns[0])}, one ` +
      `${sum(({ findings }) => findings.unknowns[1])}, more than one ${sum(({ findings }) => findings.unknowns[2])}`,
    `audits run ${audits.length}, clean ${audits.filter(({ isAuditClean }) => isAuditClean === true).length}`,
  ].join('\n');
}

function row(name: FaultName, results: readonly RoundResult[]): string {
  const mine = results.filter(({ plan }) => plan.faults.some((fault) => fault.name === name));
  const ready = mine.flatMap(({ readyMs }) => (readyMs === undefined ? [] : [readyMs])).sort((a, b) => a - b);
  const spins = mine.reduce((total, { counts }) => total + counts.ok + counts.failed + counts.unknown, 0);
  const unknown = mine.reduce((total, { counts }) => total + counts.unknown, 0);
  const text = (ms: number | undefined): string => (ms === undefined ? '–' : ms.toFixed(0));
  return `| ${name} | ${mine.length} | ${spins} | ${unknown} | ${text(ready[Math.floor((ready.length - 1) / 2)])} | ${text(ready.at(-1))} | ${mine.filter((result) => !isHeld(result)).length} |`;
}
