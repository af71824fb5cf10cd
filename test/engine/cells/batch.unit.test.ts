/** Tests that a batch uses one version of each partner, even if its requests have different versions. */
import { expect, test } from 'vitest';
import type { Partner } from '../../../src/domain/game.js';
import { BatchEncoder } from '../../../src/engine/cells/batch.js';
import { item, partner } from '../../support/dealing.js';

function encoded(views: readonly (number | undefined)[]): { bytes: string; moves: (number | undefined)[] } {
  const items = views.map((newestMove) =>
    item({ partner: newestMove === undefined ? partner : { ...partner, newestMove } }),
  );
  const partners: Partner[] = [];
  const bytes = new BatchEncoder().encode(items, partners).toString('hex');
  return { bytes, moves: partners.map(({ newestMove }) => newestMove) };
}

test.each([
  [[5, 3], 3],
  [[3, 5], 3],
  [[5, 3, 4], 3],
  [[5, undefined], undefined],
  [[undefined, 5], undefined],
] as const)(
  'a batch with versions of one partner whose newest known moves are %j uses the oldest version',
  (views, oldest) => {
    expect(encoded(views).moves).toEqual([oldest]);
    expect(encoded(views).bytes).toBe(encoded(views.map(() => oldest)).bytes);
  },
);
