import { afterAll, beforeAll, expect, test } from 'vitest';
import type { EmbeddedStore } from '../../../src/app/embedded/index.js';
import { idsIn } from '../../../src/domain/entryId.js';
import { AnsweredIds } from '../../../src/engine/cells/answeredIds.js';
import { readOutbox } from '../../../src/engine/redis/cellRecords.js';
import { blockKey, cellKey, gamesKey } from '../../../src/engine/redis/keys.js';
import { RedisNode } from '../../../src/engine/redis/node.js';
import { fixedMap, RedisNodes } from '../../../src/engine/redis/nodes.js';
import { OutboxReader } from '../../../src/engine/redis/outboxReader.js';
import { LacksError, NotSentError } from '../../../src/engine/redis/scriptErrors.js';
import { Scripts } from '../../../src/engine/redis/scripts.js';
import { firstSegment } from '../../../src/engine/redis/segmentRecords.js';
import { adjustOnce } from '../../support/cellCommands.js';
import { Cleanup } from '../../support/cleanup.js';
import { CELL, dealOnce, GAME_ID, item } from '../../support/dealing.js';
import { ownRedis, rawRedis } from '../../support/redis.js';
import { until } from '../../support/wait.js';

/** The tests use two Redis servers: even cells are on the first server, and odd cells are on the second. */
const EVEN = 0;
const ODD = 1;
const EPOCH = 'data:1';

const cleanup = new Cleanup();
const servers: EmbeddedStore[] = [];
let nodes: RedisNodes;
let scripts: Scripts;

const adjust = (cell: number, requestId: string) =>
  adjustOnce(scripts, {
    cell,
    newestMove: undefined,
    epoch: EPOCH,
    intentId: 1,
    partnerId: 7,
    playerId: `player of ${cell}`,
    requestId,
    amountMicros: 1_000_000,
    openingBalanceMicros: 0,
    enforcesBalance: true,
  });

beforeAll(async () => {
  servers.push(await ownRedis(cleanup), await ownRedis(cleanup));
  const all = servers.map(({ url }) => new RedisNode(url, () => {}));
  for (const node of all) {
    cleanup.add(() => node.close());
    await node.open();
  }
  nodes = new RedisNodes(fixedMap(all, (cell) => cell % 2));
  scripts = new Scripts(nodes, {
    outboxMax: { entries: 500, bytes: 1_000_000 },
  });
  for (const cell of [EVEN, ODD]) {
    const serverId = nodes.of(cell).knownServerId();
    await nodes.cell(cell).claim({ fence: 1n, serverId });
    await nodes.cell(cell).open({ fence: 1n, serverId }, EPOCH, { segments: firstSegment(0n), away: [] });
  }
});
afterAll(() => cleanup.run());

/** Opens the cell of support/dealing.ts for dealing and loads a few outcomes. */
async function openGame(): Promise<void> {
  const owner = { fence: 1n, serverId: nodes.of(CELL).knownServerId() };
  await nodes.cell(CELL).clear(owner);
  await nodes.cell(CELL).open(owner, EPOCH, { segments: firstSegment(0n), away: [] });
  const outcomes = Buffer.from(Uint16Array.from([0, 1, 2, 0, 1]).buffer);
  await nodes.cell(CELL).loadBlock({ fence: 1n, token: EPOCH }, GAME_ID, 0, outcomes);
}

test('writes the data of a cell only on its own Redis node', async () => {
  for (const cell of [EVEN, ODD]) {
    await nodes.cell(cell).loadBlock({ fence: 1n, token: EPOCH }, GAME_ID, 0, Buffer.alloc(8));
    expect(await nodes.cell(cell).findGame(GAME_ID)).toMatchObject({ nextIndex: 0, queueEnd: 4 });
    const redis = rawRedis(servers[cell]!.url);
    const keys = await redis.keys('*');
    redis.disconnect();
    expect(keys.sort()).toEqual([blockKey(cell, GAME_ID, 0), cellKey(cell), gamesKey(cell)].sort());
  }
});

test('a repeated operation writes to Redis, so that WAIT covers the writes of the first attempt', async () => {
  await openGame();
  const node = rawRedis(servers[CELL % 2]!.url);
  const changes = async (): Promise<number> =>
    Number(/^rdb_changes_since_last_save:(\d+)/m.exec(await node.info('persistence'))![1]);
  const again = { operation: 1, epoch: EPOCH };
  const first = await dealOnce(scripts, [item()], again);
  const before = await changes();
  expect((await dealOnce(scripts, [item()], again)).buffer).toEqual(first.buffer);
  expect(await changes()).toBe(before + 1);
  node.disconnect();
});

