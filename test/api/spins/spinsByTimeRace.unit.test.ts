/**
 * Tests a flush between two reads of `GET /spins`: an entry that leaves the outbox meanwhile must not be
 * missed.
 */
import { expect, test } from 'vitest';
import type { JsonText } from '../../../src/api/server/route.js';
import type { Services } from '../../../src/api/server/services.js';
import { spinRoutes } from '../../../src/api/spins/routes.js';

test.each([0, 1])(
  'does not mark a page as the last one if a flush happens after read %i',
  async (flushAfterRead) => {
    // An acknowledged entry is in the outbox at first, and in the ledger after the flush.
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
        // Before the flush, the ledger lacks the entry, so this page is the last one. After the flush, the
        // page has a `nextId`, because the entry follows it.
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
    const page = (await route?.handle(request as never)) as JsonText;
    expect(JSON.parse(page.text)).toMatchObject({ nextCursor: '6' });
  },
);
