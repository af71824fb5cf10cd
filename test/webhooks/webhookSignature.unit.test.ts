import { describe, expect, test } from 'vitest';
import { hmacSha256, standardSignature } from '../../src/domain/webhook.js';
import { corporaMissing, hmacVectors } from '../support/corpora.js';

describe('webhook signatures', () => {
  const vectors = corporaMissing === undefined ? hmacVectors() : [];

  test.skipIf(vectors.length === 0)(
    `computes HMAC-SHA256 as the test vectors of Wycheproof${corporaMissing === undefined ? '' : ` (${corporaMissing})`}`,
    () => {
      expect(vectors.length).toBeGreaterThan(100);
      for (const { key, message, tag, isValid, comment } of vectors) {
        const digest = hmacSha256(key, message).subarray(0, tag.length);
        expect(digest.equals(tag), `${comment} ${message.toString('hex')}`).toBe(isValid);
      }
    },
  );

  test('computes the signature in the example of the Standard Webhooks specification', () => {
    // The example is from the specification in the folder spec of the repository standard-webhooks.
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
    const body = '{"test": 2432232314}';
    const id = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
    expect(standardSignature(secret, { id, timestampSeconds: 1_614_265_330, body })).toBe(
      'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    );
  });
});
