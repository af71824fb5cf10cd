/** Where webhooks may lead: no URL and no answer of a name server leads into this machine or its network. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isPublicAddress, judgeUrl } from '../../src/domain/destination.js';
import {
  allowedAddresses,
  DisallowedError,
  judgeRegistration,
  type Resolve,
} from '../../src/webhooks/destination.js';
import {
  type Answer,
  type Client,
  freshStores,
  startService,
  type TestPartner,
  type TestStores,
} from '../support/service.js';

/** Forms of addresses and names that lead into a machine or a network of its own. */
const DISALLOWED = [
  // This machine, in every way to write it that a URL takes.
  'https://127.0.0.1/',
  'https://127.255.255.254:8443/hook',
  'https://127.1/',
  'https://127.0.1/',
  'https://2130706433/',
  'https://0x7f.1/',
  'https://0x7f000001/',
  'https://0x7F.0x0.0x0.0x1/',
  'https://017700000001/',
  'https://0177.0.0.1/',
  'https://%31%32%37.0.0.1/',
  'https://①②⑦.⓪.⓪.①/',
  'https://127.0.0.1./',
  'https://0/',
  'https://0.0.0.0/',
  'https://0.1.2.3/',
  'https://[::1]/',
  'https://[0:0:0:0:0:0:0:1]/',
  'https://[::]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[::ffff:7f00:1]/',
  'https://[::127.0.0.1]/',
  'https://[::ffff:0:127.0.0.1]/',
  // Networks of one's own.
  'https://10.0.0.1/',
  'https://172.16.0.1/',
  'https://172.31.255.255/',
  'https://192.168.1.1/',
  'https://167772161/',
  'https://100.64.0.1/',
  'https://100.127.255.254/',
  'https://169.254.1.1/',
  'https://[fe80::1]/',
  'https://[fec0::1]/',
  'https://[fc00::1]/',
  'https://[fd12:3456:789a::1]/',
  'https://[::ffff:10.0.0.1]/',
  'https://[::ffff:192.168.0.1]/',
  // Metadata of cloud machines.
  'https://169.254.169.254/latest/meta-data/',
  'https://[::ffff:169.254.169.254]/',
  'https://[fd00:ec2::254]/',
  'https://100.100.100.200/',
  'https://168.63.129.16/',
  'https://192.0.0.192/',
  'https://metadata.google.internal/',
  // An address inside another one.
  'https://[64:ff9b::7f00:1]/',
  'https://[64:ff9b::10.0.0.1]/',
  'https://[64:ff9b:1::a00:1]/',
  'https://[2002:7f00:1::]/',
  'https://[2002:c0a8:101::1]/',
  'https://[2001::1]/',
  'https://[2001:0:53aa:64c:0:7bff:80ff:fffe]/',
  // Nobody's, everybody's, and those of books.
  'https://224.0.0.1/',
  'https://239.255.255.255/',
  'https://[ff02::1]/',
  'https://255.255.255.255/',
  'https://240.0.0.1/',
  'https://192.0.2.1/',
  'https://198.51.100.7/',
  'https://203.0.113.9/',
  'https://[2001:db8::1]/',
  'https://[3fff::1]/',
  'https://198.18.0.1/',
  'https://198.19.255.255/',
  'https://[2001:2::1]/',
  'https://192.88.99.1/',
  'https://[100::1]/',
  'https://[5f00::1]/',
  // Names that are never public.
  'https://localhost/',
  'https://localhost:8443/',
  'https://LocalHost./',
  'https://hooks.localhost/',
  'https://localhost.localdomain/',
  'https://printer.local/',
  'https://router.home.arpa/',
  'https://vault.internal/',
  'https://intranet/',
  // Without TLS as well.
  'http://127.0.0.1:8080/',
  'http://169.254.169.254/latest/meta-data/',
  'http://[::1]:3000/',
  'http://0.0.0.0/',
  'http://localhost./',
];

