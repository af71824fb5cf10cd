/** Tests the reply of the spin script for a raffle that is sold out. */
import { expect, test } from 'vitest';
import type { SpinItem } from '../../../src/engine/cells/batch.js';
import { SPIN_STATUS } from '../../../src/engine/redis/statuses.js';
import { game, item, partner } from '../../support/dealing.js';
import { openedCell } from './openedCell.js';

const opened = openedCell();

test('a sold-out raffle is refused before wager and player are checked, and after all other denials', async () => {
  const raffle = { ...game, poolSize: 1 };
  const ticket = (more: Partial<SpinItem> = {}) => item({ game: raffle, playerId: 'bob', ...more });
  await opened.load(0, 1);
  const { statuses } = await opened.run([
    ticket({ hasOtherWager: true }),
    ticket({ requestId: 'last' }),
    ticket({ hasOtherWager: true }),
    ticket({ hasOtherWager: true, isDenied: true }),
    ticket({ hasOtherWager: true, requestId: 'last', mayEqual: false }),
    ticket({ partner: { ...partner, balanceMode: 'enforce', openingBalanceMicros: 0, partnerId: 8 } }),
  ]);
  expect(statuses).toEqual([
    SPIN_STATUS.denied,
    SPIN_STATUS.dealt,
    SPIN_STATUS.raffleClosed,
    SPIN_STATUS.denied,
    SPIN_STATUS.conflict,
    SPIN_STATUS.raffleClosed,
  ]);
});
