import { expect, test } from 'vitest';
import { readClusterNodes } from '../../../src/engine/redis/clusterView.js';
import { cellKey, readBlockKey } from '../../../src/engine/redis/keys.js';
import { RedisNode } from '../../../src/engine/redis/node.js';
import { asScriptError, NotHereError } from '../../../src/engine/redis/scriptErrors.js';
import { closedName, mayLack } from '../../../src/engine/redis/serverIdentity.js';
import { CELLS, pinnedName, SLOTS, slotOfCell, slotOfTag } from '../../../src/engine/redis/slots.js';

test('computes the same hash slot for a tag as Redis', () => {
  // The expected values are those that CLUSTER KEYSLOT returns for 123456789 and user1000.
  expect(slotOfTag('123456789')).toBe(0x31c3);
  expect(slotOfTag('user1000')).toBe(3443);
});

test("the keys of a cell have a hash tag of its slot, and the cell's number can be parsed from a key", () => {
  for (let cell = 0; cell < CELLS; cell++) {
    const tag = /\{(.*)\}/.exec(cellKey(pinnedName(cell)))![1]!;
    expect(slotOfTag(tag)).toBe(slotOfCell(cell));
    expect(readBlockKey(`{${tag}}:block:7:9`)).toEqual({ cell, gameId: 7, fromIndex: 9 });
  }
  expect(cellKey(5)).toBe('{c5}:cell');
});

test.each([
  [256, 8, [32]],
  [256, 3, [85, 86]],
  [16, 3, [5, 6]],
  [16, 2, [8]],
  [20, 3, [6, 8]],
])(
  '%i cells on %i nodes with equal slot ranges are distributed as %j cells per node',
  (cells, nodes, counts) => {
    const held = Array.from({ length: nodes }, () => 0);
    for (let cell = 0; cell < cells; cell++) held[Math.floor((slotOfCell(cell) * nodes) / SLOTS)]!++;
    expect([...new Set(held)].sort((a, b) => a - b)).toEqual(counts);
  },
);

test('reads the primaries, their slots and their replicas from a reply to CLUSTER NODES', () => {
  const text = [
    'aaa 10.0.0.1:7000@17000,node-a.example master - 0 1 7 connected 0-99 200 [300->-bbb]',
    'bbb :7001@17001 myself,master - 0 0 2 connected 100-199',
    'ccc ::1:7002@17002 master,fail - 1 1 3 disconnected 201-16383',
    'ddd 10.0.0.4:7003@17003 slave aaa 0 1 7 connected',
    'eee 10.0.0.5:7004@17004 slave,fail bbb 0 1 2 disconnected',
    'fff 10.0.0.6:7005@17005 slave bbb 0 1 2 connected',
    '',
  ].join('\n');
  const { primaries, self, nodeIds, replicas } = readClusterNodes(text, 'asked.example');
  expect(primaries).toEqual([
    {
      nodeId: 'aaa',
      address: 'node-a.example:7000',
      configEpoch: 7,
      ranges: [
        [0, 99],
        [200, 200],
      ],
    },
    { nodeId: 'bbb', address: 'asked.example:7001', configEpoch: 2, ranges: [[100, 199]] },
    { nodeId: 'ccc', address: '[::1]:7002', configEpoch: 3, ranges: [[201, 16_383]] },
  ]);
  expect(self?.nodeId).toBe('bbb');
  expect([...nodeIds]).toEqual(['aaa', 'bbb', 'ccc', 'ddd', 'eee', 'fff']);
  // The list includes the replica that is down, because it may come back and be promoted.
  expect(replicas).toEqual(['10.0.0.5:7004', '10.0.0.6:7005']);
});

test('a server may lack acknowledged entries after a takeover by another server, but not after a mere restart', () => {
  const before = 'run1.repl1.nodeA.1';
  expect(mayLack(before, before)).toBe(false);
  // The server restarted from its own append-only file.
  expect(mayLack(before, 'run2.repl2.nodeA.1')).toBe(false);
  // The server process is the same, but the server has got its first replica or has taken over a slot.
  expect(mayLack(before, 'run1.repl2.nodeA.1')).toBe(false);
  expect(mayLack(before, 'run1.repl1.nodeA.4')).toBe(false);
  // A replica was promoted to primary, so the server may lack acknowledged entries.
  expect(mayLack(before, 'run9.repl2.nodeB.2')).toBe(true);
  // Another server was promoted and later the first server again, with or without a restart of the first in
  // between.
  expect(mayLack(before, 'run1.repl3.nodeA.3')).toBe(true);
  expect(mayLack(before, 'run2.repl3.nodeA.3')).toBe(true);
  // The cell was closed under this server id, so no spin was dealt from the server in the meantime.
  expect(mayLack(closedName(before), 'run2.repl2.nodeA.1')).toBe(false);
  expect(mayLack(closedName(before), 'run9.repl2.nodeB.2')).toBe(true);
  // A server without a cluster can only restart from its own append-only file.
  expect(mayLack('run1', 'run2')).toBe(false);
  expect(closedName('run1')).toBe('none');
});

test.each([
  'MOVED 3999 127.0.0.1:6381',
  'ASK 3999 127.0.0.1:6381',
  'TRYAGAIN Multiple keys request during rehashing of slot',
  'CLUSTERDOWN The cluster is down',
  'ERR Error running script: Script attempted to access a non local key in a cluster node',
])('the Redis error %s means that nothing was done, and no redirection is followed', (message) => {
  const script = new RedisNode('redis://unused.invalid', () => {}).script('deal');
  expect(asScriptError(new Error(message), script)).toBeInstanceOf(NotHereError);
});
