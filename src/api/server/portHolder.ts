/**
 * Checks which process holds a port. Processes of one installation may share a port (SO_REUSEPORT), but the
 * kernel would also let processes of another installation share it.
 */
import { createHash } from 'node:crypto';
import { get } from 'node:http';

/** Header of GET /healthz with the {@link installationTag}. */
export const INSTALLATION_HEADER = 'X-Installation';

const ANSWER_WITHIN_MS = 3000;

/** Returns a tag that identifies the database of a process and reveals nothing else about it. */
export const installationTag = (datasetId: string): string =>
  createHash('sha256').update(`installation ${datasetId}`).digest('hex').slice(0, 16);

/**
 * @param host address to listen on; an address for all interfaces is checked by loopback
 * @throws Error if a program that is not part of this installation holds the port
 */
export async function refuseStrangersPort(host: string, port: number, tag: string): Promise<void> {
  if (port === 0) return;
  const holder = await holderOf(host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host, port);
  if (holder === undefined || holder === tag) return;
  throw new Error(
    `Port ${port} of ${host} is in use by ${holder === '' ? 'another program' : 'a service with another database'}`,
  );
}

/**
 * Returns the tag of the process that holds the port. Empty if that process sends no tag, undefined if nobody
 * listens.
 */
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
