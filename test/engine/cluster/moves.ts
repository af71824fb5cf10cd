/** Tests moves of partners between cells on different nodes of a cluster. */
import { expect, test } from 'vitest';
import { moveAndWait } from '../../../src/cli/operator/moves.js';
import { slotOfCell } from '../../../src/engine/redis/slots.js';
import { until } from '../../support/wait.js';
import type { Seat, Stage } from './stage.js';

export function moveTests(open: () => Stage): void {
  test('a partner that keeps spinning moves to a cell on another cluster node and back', async () => {
    const stage = open();
    const [seat] = stage.seats as [Seat, ...Seat[]];
    const [, others] = await stage.seatsOf(slotOfCell(seat.cell));
    const [host] = others as [Seat, ...Seat[]];
    const playing = stage.keepSpinning(stage.service, [seat, host], 'moving', 10);
    const ownSpins = (): number => playing.spun.filter((each) => each.seat === seat).length;
    const isSpinning = async (where: string): Promise<void> => {
      const before = ownSpins();
      await until(() => ownSpins() > before + 20, `it spins ${where}`);
    };
    await isSpinning('before it moves');
    for (const { cell } of [host, seat]) {
      await moveAndWait(stage.service.api.operator, seat.partner.partnerId, cell);
      await isSpinning(`in cell ${cell}`);
    }
    const { spun, others: failed } = await playing.end();
    // The tests in test/engine/cells check that no spin is refused during a move. Here a move may be slow,
    // but the responses must be correct.
    const codes = failed.map(({ body }) => String(body.errorCode));
    expect(codes.filter((code) => !['KS-5002', 'KS-4110', 'KS-4203'].includes(code))).toEqual([]);
    await stage.replaysHold(spun);
    await stage.allHolds();
  });
}
