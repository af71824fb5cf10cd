/**
 * Tests the limit of connections from one address with an HTTP server that does not report closed
 * connections, so that only the kernel knows how many are open.
 */
import { expect, test } from 'vitest';
import { Connections } from '../../../src/api/server/connections.js';
import { KernelConnections } from '../../../src/api/server/kernelConnections.js';
import { until } from '../../support/wait.js';

const PORT = 8080;
const PER_ADDRESS = 5;

/** Builds a table in the format of /proc/self/net/tcp with one connection from each address. */
const tableOf = (addresses: readonly string[]): string =>
  [
    '  sl  local_address rem_address   st',
    ...addresses.map((address, i) => {
      const client = Buffer.from(address.split('.').map(Number)).reverse().toString('hex').toUpperCase();
      return `${i}: 0100007F:1F90 ${client}:C350 01 00000000:00000000`;
    }),
    '',
  ].join('\n');

function counting(openInAll: number) {
  const limits = {
    total: 100_000,
    perAddress: PER_ADDRESS,
    isProxy: (address: string) => address === '10.0.0.1',
  };
  const connections = new Connections(limits);
  for (let i = 0; i < openInAll; i++) connections.add();
  const kernel = { table: tableOf([]), reads: 0 };
  const read = async (path: string): Promise<string> => {
    if (path.endsWith('6')) return '';
    kernel.reads++;
    return kernel.table;
  };
  return { kernel, counted: new KernelConnections(connections, () => PORT, read) };
}

test("reads the kernel's connection table only for addresses near the limit, never for proxies or loopback", async () => {
  const { kernel, counted } = counting(50);
  for (let i = 0; i < 100; i++) {
    expect(counted.isOver('10.0.0.1')).toBe(false);
    expect(counted.isOver('127.0.0.1')).toBe(false);
  }
  expect(kernel.reads).toBe(0);
  kernel.table = tableOf(Array<string>(PER_ADDRESS - 2).fill('203.0.113.1'));
  expect(counted.isOver('203.0.113.1')).toBe(false);
  expect(kernel.reads, 'nothing was counted before').toBe(1);
  const askedMs = performance.now();
  await until(() => performance.now() - askedMs > 1000, 'it may be asked again');
  expect([counted.isOver('203.0.113.1'), counted.isOver('203.0.113.1')]).toEqual([false, false]);
  expect(kernel.reads, 'three were open, and two came').toBe(1);
  kernel.table = tableOf(Array<string>(PER_ADDRESS + 1).fill('203.0.113.1'));
  expect(counted.isOver('203.0.113.1')).toBe(false);
  expect(kernel.reads, 'it may have six').toBe(2);
  await until(() => counted.isOver('203.0.113.1'), 'the count is known');
  expect(counted.isOver('203.0.113.2')).toBe(false);
});

test('keeps the event loop running while it counts many connections', async () => {
  const { kernel, counted } = counting(50);
  const many = Array.from({ length: 20_000 }, (_, i) => `10.1.${i >> 8}.${i & 255}`);
  kernel.table = tableOf([...many, ...Array<string>(PER_ADDRESS + 1).fill('203.0.113.1')]);
  let turns = 0;
  counted.isOver('203.0.113.1');
  while (!counted.isOver('203.0.113.1')) {
    await new Promise((resolve) => setImmediate(resolve));
    turns++;
  }
  expect(turns).toBeGreaterThan(20);
});
