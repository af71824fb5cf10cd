/** Computes the keys and fingerprints of the requestIds of operators' requests. */
import { createHash } from 'node:crypto';

const digest = (text: string, bytes: number): Buffer =>
  createHash('sha256').update(text).digest().subarray(0, bytes);

/**
 * Returns the key of an adjustment's requestId: the first 16 bytes of a SHA-256. It can't equal the key of a
 * spin, because only the text that is hashed for a spin has a colon after the partner's number.
 */
export const adjustmentKey = (partnerId: number, requestId: string): Buffer =>
  digest(`${partnerId}+${requestId}`, 16);

/**
 * Returns the fingerprint of an adjustment: 10 bytes of a SHA-256. The requestId is bound to this fingerprint
 * and to the adjustment's entry.
 */
export const adjustmentFingerprint = (playerId: string, amountMicros: number): Buffer =>
  digest(`${amountMicros}:${playerId}`, 10);

/**
 * Returns the key of the requestId of a communal progressive's funding. It differs from all keys of spins and
 * adjustments.
 */
export const fundingKey = (gameId: number, requestId: string): Buffer =>
  digest(`*${gameId}:${requestId}`, 16);

/**
 * Returns the fingerprint of a funding: 10 bytes of a SHA-256. The requestId is bound to this fingerprint and
 * to the funding's note.
 */
export const fundingFingerprint = (amountMicros: number): Buffer => digest(`funding ${amountMicros}`, 10);
