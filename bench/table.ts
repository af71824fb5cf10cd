/** What is printed of a run. */
import { isDisturbed, lostOf, type Run, type Summary, type Verdict } from './measurement.js';

const CPU_COLUMNS = ['server', 'worker', 'redis', 'postgres', 'total', 'generator'];

export function renderRun(run: Run): string {
  const { machine, versions, settings, blockMaking, faults } = run;
  const stores = versions === undefined ? '' : `, Redis ${versions.redis}, Postgres ${versions.postgres}`;
  const lines = [
    '',
    `${machine.cores} cores of ${machine.cpu}, ${machine.memoryGb} GB, Linux ${machine.kernel}, Node ${machine.node}${stores}; ` +
      `load average before: ${machine.loadBefore.toFixed(2)}`,
    `load by ${settings.generator ?? 'autocannon'} on the same machine; ${settings.parSheet}; ${settings.warmUpSeconds} s warm-up and ${settings.seconds} s counted, ` +
      `${settings.rounds} rounds in turn; took ${run.tookSeconds} s`,
    '',
    'Medians over the rounds. CPU in µs per spin, children included; total = all but the generator. With a rate the loop is open,',
    'and latency counts from when a spin was due.',
    ...table(summaryRows(run.summaries)),
  ];
  const grown = run.summaries.flatMap((each) => (each.grown === undefined ? [] : [each.grown]));
  for (const { what, count, bytesEach } of grown)
    lines.push(`  ${count.toLocaleString('en')} ${what}: ${bytesEach.toFixed(1)} bytes of Redis each`);
  if (run.verdicts.length > 0)
    lines.push('', 'Targets, median of the rounds:', ...table(verdictRows(run.verdicts)));
  if (blockMaking !== undefined) {
    const blocks = Object.entries(blockMaking).map(([name, rate]) => `${name} ${(rate / 1e6).toFixed(1)}`);
    lines.push('', `Block making, million outcomes/s on one core: ${blocks.join(', ')}`);
  }
  const books = [...run.turns, ...run.discarded].flatMap((turn) => turn.books ?? []);
  if (books.length > 0 && faults.length === 0) {
    const spins = books.reduce((sum, each) => sum + each.spins, 0);
    lines.push(`Ledgers: ${spins} spins were answered with 2xx, as many are booked, the outboxes are empty`);
  }
  for (const measurement of run.turns.flatMap((turn) => turn.measurements).filter(isDisturbed)) {
    const { scenario, period, round } = measurement;
    const lost = Math.round(lostOf(measurement) * 100);
    lines.push(`DISTURBED: ${scenario}/${period}, round ${round}: ${lost} % of the machine went to others`);
  }
  for (const fault of faults) lines.push(`VOID: ${fault}`);
  return lines.join('\n');
}

/** Columns in which nothing stands are left out. */
function summaryRows(summaries: readonly Summary[]): string[][] {
  type Cell = (summary: Summary) => string | undefined;
  const columns: [head: string, cell: Cell][] = [
    ['', ({ scenario, period }) => `${scenario}/${period}`],
    ['conn.', ({ connections }) => String(connections)],
    ['rate', ({ rate }) => rate?.toFixed(0)],
    ['spins/s', ({ spinsPerSecond }) => spinsPerSecond.toFixed(0)],
    ['p50 ms', ({ p50Ms }) => p50Ms.toFixed(2)],
    ['p99 ms', ({ p99Ms }) => p99Ms.toFixed(2)],
    ['p99.9', ({ p999Ms }) => p999Ms.toFixed(1)],
    ['late p99', ({ lateP99Ms }) => lateP99Ms?.toFixed(2)],
    ...CPU_COLUMNS.map((name): [string, Cell] => [
      `${name} µs`,
      ({ cpuPerSpin }) => cpuPerSpin[name]?.toFixed(1),
    ]),
    ['idle', ({ idle }) => `${Math.round(idle * 100)} %`],
    [
      'flush p99',
      ({ flushLagP99Ms }) => (flushLagP99Ms === undefined ? undefined : `${flushLagP99Ms.toFixed(0)} ms`),
    ],
  ];
  const shown = columns.filter(([, cell]) => summaries.some((summary) => cell(summary) !== undefined));
  return [
    shown.map(([head]) => head),
    ...summaries.map((summary) => shown.map(([, cell]) => cell(summary) ?? '–')),
  ];
}

const verdictRows = (verdicts: readonly Verdict[]): string[][] =>
  verdicts.map(({ what, bound, rounds, median, isMet }) => [
    what,
    median.toFixed(2),
    boundText(bound),
    isMet ? 'pass' : 'MISS',
    `(${rounds.map((value) => value.toFixed(2)).join(', ')})`,
  ]);

const boundText = (bound: Verdict['bound']): string =>
  'atMost' in bound ? `≤ ${bound.atMost}` : `≥ ${bound.atLeast}`;

/** Rows as lines, the first column to the left, the others to the right. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]! + 2)))
      .join('')
      .replace(/^/, '  ')
      .trimEnd(),
  );
}
