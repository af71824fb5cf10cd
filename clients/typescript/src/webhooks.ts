/**
 * Verifies by WebCrypto that a webhook delivery comes from the service (docs/webhooks.md), and returns its
 * event.
 */
import type { Schemas } from './api.js';

/** A delivered event. Its member `event` is the event type. */
export type SpindleEvent = Schemas['FeedEvent'];

/**
 * The delivery has no signature, was not signed with the secret, or is too old. Answer it with status 401.
 */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

/** Request headers: a `Headers` object, or Node's `request.headers` with names in lower case. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface Delivery {
  /** Body of the delivery exactly as received, before any JSON parser: its bytes, or their text. */
  readonly body: string | Uint8Array;
  readonly headers: WebhookHeaders;
  /** Signing secret `whsec_…` from the registration or the last rotation. */
  readonly secret: string;
  /**
   * Maximum difference between the time of the delivery attempt and this machine's clock, in seconds.
   * Default: 300.
   */
  readonly toleranceSeconds?: number;
}

const TOLERANCE_SECONDS = 300;
const SECRET_PREFIX = 'whsec_';

/**
 * Verifies the header `webhook-signature` (Standard Webhooks 1.0) and the time of the delivery attempt.
 *
 * @returns the event; if its `id` was received before, answer with 2xx and ignore it
 * @throws WebhookVerificationError if the delivery is not authentic or is too old
 */
export async function verifyWebhook(delivery: Delivery): Promise<SpindleEvent> {
  const { body, secret, toleranceSeconds = TOLERANCE_SECONDS } = delivery;
  const header = (name: string): string => headerOf(delivery.headers, name);
  const timestamp = header('webhook-timestamp');
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= toleranceSeconds)) {
    throw new WebhookVerificationError(
      'The webhook-timestamp of the delivery is too far from the current time',
    );
  }
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const signed = joined(new TextEncoder().encode(`${header('webhook-id')}.${timestamp}.`), bytes);
  const key = await keyOf(bytesOf(secret.slice(SECRET_PREFIX.length), secret.startsWith(SECRET_PREFIX)));
  for (const signature of header('webhook-signature').split(' ')) {
    const [version, text = ''] = signature.split(',');
    if (version !== 'v1') continue;
    // WebCrypto compares signatures in constant time.
    if (await crypto.subtle.verify('HMAC', key, bytesOf(text, true), signed)) {
      return JSON.parse(new TextDecoder().decode(bytes));
    }
  }
  throw new WebhookVerificationError('No signature of the delivery matches this secret');
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

/**
 * Decodes base64 text.
 *
 * @throws WebhookVerificationError if the text is not valid base64
 */
function bytesOf(text: string, isWellFormed: boolean): Uint8Array<ArrayBuffer> {
  try {
    if (isWellFormed) return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    // Invalid base64 throws the error below.
  }
  throw new WebhookVerificationError('The webhook secret or the signature is not valid base64');
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}
