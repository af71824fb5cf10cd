/**
 * Tests reads of the data of a partner that has moved, in a process that does not know of the move yet. The
 * data must come from the new cell.
 */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ERRORS } from '../../../src/domain/errors.js';
import type { Partner } from '../../../src/domain/game.js';
import { PartnerReads } from '../../../src/engine/cells/partnerReads.js';
import { isTurnedAway, writeAway } from '../../../src/engine/redis/cellHead.js';
import { writePlayer } from '../../../src/engine/redis/cellRecords.js';
import { cellKey, playersKey } from '../../../src/engine/redis/keys.js';
import { Cleanup } from '../../support/cleanup.js';
import { partner as somePartner } from '../../support/dealing.js';
import { type OpenNodes, openNodes, ownRedis, rawRedis } from '../../support/redis.js';

const OLD = 0;
const NEW = 1;
const ID = somePartner.partnerId;
const cleanup = new Cleanup();
let redis: Redis;
let nodes: OpenNodes;

beforeAll(async () => {
  const { url } = await ownRedis(cleanup);
  redis = rawRedis(url);
  cleanup.add(() => redis.disconnect());
  nodes = await openNodes(url);
  cleanup.add(() => nodes.close());
});
beforeEach(() => redis.flushdb());
afterAll(() => cleanup.run());

const have = (cell: number, balanceMicros: number) =>
  redis.hset(
    playersKey(cell),
    `${ID}:p`,
    writePlayer({ entryId: 5n, outcomeCode: 0, balanceMicros, entryNumber: 1, firstId: 5n }),
  );
const away = (cell: number, backBy?: number) =>
  redis.hset(
    cellKey(cell),
    'away',
    writeAway([
      { partnerId: 9, backBy: undefined },
      { partnerId: ID, backBy },
    ]),
  );

/** @param then states of the partner in the catalog after each refresh, in order */
function reads(known: Partial<Partner>, ...then: (Partial<Partner> | undefined)[]) {
  const asked: (number | undefined)[] = [];
  const partnerReads = new PartnerReads(
    nodes.nodes,
    { partner: () => ({ ...somePartner, cell: OLD, ...known }), refresh: () => Promise.resolve() },
    {
      where: async ({ cell }) => {
        asked.push(cell);
        const next = then.shift();
        return next && { ...somePartner, ...next };
      },
    },
  );
  return { asked, player: async () => (await partnerReads.player(ID, 'p'))?.balanceMicros };
}

test('reads the data of a partner that has not moved with a single read', async () => {
  await have(OLD, 1);
  const { asked, player } = reads({});
  expect([await player(), asked]).toEqual([1, []]);
});

test('reads the data of a partner that has moved from its new cell', async () => {
  await Promise.all([have(NEW, 2), away(OLD)]);
  const { asked, player } = reads({}, { cell: OLD }, { cell: NEW, newestMove: 4 });
  expect([await player(), asked]).toEqual([2, [OLD, OLD]]);
});

test('reads the data of a partner that moved away and back only once the catalog knows of the latest move', async () => {
  await Promise.all([have(OLD, 3), away(OLD, 7)]);
  const behind = reads({ newestMove: 6 }, { cell: OLD, newestMove: 7 });
  expect([await behind.player(), behind.asked]).toEqual([3, [OLD]]);
  const { asked, player } = reads({ newestMove: 7 });
  expect([await player(), asked]).toEqual([3, []]);
});

test('a read fails with KS-5002 if the move of the partner takes too long', async () => {
  await Promise.all([have(OLD, 1), away(OLD)]);
  await expect(reads({}, undefined).player()).rejects.toMatchObject({ entry: ERRORS.unavailable });
});

test.each([
  [';', 7, 0, false],
  [';7;', 7, 9, true],
  [';17;77;', 7, 0, false],
  [';17:3;7:3;', 7, 2, true],
  [';17:3;7:3;', 7, 3, false],
  [';7:12;', 7, 3, true],
])(
  'if the `away` field of a cell is %s, a request of partner %i from a front end that knows move %i is rejected: %s',
  (field, partnerId, knownMove, isAway) => {
    expect(isTurnedAway(field, partnerId, knownMove)).toBe(isAway);
  },
);
