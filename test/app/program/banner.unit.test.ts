/** Tests that the text shown after a start has addresses that can be copied. */
import { expect, test } from 'vitest';
import { readConfig } from '../../../src/app/config.js';
import { bannerOf } from '../../../src/app/program/banner.js';

const URLS = /https?:\/\/[^\s']+/g;

test.each([
  ['127.0.0.1', '127.0.0.1'],
  ['::1', '[::1]'],
  ['0.0.0.0', '127.0.0.1'],
  ['::', '[::1]'],
  ['fd00::7', '[fd00::7]'],
])('the banner of HOST=%s has valid addresses of this machine', (HOST, host) => {
  const banner = bannerOf(readConfig({ HOST, METRICS_HOST: HOST }), {
    port: 8080,
    metricsPort: 9464,
    operatorKey: 'k',
    isNewOperatorKey: true,
    redisUrl: '',
    databaseUrl: '',
    demo: { gameId: 1, wagerUsd: 1, raffleId: 2, ticketPriceUsd: 1, apiKey: 'ks_demo' },
    waitsFor: () => [],
    stop: async () => {},
  });
  const urls = banner.match(URLS)!.map((url) => new URL(url));
  expect(urls.length).toBe(6);
  expect(new Set(urls.map((url) => url.hostname))).toEqual(new Set([host]));
});
