/**
 * One scenario's turn: start its server, and for each period grow it, warm it up, load it, let its outbox drain; then look
 * into its books, and stop it.
 *
 *   start ─> ( grow ─> period.ts: warm up ─> drain ─> first sample ─> load ─> drain ─> last sample ) … ─> books ─> stop
 */

import type { Cleanup } from '../test/support/cleanup.js';
import { FlushLagMeter } from './flushLag.js';
import { type GeneratorName, startGenerator } from './generator.js';
import { grow } from './grow.js';
import { type LoadResult, type Measurement, periodOf, type Turn } from './measurement.js';
import { closeBooks, measurePeriod, WARM_UP_AGAIN_SECONDS } from './period.js';
import type { Scenario } from './scenarios.js';
import { startServer } from './servers.js';

export interface TurnSettings {
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly profileDir: string | undefined;
  readonly generator: GeneratorName;
}

/** @param known the periods of the round so far, by name; this turn's are added. */
export async function takeTurn(
  scenario: Scenario,
  round: number,
  settings: TurnSettings,
  known: Map<string, Measurement>,
  cleanup: Cleanup,
): Promise<Turn> {
  const server = await startServer(scenario, cleanup, settings.profileDir);
  const generator = await startGenerator(cleanup, settings.generator);
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
    const { warmUp, ...measured } = await measurePeriod(server, generator, order, {
      seconds: settings.seconds,
      warmUpSeconds,
      lagMeter,
    });
    const measurement: Measurement = {
      scenario: scenario.name,
      period: name,
      server: scenario.server,
      round,
      connections,
      rate,
      ...measured,
      grown,
    };
    measurements.push(measurement);
    known.set(periodOf(measurement), measurement);
    loads.push([`warm-up of ${name}`, warmUp], [name, measured.load]);
  }
  return {
    scenario: scenario.name,
    round,
    measurements,
    ...(await closeBooks(loads, books)),
    versions: await stores?.versions(),
    generator: generator.name,
  };
}
