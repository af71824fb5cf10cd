/**
 * Draws what bench/results/runs.jsonl has as one page of HTML, without a script: of each suite the newest run that was whole,
 * then how each target fared from run to run.
 */
import { bars, escaped, lines, short } from './chart.js';
import type { Run, Summary, Verdict } from './measurement.js';
import type { SoakRun } from './soakRun.js';
import { boundText } from './table.js';

const STYLE = `
  body { font: 14px/1.5 system-ui, sans-serif; max-width: 820px; margin: 2em auto; padding: 0 1em; color: #111827; }
  h2 { margin-top: 2em; border-bottom: 1px solid #d1d5db; } h3 { margin-bottom: .3em; font-size: 1em; }
  svg { width: 100%; height: auto; font-size: 11px; } svg .grid { stroke: #e5e7eb; }
  table { border-collapse: collapse; font-size: 12px; } td, th { padding: .15em .6em; text-align: right; border-bottom: 1px solid #e5e7eb; }
  td:first-child, th:first-child { text-align: left; } .pass { color: #047857; } .miss { color: #b91c1c; font-weight: bold; }
  .note { color: #4b5563; font-size: 12px; }`;

type Line = Run | SoakRun;
const isSoak = (run: Line): run is SoakRun => run.suite === 'soak';

