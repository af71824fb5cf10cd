/**
 * The lower bound: a bare uWebSockets.js server that parses the spin's JSON and answers with the bytes of a typical
 * spin, the same headers and the same length as the service. It deals nothing and checks nothing. With REDIS_URL it keeps
 * the body of each request by one SET, and answers once that is on the disk of Redis; without, it keeps nothing.
 */
import { App, type HttpResponse, us_socket_local_port } from 'uWebSockets.js';
import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { checkParSheet } from '../../src/domain/par.js';
import { renderSheet } from '../../src/domain/presentation.js';
import { spinResponse } from '../../src/http/partner/spinResponse.js';

const HOST = '127.0.0.1';

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

// The calls of one event-loop turn go out in one write.
const redis =
  process.env.REDIS_URL === undefined
    ? undefined
    : new Redis(process.env.REDIS_URL, { protocol: 2, enableAutoPipelining: true });

interface Body {
  readonly playerId: string;
  readonly requestId: string;
}

function answer(response: HttpResponse, requestId: string): void {
  response.cork(() => {
    response.writeStatus('200 OK');
    response.writeHeader(
      'Content-Type',
      `application/json\r\nX-Request-Id: ${ID_PREFIX}-${(++requests).toString(36)}${WINDOW_LINES}`,
    );
    response.end(before + requestId + after);
  });
}

App()
  .post('/api/partner/v1/spin', (response) => {
    let isGone = false;
    response.onAborted(() => {
      isGone = true;
    });
    response.onData((chunk, isLast) => {
      if (!isLast) throw new Error('The bench sends a body in one piece');
      const text = Buffer.from(chunk).toString('utf8');
      const { playerId, requestId } = JSON.parse(text) as Body;
      if (redis === undefined) answer(response, requestId);
      else
        redis.set(playerId, text).then(
          () => isGone || answer(response, requestId),
          (error: unknown) => {
            console.error(error);
            process.exit(1);
          },
        );
    });
  })
  .listen(HOST, 0, (socket) => {
    if (!socket) throw new Error('No port to listen on');
    console.log(`API http://${HOST}:${us_socket_local_port(socket)}`);
  });

process.once('SIGTERM', () => process.exit(0));
