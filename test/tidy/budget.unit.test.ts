/**
 * Limits the lines of each room, so that the project grows only on purpose. A commit that raises a limit does
 * nothing else and says why.
 */
import { expect, test } from 'vitest';
import { ROOT } from '../support/root.js';
import { sources } from './sources.js';

const BUDGETS = {
  'src/api': 17_900,
  'src/app': 7950,
  'src/books': 9750,
  'src/cli': 8400,
  'src/domain': 10_450,
  'src/engine': 25_850,
  'src/platform': 1400,
  'src/postgres': 1950,
  'src/publicLog': 3350,
  'src/webhooks': 1750,
  console: 7700,
  test: 81_200,
};

const linesOf = (room: string): number =>
  sources(ROOT, [room], /(?<!\.v1\.d)\.tsx?$/).reduce(
    (sum, { text }) => sum + text.split('\n').length - 1,
    0,
  );

test.each(Object.entries(BUDGETS))('%s has at most %i lines', (room, most) => {
  expect(linesOf(room)).toBeGreaterThan(most / 2);
  expect(linesOf(room)).toBeLessThanOrEqual(most);
});