/** @param runs the lines of the file, oldest first. */
export function drawPage(runs: readonly Line[]): string {
  const newest = new Map(runs.filter((run) => isSoak(run) || run.isWhole).map((run) => [run.suite, run]));
  const sections = [...newest.values()].map((run) => (isSoak(run) ? soakSection(run) : suiteSection(run)));
  const history = historyOf(runs.filter((run): run is Run => !isSoak(run) && run.isWhole));
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Spindle: measured</title><style>${STYLE}</style></head>
<body><h1>Spindle: measured</h1>
<p class="note">Drawn by <code>npm run bench -- --report</code> from runs.jsonl, of each suite the newest run. Ratios can be compared
between machines; spins a second can not.</p>
${sections.join('\n')}
${history}
</body></html>
`;
}

function suiteSection(run: Run): string {
  const draw = DRAWINGS[run.suite] ?? drawCpu;
  return section(run, [
    ...(run.verdicts.length > 0 ? [verdictTable(run.verdicts)] : []),
    ...run.faults.map((fault) => `<p class="miss">VOID: ${escaped(fault)}</p>`),
    ...draw(run.summaries),
    summaryTable(run.summaries),
  ]);
}

function section(run: Line, parts: readonly string[]): string {
  const { machine, versions, settings } = run;
  const stores = versions === undefined ? '' : `, Redis ${versions.redis}, Postgres ${versions.postgres}`;
  const note =
    `${run.at.slice(0, 16)} UTC; ${machine.cores} cores of ${machine.cpu}, Linux ${machine.kernel}, Node ${machine.node}${stores}; ` +
    `${settings.rounds} rounds of ${settings.seconds} s, the load generator on the same machine`;
  return [`<h2>${escaped(run.suite)}</h2><p class="note">${escaped(note)}</p>`, ...parts].join('\n');
}

const figure = (title: string, drawing: string): string => `<h3>${escaped(title)}</h3>${drawing}`;
const nameOf = ({ scenario, period }: Summary): string => `${scenario}/${period}`;
const PROCESSES = ['server', 'worker', 'redis', 'postgres'];

const cpuBars = (summaries: readonly Summary[]): string =>
  bars(
    summaries.map((summary) => ({
      label: nameOf(summary),
      parts: Object.fromEntries(
        PROCESSES.filter((name) => summary.cpuPerSpin[name] !== undefined).map((name) => [
          name,
          summary.cpuPerSpin[name]!,
        ]),
      ),
    })),
    'µs',
  );

const drawCpu = (summaries: readonly Summary[]): string[] => [
  figure(
    'Spins a second',
    bars(
      summaries.map((summary) => ({ label: nameOf(summary), parts: { spins: summary.spinsPerSecond } })),
      '/s',
    ),
  ),
  figure('CPU per spin', cpuBars(summaries)),
];

/** A line for each scenario (and each of the named figures of it). */
const linesOf = (
  summaries: readonly Summary[],
  x: (summary: Summary) => number,
  figures: Readonly<Record<string, (summary: Summary) => number>>,
) =>
  [...new Set(summaries.map(({ scenario }) => scenario))].flatMap((scenario) =>
    Object.entries(figures).map(([name, y]) => ({
      name: `${scenario} ${name}`.trim(),
      points: summaries
        .filter((each) => each.scenario === scenario)
        .map((each): [number, number] => [x(each), y(each)]),
    })),
  );

const DRAWINGS: Readonly<Record<string, (summaries: readonly Summary[]) => string[]>> = {
  closed: (summaries) => {
    const x = ({ connections }: Summary): number => Math.log2(connections);
    const mark = (place: number): string => String(2 ** place);
    const rates = linesOf(summaries, x, { '': (each) => each.spinsPerSecond });
    const latencies = linesOf(summaries, x, { p50: (each) => each.p50Ms, p99: (each) => each.p99Ms });
    return [
      figure('Spins a second', lines(rates, 'connections', 'spins/s', false, mark)),
      figure('Latency', lines(latencies, 'connections', 'ms', true, mark)),
      figure('CPU per spin', cpuBars(summaries)),
    ];
  },
  open: (summaries) => {
    const open = summaries.filter(({ rate }) => rate !== undefined);
    return [
      figure(
        'Latency by rate, from when a spin was due',
        lines(
          linesOf(open, ({ rate }) => rate!, { p50: (each) => each.p50Ms, p99: (each) => each.p99Ms }),
          'target spins/s',
          'ms',
          true,
        ),
      ),
      figure('CPU per spin', cpuBars(summaries)),
    ];
  },
};

function summaryTable(summaries: readonly Summary[]): string {
  const rows = summaries.map((each) => [
    nameOf(each),
    String(each.connections),
    each.rate === undefined ? 'closed' : short(each.rate),
    short(each.spinsPerSecond),
    short(each.p50Ms),
    short(each.p99Ms),
    short(each.cpuPerSpin.total!),
    short(each.cpuPerSpin.generator!),
    `${Math.round(each.idle * 100)} %`,
  ]);
  const heads = ['', 'conn.', 'rate', 'spins/s', 'p50 ms', 'p99 ms', 'CPU µs', 'generator µs', 'idle'];
  return htmlTable(heads, rows);
}

const verdictTable = (verdicts: readonly Verdict[]): string =>
  `<table>${verdicts
    .map(
      ({ what, median, bound, isMet, rounds }) =>
        `<tr><td>${escaped(what)}</td><td>${short(median)}</td><td>${boundText(bound)}</td>` +
        `<td class="${isMet ? 'pass">pass' : 'miss">miss'}</td><td>${rounds.map(short).join(', ')}</td></tr>`,
    )
    .join('')}</table>`;

const htmlTable = (heads: readonly string[], rows: readonly (readonly string[])[]): string =>
  `<table><tr>${heads.map((head) => `<th>${escaped(head)}</th>`).join('')}</tr>${rows
    .map((row) => `<tr>${row.map((cell) => `<td>${escaped(cell)}</td>`).join('')}</tr>`)
    .join('')}</table>`;

function soakSection(run: SoakRun): string {
  const rows = run.findings.map(({ what, isMet, text }) => [what, isMet ? 'pass' : 'MISS', text]);
  const groups = new Map<string, typeof run.series>();
  for (const series of run.series) groups.set(series.unit, [...(groups.get(series.unit) ?? []), series]);
  return section(run, [
    htmlTable(['', '', ''], rows),
    ...[...groups].map(([unit, series]) =>
      figure(
        unit,
        lines(
          series.map(({ name, points }) => ({ name, points })),
          'minutes',
          unit,
        ),
      ),
    ),
  ]);
}

/** How each target fared, from run to run. */
function historyOf(runs: readonly Run[]): string {
  const goals = new Map<string, { bound: Verdict['bound']; points: [number, number][] }>();
  for (const suite of new Set(runs.map((run) => run.suite))) {
    for (const [number, run] of runs.filter((each) => each.suite === suite).entries()) {
      for (const { what, bound, median } of run.verdicts) {
        const goal = goals.get(what) ?? { bound, points: [] };
        goal.points.push([number + 1, median]);
        goals.set(what, goal);
      }
    }
  }
  const figures = [...goals]
    .filter(([, { points }]) => points.length > 1)
    .map(([what, { bound, points }]) => {
      const target = 'atMost' in bound ? bound.atMost : bound.atLeast;
      const [first, last] = [points[0]![0], points.at(-1)![0]];
      return figure(
        `${what}, target ${boundText(bound)}`,
        lines(
          [
            { name: 'measured', points },
            {
              name: 'target',
              points: [
                [first, target],
                [last, target],
              ],
            },
          ],
          'run',
          '',
        ),
      );
    });
  return figures.length === 0 ? '' : `<h2>From run to run</h2>${figures.join('\n')}`;
}
