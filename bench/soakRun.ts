/** What a soak came to: a line of bench/results/runs.jsonl. */
import type { Machine } from './machine.js';
import type { Versions } from './measurement.js';
import type { SlowSecond } from './slowSeconds.js';

export interface Finding {
  readonly what: string;
  readonly isMet: boolean;
  /** The figures, and the bound. */
  readonly text: string;
}

/** As they were taken. */
export interface Samples {
  readonly name: string;
  readonly unit: string;
  readonly samples: (readonly [seconds: number, value: number])[];
}

export interface Series {
  readonly name: string;
  readonly unit: string;
  /** Minutes since the load began, and the value. */
  readonly points: readonly (readonly [minutes: number, value: number])[];
}

export interface SoakRun {
  readonly at: string;
  readonly suite: 'soak';
  readonly machine: Machine;
  readonly versions: Versions;
  readonly settings: { readonly seconds: number; readonly rounds: 1 } & Readonly<Record<string, number>>;
  readonly findings: readonly Finding[];
  readonly series: readonly Series[];
  /** Absent in runs from before they were told. */
  readonly slowSeconds?: readonly SlowSecond[];
}
