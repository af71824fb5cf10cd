/**
 * Tests which URLs webhooks may have: no URL and no response of a name server may lead to this machine or its
 * network.
 */
import { describe, expect, test } from 'vitest';
import { isPublicAddress, judgeUrl } from '../../src/domain/webhookUrl.js';
import {
  allowedAddresses,
  DisallowedError,
  judgeRegistration,
  type Resolve,
} from '../../src/webhooks/allowedAddresses.js';
import { ALLOWED, DISALLOWED, INVALID } from '../support/webhookUrls.js';

/** A resolver for which every name has public addresses. */
const elsewhere: Resolve = async () => ['93.184.216.34', '2606:2800:220:1:248:1893:25c8:1946'];

describe('URLs of webhooks', () => {
  test.each(DISALLOWED)('refuses %s as a webhook URL, because it leads to a forbidden address', (url) => {
    expect(judgeUrl(url, 'production').refusal).toBe('disallowed');
    expect(judgeUrl(url, 'sandbox').refusal).toBe('disallowed');
  });
  test.each(INVALID)('refuses %j as a webhook URL, because it is invalid', (url) => {
    expect(judgeUrl(url, 'production').refusal).toBe('invalid');
    expect(judgeUrl(url, 'sandbox').refusal).toBe('invalid');
  });
  test.each(ALLOWED)('accepts %s as a webhook URL', (url) => {
    expect(judgeUrl(url, 'production')).toEqual({});
    expect(judgeUrl(url, 'sandbox')).toEqual({});
  });
  test('accepts http://localhost as a webhook URL in the sandbox only, on any port', async () => {
    for (const url of ['http://localhost', 'http://localhost:1/', 'http://LOCALHOST:65535/hook?x=1']) {
      expect(judgeUrl(url, 'sandbox')).toEqual({});
      expect(judgeUrl(url, 'production').refusal).toBe('disallowed');
      // localhost means this machine, whatever a name server answers.
      expect(await allowedAddresses(url, 'sandbox', elsewhere)).toEqual(['127.0.0.1', '::1']);
    }
  });
});

/** Returns the hosts in a list of URLs that are IP addresses. */
const addressesOf = (urls: readonly string[]): string[] =>
  urls.map((url) => new URL(url).hostname.replace(/^\[|\]$/g, '')).filter((host) => /^[\d.]+$|:/.test(host));

describe('resolved addresses of webhook hosts', () => {
  const refused = addressesOf(DISALLOWED);
  const at = (...addresses: string[]): Resolve => {
    return async () => addresses;
  };

  test('refuses a webhook host if any of its resolved addresses is not public', async () => {
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

  test('does not ask a name server for a webhook URL with an IP address', async () => {
    const never: Resolve = () => Promise.reject(new Error('asked'));
    expect(await allowedAddresses('https://8.8.8.8/', 'production', never)).toEqual(['8.8.8.8']);
    await expect(allowedAddresses('https://127.1/', 'production', never)).rejects.toThrow(DisallowedError);
  });

  test('accepts an unresolvable webhook host at registration, but not at a delivery', async () => {
    const nobody: Resolve = () => Promise.reject(new Error('ENOTFOUND'));
    expect(await judgeRegistration('https://hooks.example.com/', 'production', nobody)).toEqual({});
    await expect(allowedAddresses('https://hooks.example.com/', 'production', nobody)).rejects.toThrow(
      'ENOTFOUND',
    );
  });

  test('does not wait for a slow name server when a webhook is registered', async () => {
    const silent: Resolve = () => new Promise(() => {});
    expect(await judgeRegistration('https://hooks.example.com/', 'production', silent)).toEqual({});
  });
});