test('a cell that lacks an entry which its caller has answered deals nothing', async () => {
  await openGame();
  const { buffer } = await dealOnce(scripts, [item()], { operation: 2, epoch: EPOCH });
  const newest = (await nodes.cell(CELL).head()).newestEntryId!;
  const answered = new AnsweredIds();
  answered.note(CELL, EPOCH, newest);
  const known = { operation: 3, epoch: EPOCH, answered: answered.newest(CELL, EPOCH)! };
  expect((await dealOnce(scripts, [item()], known)).buffer).not.toEqual(buffer);
  answered.note(CELL, EPOCH, newest + idsIn(3_600_000));
  const before = await nodes.cell(CELL).head();
  const behind = { operation: 4, epoch: EPOCH, answered: answered.newest(CELL, EPOCH)! };
  await expect(dealOnce(scripts, [item()], behind)).rejects.toThrow(LacksError);
  expect(await nodes.cell(CELL).head()).toEqual(before);
  // No spin was answered under another epoch, so a call under that epoch names no answered entry that the
  // cell could lack.
  expect(answered.newest(CELL, 'data:2')).toBe(undefined);
});

test('commands for several nodes are sent together, each to its own node', async () => {
  const adjusted: ReturnType<typeof adjust>[] = [];
  nodes.pipelined(() => {
    for (const cell of [EVEN, ODD]) adjusted.push(adjust(cell, 'together'));
  });
  for (const { afterMicros } of await Promise.all(adjusted)) expect(afterMicros).toBe(1_000_000);
});

test('a node that is down closes its own cells, while cells of the other node are dealt from, read and announced', async () => {
  const [even, odd] = nodes.all as [RedisNode, RedisNode];
  const reader = new OutboxReader(even, nodes, () => {});
  cleanup.add(() => reader.close());
  const announced: number[] = [];
  const listening = await nodes.listenForCommits(
    () => [EVEN, ODD],
    ({ cell }) => announced.push(cell),
    () => {},
  );
  cleanup.add(listening.end);
  const epochs = new Map([EVEN, ODD].map((cell) => [cell, EPOCH]));
  expect(await nodes.closed(epochs)).toEqual({ closed: [], away: [] });

  await servers[ODD]!.stop();
  await until(() => odd.serverId === undefined, 'the node is away');
  expect(even.isReady).toBe(true);
  await expect(nodes.cell(ODD).isOpen(EPOCH)).rejects.toThrow(NotSentError);
  await expect(adjust(ODD, 'away')).rejects.toThrow(NotSentError);
  expect(await nodes.closed(epochs)).toEqual({ closed: [], away: [ODD] });

  await adjust(EVEN, 'meanwhile');
  await until(() => reader.isAtNode, 'the reader is connected');
  const { cells } = await reader.read([{ cell: EVEN, cursor: 0n, epoch: EPOCH }], 0);
  const { cell, batches, isOfEpoch } = cells[0]!;
  expect({ cell, isOfEpoch }).toEqual({ cell: EVEN, isOfEpoch: true });
  const requestIds = batches.flatMap(({ records }) => readOutbox(records)).map(({ requestId }) => requestId);
  expect(requestIds).toEqual(expect.arrayContaining(['together', 'meanwhile']));

  await until(() => {
    nodes.announceCommit({ cell: EVEN, epoch: EPOCH, cursor: 1n });
    return announced.length > 0;
  }, 'the announcement arrives');
  expect(new Set(announced)).toEqual(new Set([EVEN]));
});

test("a new node that can't be reached does not end the listener for commits", async () => {
  const [even] = nodes.all as [RedisNode, RedisNode];
  const gone = new RedisNode('redis://127.0.0.1:1', () => {});
  let all = [even];
  const listeners = new Set<() => void>();
  const growing = new RedisNodes({
    ...fixedMap([even]),
    get nodes() {
      return all;
    },
    onChanged: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  });
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  process.on('unhandledRejection', note);
  cleanup.add(() => process.off('unhandledRejection', note));
  let failed = 0;
  const listening = await growing.listenForCommits(
    () => [EVEN],
    () => {},
    () => failed++,
  );
  cleanup.add(listening.end);
  all = [even, gone];
  for (const listener of listeners) listener();
  await until(() => failed > 1, 'it is tried again');
  expect(unhandled).toEqual([]);
});
