/** Tests that look-ups follow a change of the name servers. */
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import { nameServers } from '../../src/webhooks/allowedAddresses.js';
import { Cleanup } from '../support/cleanup.js';

const cleanup = new Cleanup();
afterEach(() => cleanup.run());

/** Starts a name server that gives one IPv4 address for each name. Returns its address. */
async function nameServer(address: readonly number[]): Promise<string> {
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const end = query.indexOf(0, 12) + 5;
    const isForIPv4 = query.readUInt16BE(end - 4) === 1;
    const head = Buffer.from(query.subarray(0, 12));
    head.writeUInt16BE(0x8180, 2);
    head.writeUInt16BE(isForIPv4 ? 1 : 0, 6);
    head.writeUInt32BE(0, 8);
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address]);
    socket.send(
      Buffer.concat([head, query.subarray(12, end), ...(isForIPv4 ? [record] : [])]),
      from.port,
      from.address,
    );
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  cleanup.add(() => socket.close());
  return `127.0.0.1:${socket.address().port}`;
}

test('a look-up asks the present name servers of the system, not those of the start', async () => {
  const before = await nameServer([192, 0, 2, 1]);
  const after = await nameServer([192, 0, 2, 2]);
  let present = before;
  const resolve = nameServers(() => {
    const resolver = new Resolver({ timeout: 1500, tries: 2 });
    resolver.setServers([present]);
    return resolver;
  });
  expect(await resolve('shop.example')).toEqual(['192.0.2.1']);
  present = after;
  expect(await resolve('shop.example')).toEqual(['192.0.2.2']);
});
