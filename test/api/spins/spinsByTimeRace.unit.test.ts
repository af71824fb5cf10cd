/** A flush between two reads of `GET /spins`: what leaves the outbox meanwhile must not be missed. */
import { expect, test } from 'vitest';
import type { Services } from '../../../src/api/server/services.js';
import { spinRoutes } from '../../../src/api/spins/routes.js';

test.each([0, 1])('a page is not the last one where read %i let a flush through', async (flushAfterRead) => {
  // One entry was acknowledged. It is in the outbox, and then in the ledger.
  const entryId = 7n;
  let booked = 3n;
  let reads = 0;
  const read = <T>(what: T): T => {
    if (reads++ === flushAfterRead) booked = entryId;
    return what;
  };
  const services = {
    cells: {
      reads: { newestInOutbox: async () => read(booked < entryId ? entryId : 0n) },
      confirmations: { cameTo: async () => true },
    },
    store: {
      ledgerDays: { keptFrom: async () => undefined },
      communal: { noticesOfSpins: async () => new Map() },
      // Where the ledger has the entry there is a further page.
      spinHistory: {
        spinsByTime: async () =>
          read({
            entries: [],
            nextId: booked < entryId ? undefined : entryId,
            reach: { cell: 0, toId: booked },
          }),
      },
    },
    catalog: { game: () => undefined },
    spinIds: { encodeOne: String },
  } as unknown as Services;
  const [route] = spinRoutes(services);
  const request = { partner: { partnerId: 1, cell: 0 }, query: { limit: 10 } };
  const page = await route?.handle(request as never);
  expect(page).toMatchObject({ nextCursor: '6' });
});
