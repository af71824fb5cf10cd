/**
 * Lower bound for comparison: a bare uWebSockets.js server that parses the JSON of the spin and answers with
 * the bytes of a typical spin. With REDIS_URL it stores the body of each request by one SET, and answers once
 * Redis has it on disk. Without REDIS_URL it stores nothing.
 */
import { App, us_socket_local_port } from 'uWebSockets.js';
import { Redis } from 'ioredis';
import { answerTypically } from './typicalAnswer.js';

const HOST = '127.0.0.1';

// Auto-pipelining sends all calls of one event-loop turn in one write.
const redis =
  process.env.REDIS_URL === undefined
    ? undefined
    : new Redis(process.env.REDIS_URL, { protocol: 2, enableAutoPipelining: true });

interface Body {
  readonly playerId: string;
  readonly requestId: string;
}

App()
  .post('/api/partner/v1/spin', (response) => {
    let isGone = false;
    response.onAborted(() => {
      isGone = true;
    });
    response.onData((chunk, isLast) => {
      if (!isLast) throw new Error('The benchmark server received a body in several pieces');
      const text = Buffer.from(chunk).toString('utf8');
      const { playerId, requestId } = JSON.parse(text) as Body;
      if (redis === undefined) answerTypically(response, requestId);
      else
        redis.set(playerId, text).then(
          () => isGone || answerTypically(response, requestId),
          (error: unknown) => {
            console.error(error);
            process.exit(1);
          },
        );
    });
  })
  .listen(HOST, 0, (socket) => {
    if (!socket) throw new Error('The benchmark server found no port to listen on');
    console.log(`API http://${HOST}:${us_socket_local_port(socket)}`);
  });

process.once('SIGTERM', () => process.exit(0));
