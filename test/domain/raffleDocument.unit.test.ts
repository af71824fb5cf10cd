/** Tests docs/raffles.md with code that follows this document and uses no code of the service. */
import { createCipheriv, createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { verifyPool } from '../../src/cli/verifyPool.js';
import { ROOT } from '../support/root.js';

const document = readFileSync(join(ROOT, 'docs', 'raffles.md'), 'utf8');
const pool = JSON.parse(/```json\n(.*?)```/s.exec(document)![1]!) as {
  gameConfigId: number;
  ticketPriceUsd: number;
  poolSize: number;
  prizes: { prizeName: string; prizeTier: number; valueUsd: number; count: number }[];
  poolCommitment: string;
  reveal: { seed: string; nonce: string; order: string };
};
const { seed, nonce } = pool.reveal;
const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest();

test('the worked example in docs/raffles.md is exactly the result of the rules there', () => {
  const counts = pool.prizes.map(({ count }) => count);
  const winning = counts.reduce((sum, count) => sum + count, 0);
  const tickets = counts.flatMap((count, place) => Array<number>(count).fill(place + 1));
  tickets.push(...Array<number>(pool.poolSize - winning).fill(0));
  expect(document).toContain(`before the shuffle is \`${tickets.join(' ')}\``);

  const zeros = Buffer.alloc(64);
  const keystream = createCipheriv('aes-256-ctr', Buffer.from(seed, 'hex'), Buffer.alloc(16)).update(zeros);
  const steps: string[] = [];
  let word = 0;
  for (let i = pool.poolSize - 1; i > 0; i--) {
    const bits = i.toString(2).length;
    for (let isDrawn = false; !isDrawn; word++) {
      const value = keystream.readUInt32LE(word * 4);
      const j = value % 2 ** bits;
      isDrawn = j <= i;
      if (isDrawn) [tickets[i], tickets[j]] = [tickets[j]!, tickets[i]!];
      const drawn = isDrawn ? `${j}` : `${j}, discarded`;
      const hex = value.toString(16).padStart(8, '0');
      steps.push(`| ${i} | ${bits} | ${hex} | ${drawn} | ${tickets.join(' ')} |`);
    }
  }
  expect(document).toContain(`\n${steps.join('\n')}\n\n`);
  const bytes = keystream.subarray(0, word * 4).toString('hex');
  expect(document).toContain(`\`${bytes.match(/.{8}/g)!.join(' ')}\``);

  const order = Buffer.concat(tickets.map((code) => Buffer.from([code & 255, code >> 8])));
  expect(document).toContain(`the bytes \`${order.toString('hex')}\``);
  expect(order.toString('base64')).toBe(pool.reveal.order);

  const prizes = pool.prizes.map(
    (p) =>
      `{"count":${p.count},"prizeName":"${p.prizeName}","prizeTier":${p.prizeTier},"valueUsd":${p.valueUsd}}`,
  );
  const text = `{"poolSize":${pool.poolSize},"prizes":[${prizes}],"ticketPriceUsd":${pool.ticketPriceUsd}}`;
  expect(document).toContain(`\n${text}\n${sha256(text).toString('hex')}\n`);

  const id = Buffer.alloc(4);
  id.writeUInt32BE(pool.gameConfigId);
  const sealed = Buffer.concat([
    Buffer.from('spindle pool v1\n'),
    Buffer.from(nonce, 'hex'),
    Buffer.from(seed, 'hex'),
    id,
    sha256(text),
    order,
  ]);
  expect(sha256(sealed).toString('hex')).toBe(pool.poolCommitment);
});

test('the verifier proves the worked example in docs/raffles.md, and detects every changed digit', () => {
  expect(verifyPool(pool, pool.poolCommitment).faults).toEqual([]);
  const text = JSON.stringify(pool);
  let changed = 0;
  for (const { index, 0: digit } of text.matchAll(/\d/g)) {
    const other = text.slice(0, index) + ((Number(digit) + 1) % 10) + text.slice(index + 1);
    changed++;
    expect(verifyPool(JSON.parse(other), pool.poolCommitment).faults, `digit at ${index}`).not.toEqual([]);
  }
  expect(changed).toBeGreaterThan(100);
});