/** What is no URL that could be called. */
const INVALID = [
  '',
  'hooks.example.com',
  '//hooks.example.com/',
  'https://',
  'https:///hooks.example.com',
  'https:hooks.example.com',
  'https:\\\\hooks.example.com',
  'https://hooks.example.com\\@10.0.0.1/',
  ' https://hooks.example.com/',
  'https://hooks.example.com/ ',
  'https://hooks.exa\tmple.com/',
  'https://hooks.example.com/\n',
  'https://hooks.example.com/\u0000',
  'https://hooks.example.com/\ud800',
  'https://hooks.example.com:99999/',
  'https://hooks.example.com:0/',
  'https://user@hooks.example.com/',
  'https://user:password@hooks.example.com/',
  'https://:password@hooks.example.com/',
  'https://hooks.example.com/#fragment',
  'https://hooks.example.com/#',
  'https://[fe80::1%25eth0]/',
  'https://[::1/',
  'https://1.2.3.4.5/',
  'https://256.1.1.1/',
  'http://hooks.example.com/',
  'ftp://hooks.example.com/',
  'file:///etc/passwd',
  'gopher://127.0.0.1:6379/_FLUSHALL',
  'javascript:alert(1)',
  'data:text/plain,x',
  `https://hooks.example.com/${'a'.repeat(2048)}`,
];

const ALLOWED = [
  'https://hooks.example.com',
  'https://hooks.example.com/',
  'https://hooks.example.com:8443/spindle?tenant=7&x=%20',
  'HTTPS://HOOKS.EXAMPLE.COM/Path',
  'https://hooks.example.com./',
  'https://bücher.example/',
  'https://xn--bcher-kva.example/',
  'https://8.8.8.8/',
  'https://1.1/',
  'https://134744072/',
  'https://93.184.216.34:9443/',
  'https://[2606:4700:4700::1111]/',
  'https://[2a00:1450:4001:830::200e]/hook',
  'https://localhost.example.com/',
  'https://internal.example.com/',
  `https://hooks.example.com/${'a'.repeat(2022)}`,
];

/** Every name is public. */
const elsewhere: Resolve = async () => ['93.184.216.34', '2606:2800:220:1:248:1893:25c8:1946'];

describe('a URL by itself', () => {
  test.each(DISALLOWED)('%s leads where no webhook may', (url) => {
    expect(judgeUrl(url, 'production').refusal).toBe('disallowed');
    expect(judgeUrl(url, 'sandbox').refusal).toBe('disallowed');
  });
  test.each(INVALID)('%j can not be called', (url) => {
    expect(judgeUrl(url, 'production').refusal).toBe('invalid');
    expect(judgeUrl(url, 'sandbox').refusal).toBe('invalid');
  });
  test.each(ALLOWED)('%s may be called', (url) => {
    expect(judgeUrl(url, 'production')).toEqual({});
    expect(judgeUrl(url, 'sandbox')).toEqual({});
  });
  test('http://localhost is for the sandbox only, on any port', async () => {
    for (const url of ['http://localhost', 'http://localhost:1/', 'http://LOCALHOST:65535/hook?x=1']) {
      expect(judgeUrl(url, 'sandbox')).toEqual({});
      expect(judgeUrl(url, 'production').refusal).toBe('disallowed');
      // Whatever a name server says of it: it is this machine.
      expect(await allowedAddresses(url, 'sandbox', elsewhere)).toEqual(['127.0.0.1', '::1']);
    }
  });
});

/** The hosts of a list that are addresses as they stand. */
const addressesOf = (urls: readonly string[]): string[] =>
  urls.map((url) => new URL(url).hostname.replace(/^\[|\]$/g, '')).filter((host) => /^[\d.]+$|:/.test(host));

