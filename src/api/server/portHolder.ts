/** Who holds a port: processes of one installation may share it (SO_REUSEPORT), and the kernel would let strangers share it, too. */
import { createHash } from 'node:crypto';
import { get } from 'node:http';

/** Header of GET /healthz; its value is {@link installationTag}. */
export const INSTALLATION_HEADER = 'X-Installation';

const ANSWER_WITHIN_MS = 3000;

/** Tells the database that a process serves from every other, and nothing else about it. */
export const installationTag = (datasetId: string): string =>
  createHash('sha256').update(`installation ${datasetId}`).digest('hex').slice(0, 16);

/**
 * @param host where it is going to listen; an address for all interfaces is asked by loopback
 * @throws Error where something holds the port that is not a process of the installation
 */
export async function refuseStrangersPort(host: string, port: number, tag: string): Promise<void> {
  if (port === 0) return;
  const holder = await holderOf(host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host, port);
  if (holder === undefined || holder === tag) return;
  throw new Error(
    `Port ${port} of ${host} is in use by ${holder === '' ? 'another program' : 'a service on another database'}`,
  );
}

/** The tag of the holder; empty where it has none, undefined where nobody listens. */
function holderOf(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const request = get(
      { host, port, path: '/healthz', agent: false, timeout: ANSWER_WITHIN_MS },
      (answer) => {
        answer.resume();
        resolve(String(answer.headers[INSTALLATION_HEADER.toLowerCase()] ?? ''));
      },
    );
    request.on('timeout', () => request.destroy(new Error('no answer')));
    request.on('error', (error: NodeJS.ErrnoException) =>
      resolve(error.syscall === 'connect' ? undefined : ''),
    );
  });
}
