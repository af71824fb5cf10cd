import { describe, expect, test } from 'vitest';
import { hmacSha256, standardSignature } from '../../src/domain/webhook.js';
import { corporaMissing, hmacVectors } from '../support/corpora.js';

describe('a signature', () => {
  const vectors = corporaMissing === undefined ? hmacVectors() : [];

  test.skipIf(vectors.length === 0)(
    `is HMAC-SHA256 by the vectors of Wycheproof${corporaMissing === undefined ? '' : ` (${corporaMissing})`}`,
    () => {
      expect(vectors.length).toBeGreaterThan(100);
      for (const { key, message, tag, isValid, comment } of vectors) {
        const digest = hmacSha256(key, message).subarray(0, tag.length);
        expect(digest.equals(tag), `${comment} ${message.toString('hex')}`).toBe(isValid);
      }
    },
  );

  test('of Standard Webhooks is the one of its specification', () => {
    // The example of the specification (the repository standard-webhooks, its folder spec).
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
    const body = '{"test": 2432232314}';
    const id = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
    expect(standardSignature(secret, { id, timestampSeconds: 1_614_265_330, body })).toBe(
      'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    );
  });
});
