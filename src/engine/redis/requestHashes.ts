/** How Redis names the requestIds of operators' requests, and what they are bound to beside an entry. */
import { createHash } from 'node:crypto';

const digest = (text: string, bytes: number): Buffer =>
  createHash('sha256').update(text).digest().subarray(0, bytes);

/**
 * How Redis names the requestId of an adjustment: the first 16 bytes of a SHA-256. A spin's is of a text with a colon
 * after the partner's number: the two never meet.
 */
export const adjustmentKey = (partnerId: number, requestId: string): Buffer =>
  digest(`${partnerId}+${requestId}`, 16);

/** What a requestId of an adjustment is bound to, beside its entry: 10 bytes of a SHA-256. */
export const adjustmentFingerprint = (playerId: string, amountMicros: number): Buffer =>
  digest(`${amountMicros}:${playerId}`, 10);

/** How Redis names the requestId of a funding of a communal progressive; never that of a spin or an adjustment. */
export const fundingKey = (gameId: number, requestId: string): Buffer =>
  digest(`*${gameId}:${requestId}`, 16);

/** What a requestId of a funding is bound to, beside its note: 10 bytes of a SHA-256. */
export const fundingFingerprint = (amountMicros: number): Buffer => digest(`funding ${amountMicros}`, 10);
