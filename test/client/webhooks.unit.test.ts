/**
 * Tests that the client verifies deliveries like the public library of Standard Webhooks, and that it fits
 * into a browser bundle.
 */
import { join } from 'node:path';
import { build } from 'esbuild';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { verifyWebhook } from '../../clients/typescript/src/webhooks.js';
import { ROOT } from '../support/root.js';

const BUNDLE_BYTES_MAX = 26_000;
const secretOf = (byte: number): string => `whsec_${Buffer.alloc(32, byte).toString('base64')}`;
const SECRET = secretOf(1);
const BODY = JSON.stringify({ id: 'evt_1', event: 'spin.large_win', data: { playerId: 'Zoë' } });

function headersOf(secret: string, body = BODY, at = new Date()): Record<string, string> {
  return {
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign('evt_1', at, body),
  };
}

test('the client verifies a delivery given as text or bytes, and with either of two signatures', async () => {
  // All headers are signed with the same time, because one of the headers contains the second of the
  // signature.
  const at = new Date();
  const headers = headersOf(SECRET, BODY, at);
  const event = JSON.parse(BODY);
  expect(await verifyWebhook({ body: BODY, headers, secret: SECRET })).toEqual(event);
  expect(
    await verifyWebhook({ body: Buffer.from(BODY), headers: new Headers(headers), secret: SECRET }),
  ).toEqual(event);
  const rotated = headersOf(secretOf(2), BODY, at);
  rotated['webhook-signature'] += ` ${headers['webhook-signature']}`;
  for (const secret of [SECRET, secretOf(2)]) {
    expect(await verifyWebhook({ body: BODY, headers: rotated, secret })).toEqual(event);
  }
});

test('the client refuses a delivery that was changed, is old, or is signed with another secret', async () => {
  const headers = headersOf(SECRET);
  const old = headersOf(SECRET, BODY, new Date(Date.now() - 400_000));
  const { 'webhook-signature': _, ...unsigned } = headers;
  for (const delivery of [
    { body: `${BODY} `, headers, secret: SECRET },
    { body: BODY, headers: { ...headers, 'webhook-id': 'evt_2' }, secret: SECRET },
    { body: BODY, headers: { ...headers, 'webhook-timestamp': 'now' }, secret: SECRET },
    { body: BODY, headers: { ...headers, 'webhook-signature': 'v1,!' }, secret: SECRET },
    { body: BODY, headers: old, secret: SECRET },
    { body: BODY, headers: unsigned, secret: SECRET },
    { body: BODY, headers, secret: secretOf(3) },
    { body: BODY, headers, secret: 'secret' },
  ]) {
    await expect(verifyWebhook(delivery)).rejects.toMatchObject({ name: 'WebhookVerificationError' });
  }
  expect(
    await verifyWebhook({ body: BODY, headers: old, secret: SECRET, toleranceSeconds: 500 }),
  ).toBeDefined();
});

test('the client imports nothing from Node and fits into a small bundle', async () => {
  const entryPoints = [join(ROOT, 'clients', 'typescript', 'src', 'index.ts')];
  const options = { bundle: true, minify: true, write: false, platform: 'browser', format: 'esm' } as const;
  const { outputFiles } = await build({ ...options, entryPoints, logLevel: 'silent' });
  expect(outputFiles[0]!.text.length).toBeLessThan(BUNDLE_BYTES_MAX);
});
