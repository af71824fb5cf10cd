/** Asks a Redis server one thing over a connection of its own: whether it answers, and how a cluster is formed. */
import { connect } from 'node:net';

const TIMEOUT_MS = 2_000;

/**
 * @param url with the password
 * @param words the command, without white space in them
 * @returns the reply, a status or a text.
 * @throws the error reply, or why there is no reply within 2 s.
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
    socket.setTimeout(TIMEOUT_MS, () => finish(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)));
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

/** The reply after that of AUTH; undefined while it is not whole. */
function replyIn(received: string): string | Error | undefined {
  const [authenticated, first, ...rest] = received.split('\r\n');
  const isRefused = authenticated!.startsWith('-');
  // The last piece of a split ends in nothing: a line is whole once there is one after it.
  if (rest.length === 0 && !(isRefused && first !== undefined)) return undefined;
  if (isRefused) return new Error(authenticated!.slice(1));
  if (authenticated !== '+OK') return new Error('not a Redis server');
  if (/^[+:]/.test(first!)) return first!.slice(1);
  if (!first!.startsWith('$')) return new Error(first);
  const text = rest.join('\r\n');
  const bytes = Number(first!.slice(1));
  return text.length < bytes ? undefined : text.slice(0, bytes);
}
