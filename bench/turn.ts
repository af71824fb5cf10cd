/**
 * One scenario's turn: start its server, and for each period grow it, warm it up, load it, let its outbox drain; then look
 * into its books, and stop it.
 *
 *   start ─> ( grow ─> warm up ─> drain ─> first sample ─> load ─> drain ─> last sample ) … ─> books ─> stop
 *
 * The outbox is drained before both samples, so that the CPU time between them is that of the counted spins: all of
 * their ledger's cost, and none of the warm-up's.
 */
import { FlushLagMeter } from './flushLag.js';
import { startGenerator } from './generator.js';
import { grow } from './grow.js';
import { CpuMeter, type CpuTimes, cpuBetween, type MachineTimes, machineTimes } from './measure.js';
import { type LoadResult, type Measurement, periodOf, type Shares, type Turn } from './measurement.js';
import type { Cleanup } from './processes.js';
import type { Scenario } from './scenarios.js';
import { startServer } from './servers.js';
import { drained } from './stores.js';

export interface TurnSettings {
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly profileDir: string | undefined;
}

/** Of a server that is warm already. */
const WARM_UP_AGAIN_SECONDS = 1;

/** @param known the periods of the round so far, by name; this turn's are added. */
export async function takeTurn(
  scenario: Scenario,
  round: number,
  settings: TurnSettings,
  known: Map<string, Measurement>,
  cleanup: Cleanup,
): Promise<Turn> {
  const server = await startServer(scenario, cleanup, settings.profileDir);
  const generator = startGenerator(cleanup);
  const { books, stores, service } = server;
  const lagMeter = service && (await FlushLagMeter.open(service.stores.redisUrl, cleanup));
  const measurements: Measurement[] = [];
  const loads: [when: string, LoadResult][] = [];
  for (const period of scenario.periods) {
    const { name, connections, players, hasRequestId, rate: share } = period;
    const capacity = share && known.get(share.of)?.spinsPerSecond;
    if (share !== undefined && capacity === undefined) {
      console.log(
        `${scenario.name}/${name} is left out: ${share.of}, whose rate it takes a share of, was not measured`,
      );
      continue;
    }
    const rate = share && share.share * capacity!;
    const grown = period.grow && (await grow(service!, period.grow));
    const { base, targets } = server;
    const order = { base, targets, connections, players, hasRequestId, rate };

    const isFirst = measurements.length === 0;
    const warmUpSeconds = isFirst ? settings.warmUpSeconds : WARM_UP_AGAIN_SECONDS;
    const warmUp = await generator.load({ ...order, seconds: warmUpSeconds });
    await drained(books);
    const meter = new CpuMeter({ ...server.processes, generator: [generator.pid] });
    const start = meter.sample();
    const machineStart = machineTimes();
    lagMeter?.start();
    const load = await generator.load({ ...order, seconds: settings.seconds });
    const flushLag = lagMeter?.stop();
    const drainSeconds = await drained(books);
    const cpu = cpuBetween(start, meter.sample());
    const measurement: Measurement = {
      scenario: scenario.name,
      period: name,
      server: scenario.server,
      round,
      connections,
      rate,
      spinsPerSecond: load.spins / load.seconds,
      load,
      cpuPerSpin: perSpin(cpu, load.spins),
      shares: sharesOf(machineStart, machineTimes(), cpu),
      drainSeconds,
      flushLag,
      grown,
    };
    measurements.push(measurement);
    known.set(periodOf(measurement), measurement);
    loads.push([`warm-up of ${name}`, warmUp], [name, load]);
  }
  const found = books && {
    spins: loads.reduce((sum, [, { spins }]) => sum + spins, 0),
    ledgerRows: await books.ledgerRows(),
    outboxEntries: await books.outboxEntries(),
  };
  const versions = await stores?.versions();
  return {
    scenario: scenario.name,
    round,
    measurements,
    books: found,
    versions,
    faults: faultsOf(loads, found),
  };
}

function perSpin({ generator, ...own }: CpuTimes, spins: number): Measurement['cpuPerSpin'] {
  const total = Object.values(own).reduce((sum, micros) => sum + micros, 0);
  const all = { ...own, total, generator: generator! };
  return Object.fromEntries(Object.entries(all).map(([name, micros]) => [name, micros / spins]));
}

function sharesOf(start: MachineTimes, end: MachineTimes, cpu: CpuTimes): Shares {
  const all = end.all - start.all;
  const busy = end.busy - start.busy;
  const stolen = end.stolen - start.stolen;
  const ours = Object.values(cpu).reduce((sum, micros) => sum + micros, 0);
  return { idle: (all - busy - stolen) / all, others: Math.max(0, busy - ours) / all, stolen: stolen / all };
}

function faultsOf(loads: readonly [when: string, LoadResult][], books: Turn['books']): string[] {
  const faults: string[] = [];
  for (const [when, { spins, non2xx, errors, statuses }] of loads) {
    if (non2xx > 0) faults.push(`${when}: ${non2xx} answers were not 2xx: ${JSON.stringify(statuses)}`);
    if (errors > 0) faults.push(`${when}: ${errors} requests failed`);
    if (spins === 0) faults.push(`${when}: not one spin was dealt`);
  }
  if (books !== undefined && books.ledgerRows !== books.spins)
    faults.push(`the ledger has ${books.ledgerRows} spins, ${books.spins} were answered`);
  if (books !== undefined && books.outboxEntries > 0)
    faults.push(`the outbox still has ${books.outboxEntries} entries`);
  return faults;
}
