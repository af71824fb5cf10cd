/**
 * Sends one command to a Redis server over a separate connection, to check that it answers and to form a
 * cluster.
 */
import { connect } from 'node:net';

const TIMEOUT_MS = 2_000;

/**
 * @param url URL with the password
 * @param words words of the command, without white space inside a word
 * @throws Error with the error reply, or if there is no reply within 2 s
 */
export function askRedis(url: string, words: readonly (string | number)[]): Promise<string> {
  const { hostname, port, password } = new URL(url);
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect({ host: hostname, port: Number(port) });
    const finish = (reply: string | Error): void => {
      socket.destroy();
      if (typeof reply === 'string') resolve(reply);
      else reject(reply);
    };
    socket.setTimeout(TIMEOUT_MS, () => finish(new Error(`no response within ${TIMEOUT_MS / 1000} s`)));
    socket.setEncoding('latin1');
    socket.on('connect', () => socket.write(`AUTH ${password}\r\n${words.join(' ')}\r\n`));
    socket.on('data', (text: string) => {
      received += text;
      const reply = replyIn(received);
      if (reply !== undefined) finish(reply);
    });
    socket.on('error', finish);
    socket.on('close', () => finish(new Error('the connection was closed')));
  });
}

/** Returns the reply that follows the reply of AUTH, or undefined while the reply is incomplete. */
function replyIn(received: string): string | Error | undefined {
  const [authenticated, first, ...rest] = received.split('\r\n');
  const isRefused = authenticated!.startsWith('-');
  // The last part of a split is incomplete, so a line is complete only if another part follows it.
  if (rest.length === 0 && !(isRefused && first !== undefined)) return undefined;
  if (isRefused) return new Error(authenticated!.slice(1));
  if (authenticated !== '+OK') return new Error('not a Redis server');
  if (/^[+:]/.test(first!)) return first!.slice(1);
  if (!first!.startsWith('$')) return new Error(first);
  const text = rest.join('\r\n');
  const bytes = Number(first!.slice(1));
  return text.length < bytes ? undefined : text.slice(0, bytes);
}
