/**
 * `node receiver.js PORT FILE`
 *
 * Receives the webhooks of a partner and may be killed at any time. It writes each delivery to the file
 * before it answers, so that every answered delivery is in the file. Occasionally it answers with 500, closes
 * the connection, or does not answer.
 */
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';

/**
 * One of this many deliveries is answered with 500. HANGS_UP and HANGS give the same rates for closed
 * connections and for missing answers.
 */
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
    // The leading newline separates the record from an incomplete line that a kill left behind.
    appendFileSync(file, `\n${JSON.stringify({ headers: request.headers, body })}\n`);
    if (oneOf(HANGS)) return;
    if (oneOf(HANGS_UP)) request.socket.destroy();
    else response.writeHead(oneOf(ANSWERS_500) ? 500 : 204).end();
  });
});
server.listen(Number(port), '127.0.0.1');
