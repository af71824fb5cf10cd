/**
 * Limits the lines of each room, so that the project grows only on purpose. A commit that raises a limit does
 * nothing else and says why.
 */
import { expect, test } from 'vitest';
import { ROOT } from '../support/root.js';
import { sources } from './sources.js';

const BUDGETS = {
  'src/api': 18_350,
  'src/app': 7500,
  'src/books': 9460,
  'src/cli': 7900,
  'src/domain': 10_440,
  'src/engine': 25_290,
  'src/platform': 1385,
  'src/postgres': 2000,
  'src/publicLog': 3260,
  'src/webhooks': 1640,
  console: 7210,
  test: 81_130,
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
