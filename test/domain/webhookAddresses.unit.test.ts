/** Where webhooks may lead: no URL and no answer of a name server leads into this machine or its network. */
import { describe, expect, test } from 'vitest';
import { isPublicAddress, judgeUrl } from '../../src/domain/webhookUrl.js';
import {
  allowedAddresses,
  DisallowedError,
  judgeRegistration,
  type Resolve,
} from '../../src/webhooks/allowedAddresses.js';
import { ALLOWED, DISALLOWED, INVALID } from '../support/webhookUrls.js';

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
