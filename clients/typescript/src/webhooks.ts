/** Checks that a delivery to a webhook is the service's (docs/webhooks.md), with WebCrypto, and gives its event. */
import type { Schemas } from './api.js';

/** What is delivered; `event` tells which. */
export type SpindleEvent = Exclude<Schemas['FeedEvent'], { event: 'game.status_changed' }>;

/** The delivery was not signed with the secret, is too old, or has no signature. Answer it with 401. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

/** Of `Headers`, or of Node's `request.headers`, whose names are in lower case. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface Delivery {
  /** The body's bytes, or their text, exactly as they came: before any JSON parser. */
  readonly body: string | Uint8Array;
  readonly headers: WebhookHeaders;
  /** `whsec_…`, as the registration or the last rotation showed it. */
  readonly secret: string;
  /** How far the time of the attempt may be from this machine's, seconds. Default 300. */
  readonly toleranceSeconds?: number;
}

const TOLERANCE_SECONDS = 300;
const SECRET_PREFIX = 'whsec_';

/**
 * Checks `webhook-signature` (Standard Webhooks 1.0) and the time of the attempt.
 * @returns the event; answer a repeated `id` with 2xx and do nothing
 * @throws WebhookVerificationError
 */
export async function verifyWebhook(delivery: Delivery): Promise<SpindleEvent> {
  const { body, secret, toleranceSeconds = TOLERANCE_SECONDS } = delivery;
  const header = (name: string): string => headerOf(delivery.headers, name);
  const timestamp = header('webhook-timestamp');
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= toleranceSeconds)) {
    throw new WebhookVerificationError('The time of the delivery is too far from now');
  }
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const signed = joined(new TextEncoder().encode(`${header('webhook-id')}.${timestamp}.`), bytes);
  const key = await keyOf(bytesOf(secret.slice(SECRET_PREFIX.length), secret.startsWith(SECRET_PREFIX)));
  for (const signature of header('webhook-signature').split(' ')) {
    const [version, text = ''] = signature.split(',');
    if (version !== 'v1') continue;
    // WebCrypto compares in constant time.
    if (await crypto.subtle.verify('HMAC', key, bytesOf(text, true), signed)) {
      return JSON.parse(new TextDecoder().decode(bytes));
    }
  }
  throw new WebhookVerificationError('No signature of the delivery is by this secret');
}

function headerOf(headers: WebhookHeaders, name: string): string {
  const value =
    typeof headers.get === 'function'
      ? (headers as Headers).get(name)
      : (headers as Record<string, string | undefined>)[name];
  if (typeof value !== 'string') throw new WebhookVerificationError(`The header ${name} is missing`);
  return value;
}

const keyOf = (bytes: Uint8Array<ArrayBuffer>) =>
  crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);

/** The bytes of a base64 text. @throws WebhookVerificationError where it is none */
function bytesOf(text: string, isWellFormed: boolean): Uint8Array<ArrayBuffer> {
  try {
    if (isWellFormed) return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    // Told below.
  }
  throw new WebhookVerificationError('The secret or the signature is not base64');
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}
