import { expect, test } from 'vitest';
import { Progress, progressLine } from '../../../src/cli/progress.js';

test('shows the progress of an audit as a bar on a terminal', () => {
  const lines: string[] = [];
  const stream = { isTTY: true, write: (text: string) => lines.push(text) > 0 };
  const bar = new Progress(stream as unknown as NodeJS.WriteStream);
  bar.show('ledger', 30_000, 120_000);
  bar.end();
  expect(lines).toEqual([
    `\r\x1b[Kledger         ${'█'.repeat(8)}${'░'.repeat(22)}  25 %  30,000 of 120,000`,
    '\r\x1b[K',
  ]);
  expect(progressLine('players', 5000, 0, 2)).toBe('players        5,000  2,500/s');
});
