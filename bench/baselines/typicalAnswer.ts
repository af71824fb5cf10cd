/** Sends an answer with the length of the service's answer, for baselines that deal nothing. */
import type { HttpResponse } from 'uWebSockets.js';
import { readFileSync } from 'node:fs';
import { spinResponse } from '../../src/api/spins/spinResponse.js';
import { checkParSheet } from '../../src/domain/par.js';
import { renderSheet } from '../../src/domain/presentation.js';

const checked = checkParSheet(JSON.parse(readFileSync(process.env.PAR_SHEET!, 'utf8')));
if ('faults' in checked) throw new Error(JSON.stringify(checked.faults));
const { combinations } = renderSheet(checked.sheet);
const bytesOf = (index: number): number => combinations[index]!.json.length;
const byLength = checked.sheet.combinations.map((_, index) => index).sort((a, b) => bytesOf(a) - bytesOf(b));
const typical = combinations[byLength[byLength.length >> 1]!]!;

const example = spinResponse(
  '0123456789abcdef0123456789abcdef',
  Buffer.from(typical.json),
  1_000_250_000,
  '?',
);
const before = example.toString().slice(0, -'?"}'.length);
const after = '"}';

const ID_PREFIX = '0123456789';
const LIMIT = 1_000_000_000;
const WINDOW_LINES =
  `\r\nX-RateLimit-Limit: ${LIMIT}\r\nX-RateLimit-Remaining: ${LIMIT - 12_345}\r\nX-RateLimit-Reset: 1900000020` +
  `\r\nRateLimit-Policy: "spin";q=${LIMIT};w=60\r\nRateLimit: "spin";r=${LIMIT - 12_345};t=42`;

let requests = 0;

export function answerTypically(response: HttpResponse, requestId: string): void {
  response.cork(() => {
    response.writeStatus('200 OK');
    response.writeHeader(
      'Content-Type',
      `application/json\r\nX-Request-Id: ${ID_PREFIX}-${(++requests).toString(36)}${WINDOW_LINES}`,
    );
    response.end(before + requestId + after);
  });
}
