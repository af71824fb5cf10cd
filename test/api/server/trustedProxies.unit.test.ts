/**
 * Tests how the service finds the client behind proxies: it accepts X-Forwarded-For and the PROXY protocol
 * only from trusted proxies.
 */
import { describe, expect, test } from 'vitest';
import { parseProxyHeader } from '../../../src/api/server/proxyHeader.js';
import { clientNetwork, TrustedProxies } from '../../../src/domain/trustedProxies.js';

describe('the client of a request behind proxies', () => {
  test.each([
    ['nobody is trusted', '', '198.51.100.9', '', '203.0.113.1', '198.51.100.9'],
    ['one hop', '1', '10.0.0.1', '', '203.0.113.1', '203.0.113.1'],
    [
      'one hop: what the client wrote itself is not believed',
      '1',
      '10.0.0.1',
      '',
      '1.1.1.1, 203.0.113.1',
      '203.0.113.1',
    ],
    ['two hops', '2', '10.0.0.1', '', '1.1.1.1, 203.0.113.1, 10.0.0.2', '203.0.113.1'],
    ['more hops than addresses', '3', '10.0.0.1', '', '203.0.113.1', '203.0.113.1'],
    ['a trusted network', '10.0.0.0/8', '10.9.9.9', '', '1.1.1.1, 203.0.113.1, 10.0.0.2', '203.0.113.1'],
    ['a connection from outside it', '10.0.0.0/8', '198.51.100.9', '', '203.0.113.1', '198.51.100.9'],
    ['networks of both families', '10.0.0.0/8, fd00::/8', 'fd00::5', '', '2001:db8::1', '2001:db8::1'],
    ['an IPv4 proxy in IPv6 form', '10.0.0.1', '::ffff:10.0.0.1', '', '203.0.113.1', '203.0.113.1'],
    ['a PROXY header', '1', '10.0.0.1', '203.0.113.7', '', '203.0.113.7'],
    ['a PROXY header of a stranger', '10.0.0.0/8', '198.51.100.9', '203.0.113.7', '', '198.51.100.9'],
    ['a PROXY header before a proxy', '2', '10.0.0.1', '10.0.0.2', '203.0.113.1', '203.0.113.1'],
    ['no address at all', '1', '10.0.0.1', '', 'unknown', '10.0.0.1'],
    ['nothing sent', '1', '10.0.0.1', '', '', '10.0.0.1'],
  ])(
    'finds the client of a request in the case: %s',
    (_what, setting, remote, proxied, forwardedFor, client) => {
      expect(new TrustedProxies(setting).clientOf({ remote, proxied, forwardedFor })).toBe(client);
    },
  );

  test.each(['11', 'nginx', '10.0.0.0/33', '10.0.0.1,', '-1'])(
    'refuses the setting TRUST_PROXY=%s',
    (setting) => {
      expect(() => new TrustedProxies(setting)).toThrow(/must be/);
    },
  );

  test('identifies a client by its IPv4 address or its IPv6 /64', () => {
    expect(clientNetwork('203.0.113.1')).toBe('203.0.113.1');
    expect(clientNetwork('::ffff:203.0.113.1')).toBe('203.0.113.1');
    expect(clientNetwork('2001:db8:0:1:aaaa::1')).toBe(clientNetwork('2001:0db8:0:1:bbbb::2'));
    expect(clientNetwork('2001:db8:0:1::1')).not.toBe(clientNetwork('2001:db8:0:2::1'));
  });
});

describe('PROXY protocol headers', () => {
  const v2 = (command: number, family: number, addresses: Buffer) =>
    Buffer.concat([
      Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1'),
      Buffer.of(command, family, 0, addresses.length),
      addresses,
    ]);
  const ipv4 = v2(0x21, 0x11, Buffer.of(203, 0, 113, 7, 10, 0, 0, 1, 1, 187, 31, 144));
  const ipv6 = v2(0x21, 0x21, Buffer.from(`20010db8${'0'.repeat(23)}1${'0'.repeat(32)}01bb1f90`, 'hex'));
  const text = Buffer.from('PROXY TCP4 203.0.113.7 10.0.0.1 443 8080\r\n');

  test.each([
    ['version 1', text, '203.0.113.7'],
    ['version 1 without an address', Buffer.from('PROXY UNKNOWN\r\n'), ''],
    ['version 2', ipv4, '203.0.113.7'],
    ['version 2, IPv6', ipv6, '2001:0db8:0000:0000:0000:0000:0000:0001'],
    ["version 2, of the balancer's own", v2(0x20, 0, Buffer.alloc(0)), ''],
    ['none', Buffer.alloc(0), ''],
  ])(
    'reads a PROXY protocol header (%s) completely, at whatever byte it is split',
    (_what, header, address) => {
      const bytes = Buffer.concat([header, Buffer.from('GET / HTTP/1.1\r\n')]);
      expect(parseProxyHeader(bytes)).toEqual({ address, bytes: header.length });
      for (let split = 1; split < header.length; split++)
        expect(parseProxyHeader(bytes.subarray(0, split))).toBeUndefined();
    },
  );

  test.each([
    Buffer.from('PROXY TCP9 1 2 3 4\r\n'),
    Buffer.from(`PROXY TCP4 ${'1'.repeat(200)}`),
    v2(0x31, 0x11, Buffer.alloc(12)),
  ])('refuses an invalid PROXY protocol header', (bytes) => {
    expect(() => parseProxyHeader(bytes)).toThrow();
  });
});
