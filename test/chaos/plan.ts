/** Plans each round of a chaos run. The plan depends only on the run's seed and the round's number. */

import { Random } from '../support/random.js';
import { FAULT_NAMES, type FaultName, faultKind } from './faults.js';
import type { Acknowledgement } from './services.js';

export interface PlannedFault {
  readonly name: FaultName;
  /** Time in ms from the start of the round's faults to the start of this fault. */
  readonly afterMs: number;
}

export interface RoundPlan {
  readonly round: number;
  readonly acknowledgement: Acknowledgement;
  readonly faults: readonly PlannedFault[];
  /**
   * True if a fault of the round destroys acknowledged entries that are not committed. No spins are sent
   * during such a fault.
   */
  readonly isQuiet: boolean;
  /** True if blocks are loaded only after a quorum of witnesses has signed. */
  readonly isWitnessed: boolean;
  /**
   * Number of spins that must be answered before the faults begin. `spinsAfter` is the number after the
   * recovery.
   */
  readonly spinsBefore: number;
  readonly spinsAfter: number;
}

export interface PlanSettings {
  readonly seed: string;
  readonly names: readonly FaultName[];
  /** Kind of acknowledgement of all rounds. Undefined to alternate between the kinds. */
  readonly acknowledgement: Acknowledgement | undefined;
}

/**
 * Number of consecutive rounds with one kind of acknowledgement. After them, the service is restarted with
 * the other kind.
 */
const BLOCK_ROUNDS = 5;
const SECOND_FAULT = 0.3;
const OFFSET_MS = 700;
const SPINS_BEFORE = [500, 2400] as const;
const SPINS_AFTER = [400, 1600] as const;

/**
 * Plans a round. The kinds of faults are taken from shuffled lists of all kinds, so that a long run has each
 * of them about equally often.
 */
export function planRound(round: number, { seed, names, acknowledgement }: PlanSettings): RoundPlan {
  const pack = Math.floor((round - 1) / names.length);
  const first = new Random(seed, 'pack', pack).shuffled(names)[(round - 1) % names.length]!;
  const random = new Random(seed, 'plan', round);
  const promised: Acknowledgement =
    acknowledgement ?? (Math.floor((round - 1) / BLOCK_ROUNDS) % 2 === 0 ? 'redis' : 'ledger');
  const spinsBefore = random.whole(...SPINS_BEFORE);
  const spinsAfter = random.whole(...SPINS_AFTER);
  const isRestore = faultKind(first).restores !== undefined;
  const isQuiet = isRestore || (promised === 'redis' && faultKind(first).destroys === true);
  const faults: PlannedFault[] = [{ name: first, afterMs: random.whole(0, OFFSET_MS) }];
  const others = names.filter(
    (name) =>
      faultKind(name).restores === undefined &&
      faultKind(name).needsWitnesses === undefined &&
      faultKind(name).subject !== faultKind(first).subject &&
      !(promised === 'redis' && faultKind(name).destroys === true),
  );
  if (!isQuiet && others.length > 0 && random.chance(SECOND_FAULT)) {
    faults.push({ name: random.pick(others), afterMs: random.whole(0, OFFSET_MS) });
  }
  const isWitnessed = faults.some(({ name }) => faultKind(name).needsWitnesses === true);
  return { round, acknowledgement: promised, faults, isQuiet, isWitnessed, spinsBefore, spinsAfter };
}

/** @throws Error that lists all kinds if a name is unknown */
export function namesOf(only: string | undefined): FaultName[] {
  if (only === undefined) return [...FAULT_NAMES];
  return only.split(',').map((name) => {
    if (!FAULT_NAMES.includes(name as FaultName)) {
      throw new Error(`«${name}» is no kind of fault; there are ${FAULT_NAMES.join(', ')}`);
    }
    return name as FaultName;
  });
}
