/**
 * Tests the memory of answered spins. Each spin is kept until it is committed, and is looked up in the ledger
 * if its epoch has ended before that.
 */
import { expect, test } from 'vitest';
import { entryCell } from '../../../src/domain/entryId.js';
import type { AnsweredSpin, EndedEpoch } from '../../../src/engine/cells/answered.store.js';
import { AnsweredSpins } from '../../../src/engine/cells/answeredSpins.js';
import { KIND } from '../../../src/engine/cells/batch.js';
import type { SpinRequest, SpinResult } from '../../../src/engine/cells/deal.js';
import { EventEmitter } from '../../../src/engine/processEvents.js';

const OLD = 'set:1';
const NEW = 'set:2';
const CELL = entryCell(1n);

/** A memory of answered spins that takes its turns only when a test calls look(). */
class Looking extends AnsweredSpins {
  look = (): Promise<void> => this.takeTurn();
}

interface Kept {
  readonly spins: AnsweredSpins;
  readonly looked: EndedEpoch[];
  /** Begins a new epoch of the cell and looks up the spins that were answered before. */
  end(): Promise<void>;
  answer(spins: readonly AnsweredSpin[], of?: Partial<SpinRequest>, kind?: SpinResult['kind']): void;
}

function kept(fails = 0): Kept {
  let epoch = OLD;
  let failures = fails;
  const looked: EndedEpoch[] = [];
  const recordLost = async (ended: EndedEpoch): Promise<number> => {
    if (failures-- > 0) throw new Error('Postgres is away');
    looked.push(ended);
    return ended.spins.length;
  };
  const spins = new Looking({
    epochOf: () => epoch,
    store: { answered: { recordLost } },
    events: new EventEmitter(() => {}),
  });
  return {
    spins,
    looked,
    async end() {
      epoch = NEW;
      await spins.look();
    },
    answer(some, of = {}, kind: SpinResult['kind'] = 'dealt') {
      const requests = some.map(
        ({ partnerId, ...names }) =>
          ({
            kind: KIND.deal,
            partner: { partnerId },
            waitsForLedger: false,
            ...names,
            ...of,
          }) as SpinRequest,
      );
      const replies = some.map(
        ({ outcomeCode, balanceMicros }) => ({ kind, outcomeCode, balanceMicros }) as SpinResult,
      );
      const newestPlace = kind === 'dealt' ? some.length - 1 : undefined;
      spins.remember(CELL, OLD, requests, { replies, entryId: (i) => some[i]!.entryId, newestPlace });
    },
  };
}

const spin = (entryId: number, more: Partial<AnsweredSpin> = {}): AnsweredSpin => ({
  entryId: BigInt(entryId),
  partnerId: 7,
  gameId: 4_000_000_000,
  playerId: `p-${entryId}`,
  requestId: `r-${entryId}`,
  outcomeCode: 513,
  balanceMicros: 9_007_199_254_740_991,
  ...more,
});

test('looks up each spin with the fields that were answered', async () => {
  const all = [
    spin(1),
    spin(2, { requestId: undefined }),
    spin(3, { playerId: 'é€𝄞'.repeat(32), requestId: '𝄞'.repeat(64), balanceMicros: 0 }),
    spin(4, { requestId: '' }),
  ];
  const { answer, end, looked } = kept();
  answer(all);
  await end();
  expect(looked).toEqual([{ cell: CELL, epoch: NEW, spins: all, notRemembered: 0 }]);
});

test('does not look up spins that wait for the ledger, spins that were refused, or spins that are committed', async () => {
  const { answer, end, looked, spins } = kept();
  answer([spin(1)], { waitsForLedger: true });
  answer([spin(2)], {}, 'limited');
  answer([spin(3), spin(4)]);
  spins.booked(CELL, OLD, 4n);
  answer([spin(5)]);
  answer([spin(6)], {}, 'replayed');
  await end();
  expect(looked.flatMap((each) => each.spins)).toEqual([spin(5), spin(6)]);
});

test('repeats a failed look-up of answered spins, together with spins that were answered since', async () => {
  const { answer, end, looked } = kept(1);
  answer([spin(1)]);
  await end();
  expect(looked).toEqual([]);
  answer([spin(2)]);
  await end();
  expect(looked.flatMap((each) => each.spins)).toEqual([spin(1), spin(2)]);
});

test('keeps only a count of the oldest answered spins once the memory for them is full', async () => {
  const { answer, end, looked } = kept();
  const BATCH = 64;
  let answered = 0;
  // 400,000 spins need far more than the 16 MB that are reserved for answered spins.
  while (answered < 400_000) {
    answer(Array.from({ length: BATCH }, (_, i) => spin(answered + i + 1)));
    answered += BATCH;
  }
  await end();
  const [{ spins, notRemembered }] = looked as [EndedEpoch];
  expect(notRemembered).toBeGreaterThan(0);
  expect(spins.length).toBeGreaterThan(100_000);
  expect(spins.length + notRemembered).toBe(answered);
  expect(spins.at(-1)).toEqual(spin(answered));
  expect(spins[0]).toEqual(spin(notRemembered + 1));
});
