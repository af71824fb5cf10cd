/** Medians over the rounds of a run, and the targets for them. */
import { type Measurement, periodOf, type Summary, type Verdict } from './measurement.js';
import type { Goal } from './scenarios.js';

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function summarise(measurements: readonly Measurement[]): Summary[] {
  const names = [...new Set(measurements.map(periodOf))];
  return names.map((name) => {
    const rounds = measurements.filter((measurement) => periodOf(measurement) === name);
    const over = (value: (measurement: Measurement) => number): number => median(rounds.map(value));
    const [{ scenario, period, server, connections, rate, grown, flushLag, load, cpuPerSpin }] = rounds as [
      Measurement,
    ];
    return {
      scenario,
      period,
      server,
      connections,
      rate: rate === undefined ? undefined : over((m) => m.rate!),
      spinsPerSecond: over((m) => m.spinsPerSecond),
      p50Ms: over((m) => m.load.p50Ms),
      p99Ms: over((m) => m.load.p99Ms),
      p999Ms: over((m) => m.load.p999Ms),
      lateP99Ms: load.lateP99Ms === undefined ? undefined : over((m) => m.load.lateP99Ms!),
      idle: over((m) => m.shares.idle),
      cpuPerSpin: Object.fromEntries(
        Object.keys(cpuPerSpin).map((process) => [process, over((m) => m.cpuPerSpin[process]!)]),
      ),
      flushLagP99Ms: flushLag === undefined ? undefined : over((m) => m.flushLag!.p99Ms),
      grown: grown && { ...grown, bytesEach: over((m) => m.grown!.bytesEach) },
    };
  });
}

/** The goals for which everything was measured. Ratios are taken within a round: what drifts cancels out. */
export function verdictsOf(goals: readonly Goal[], measurements: readonly Measurement[]): Verdict[] {
  const rounds = [...new Set(measurements.map(({ round }) => round))];
  return goals.flatMap(({ what, atMost, atLeast, value }) => {
    const values = rounds.flatMap((round) => {
      const of = (period: string): Measurement => {
        const found = measurements.find((m) => m.round === round && periodOf(m) === period);
        if (found === undefined) throw new NotMeasured();
        return found;
      };
      try {
        return [value(of)];
      } catch (error) {
        if (error instanceof NotMeasured) return [];
        throw error;
      }
    });
    if (values.length === 0) return [];
    const middle = median(values);
    const bound = atMost === undefined ? { atLeast: atLeast! } : { atMost };
    const isMet = atMost === undefined ? middle >= atLeast! : middle <= atMost;
    return [{ what, bound, rounds: values, median: middle, isMet }];
  });
}

class NotMeasured extends Error {}
