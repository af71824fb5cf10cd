/**
 * Parses REDIS_URL into connection options: address, user, password, TLS and its certificates. Also explains
 * why a connection failed.
 */
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import type { RedisOptions } from 'ioredis';

type Address = Pick<RedisOptions, 'host' | 'port' | 'username' | 'password' | 'db' | 'tls' | 'family'>;

/**
 * Parameters of a `rediss://` URL. The value of each is the path of a PEM file, and their names are those of
 * redis-cli.
 */
const FILES = { cacert: 'ca', cert: 'cert', key: 'key' } as const;

/**
 * @param url for example `rediss://user:password@host:port/database?cacert=/path/ca.crt`
 * @throws Error with a one-line message, without secrets, if the URL is not usable
 */
export function redisOptionsOf(url: string): Address {
  if (!URL.canParse(url)) throw new Error('REDIS_URL is not a valid URL. Percent-encode special characters.');
  const { protocol, hostname, port, username, password, pathname, searchParams } = new URL(url);
  const hasTls = protocol === 'rediss:';
  const tls: ConnectionOptions = {};
  const others: Address = {};
  for (const [name, value] of searchParams) {
    if (hasTls && name in FILES) tls[FILES[name as keyof typeof FILES]] = readPem(name, value);
    else if (name === 'family') others.family = Number(value);
    else throw new Error(`REDIS_URL has the parameter ${name}, which ${protocol}// URLs do not support`);
  }
  return {
    ...others,
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port || 6379),
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    db: Number(pathname.slice(1) || 0),
    ...(hasTls ? { tls } : {}),
  };
}

function readPem(parameter: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(
      `The file of the parameter ${parameter} in REDIS_URL can't be read: ${(error as Error).message}`,
    );
  }
}

/**
 * Shortens the message of an OpenSSL error, which begins with a thread number and names a line of source
 * code. Other errors are returned unchanged.
 */
export function asClearError(error: Error): Error {
  const { code, reason } = error as { code?: string; reason?: string };
  if (reason === undefined || code?.startsWith('ERR_SSL_') !== true) return error;
  return new Error(`TLS: ${reason}`, { cause: error });
}

/**
 * Returns the later of two connection errors. If the later error only says that a command was pending when
 * the connection ended, returns the earlier one.
 */
export const tellingFault = (before: Error | undefined, error: Error): Error | undefined =>
  error.name === 'MaxRetriesPerRequestError' ? before : asClearError(error);

/**
 * Explains why a first connection failed, with a hint about the address.
 * @param fault error of the connection; undefined if the server closed the connection without one
 */
export function openingFault(url: string, fault: Error | undefined): Error {
  const { message, code } = (fault ?? {
    message: 'the server closed the connection',
    code: 'EPIPE',
  }) as NodeJS.ErrnoException;
  // A port without TLS waits for more input after a TLS handshake, so the attempt times out. A port with TLS
  // closes a connection that does not begin with a handshake.
  if (url.startsWith('rediss:') && code === 'ETIMEDOUT')
    return new Error(`${message}. The port may not speak TLS.`);
  if (code === 'ECONNRESET' || code === 'EPIPE')
    return new Error(
      url.startsWith('redis:')
        ? `${message}. If the port speaks TLS, use rediss://.`
        : `${message}. If the server has tls-auth-clients yes, add cert and key.`,
    );
  return fault ?? new Error(message);
}
