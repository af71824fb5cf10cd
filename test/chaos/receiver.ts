/**
 * `node receiver.js PORT FILE`: a partner's end of its webhooks, to be killed at any time. It writes down what it gets
 * before it answers, so that whatever it has answered is in the file. Now and then it answers with 500, hangs up or hangs.
 */
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';

/** One of so many. */
const ANSWERS_500 = 20;
const HANGS_UP = 40;
const HANGS = 500;

const [port, file] = process.argv.slice(2);
if (port === undefined || file === undefined) throw new Error('PORT and FILE are needed');
const oneOf = (many: number): boolean => Math.random() * many < 1;

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks).toString('utf8');
    // A line that a kill cut off does not spoil the next one.
    appendFileSync(file, `\n${JSON.stringify({ headers: request.headers, body })}\n`);
    if (oneOf(HANGS)) return;
    if (oneOf(HANGS_UP)) request.socket.destroy();
    else response.writeHead(oneOf(ANSWERS_500) ? 500 : 204).end();
  });
});
server.listen(Number(port), '127.0.0.1');