describe('what a name resolves to', () => {
  const refused = addressesOf(DISALLOWED);
  const at = (...addresses: string[]): Resolve => {
    return async () => addresses;
  };

  test('is judged as an address in a URL is, and one address that is not public is enough to refuse', async () => {
    expect(new Set(refused).size).toBeGreaterThanOrEqual(40);
    for (const address of refused) {
      expect(isPublicAddress(address), address).toBe(false);
      for (const resolve of [at(address), at('93.184.216.34', address), at(address, '2606:4700::1111')]) {
        const url = 'https://hooks.example.com/';
        await expect(allowedAddresses(url, 'production', resolve), address).rejects.toThrow(DisallowedError);
        expect((await judgeRegistration(url, 'production', resolve)).refusal).toBe('disallowed');
      }
    }
    const allowed = addressesOf(ALLOWED);
    expect(await allowedAddresses('https://hooks.example.com/', 'production', at(...allowed))).toEqual(
      allowed,
    );
  });

  test('is not asked for an address', async () => {
    const never: Resolve = () => Promise.reject(new Error('asked'));
    expect(await allowedAddresses('https://8.8.8.8/', 'production', never)).toEqual(['8.8.8.8']);
    await expect(allowedAddresses('https://127.1/', 'production', never)).rejects.toThrow(DisallowedError);
  });

  test('may be unknown at registration, not at a connection', async () => {
    const nobody: Resolve = () => Promise.reject(new Error('ENOTFOUND'));
    expect(await judgeRegistration('https://hooks.example.com/', 'production', nobody)).toEqual({});
    await expect(allowedAddresses('https://hooks.example.com/', 'production', nobody)).rejects.toThrow(
      'ENOTFOUND',
    );
  });

  test('is not waited for without end at registration', async () => {
    const silent: Resolve = () => new Promise(() => {});
    expect(await judgeRegistration('https://hooks.example.com/', 'production', silent)).toEqual({});
  });
});

describe('at registration', () => {
  let stores: TestStores;
  let client: Client & { stop(): Promise<void> };
  let sandbox: TestPartner;
  let production: TestPartner;
  const names = new Map<string, string[]>();

  beforeAll(async () => {
    stores = await freshStores();
    const resolve: Resolve = async (name) => names.get(name) ?? ['93.184.216.34'];
    client = await startService(stores, {}, { resolve });
    sandbox = await client.newPartner();
    production = await client.newPartner({ environment: 'production' });
  });
  afterAll(async () => {
    await client.stop();
    await stores.drop();
  });

  const register = (partner: TestPartner, url: unknown): Promise<Answer> =>
    client.partner('POST', '/webhooks', partner.key, { url, events: ['spin.large_win'] });
  const refused = (errorCode: string) => ({
    status: 400,
    body: { status: 'error', errorCode, details: [{ path: '/url', message: expect.any(String) }] },
  });

  test('each form is refused with its code, and nothing is registered', async () => {
    for (const partner of [sandbox, production]) {
      for (const url of DISALLOWED)
        expect(await register(partner, url), url).toMatchObject(refused('KS-4217'));
      for (const url of [...INVALID, 7, null, {}, ['https://8.8.8.8/']]) {
        expect(await register(partner, url), String(url)).toMatchObject(refused('KS-4106'));
      }
      expect((await client.partner('GET', '/webhooks', partner.key)).body).toEqual({ webhooks: [] });
    }
  });

  test('each that may be called is registered as it was sent', async () => {
    for (const url of ALLOWED) {
      expect(await register(production, url), url).toMatchObject({ status: 201, body: { url } });
    }
    expect(await register(sandbox, 'http://localhost:9000/x')).toMatchObject({ status: 201 });
    expect(await register(production, 'http://localhost:9000/x')).toMatchObject(refused('KS-4217'));
  });

  test('a name is refused for what it resolves to', async () => {
    names.set('rebound.example.com', ['93.184.216.34', '10.0.0.7']);
    expect(await register(production, 'https://rebound.example.com/')).toMatchObject(refused('KS-4217'));
    names.set('rebound.example.com', ['93.184.216.34']);
    expect((await register(production, 'https://rebound.example.com/')).status).toBe(201);
  });
});
