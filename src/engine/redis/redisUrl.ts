/** What REDIS_URL says of a connection: address, user and password, TLS and its certificates. And why a connection fails, in words. */
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import type { RedisOptions } from 'ioredis';

type Address = Pick<RedisOptions, 'host' | 'port' | 'username' | 'password' | 'db' | 'tls' | 'family'>;

/** Parameters of a `rediss://` address, each the path of a PEM file, as redis-cli names them. */
const FILES = { cacert: 'ca', cert: 'cert', key: 'key' } as const;

/**
 * @param url of one server: `rediss://user:password@host:port/database?cacert=/path/ca.crt`
 * @throws Error with one line, without a secret, where the address can't be used.
 */
export function redisOptionsOf(url: string): Address {
  if (!URL.canParse(url))
    throw new Error('REDIS_URL is no URL: special characters are to be percent-encoded');
  const { protocol, hostname, port, username, password, pathname, searchParams } = new URL(url);
  const hasTls = protocol === 'rediss:';
  const tls: ConnectionOptions = {};
  const others: Address = {};
  for (const [name, value] of searchParams) {
    if (hasTls && name in FILES) tls[FILES[name as keyof typeof FILES]] = readPem(name, value);
    else if (name === 'family') others.family = Number(value);
    else throw new Error(`REDIS_URL has a parameter that ${protocol}// does not know: ${name}`);
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
    throw new Error(`The file of ${parameter} in REDIS_URL can't be read: ${(error as Error).message}`);
  }
}

/** The same error; OpenSSL's own messages begin with the number of a thread and name a line of its source. */
export function asClearError(error: Error): Error {
  const { code, reason } = error as { code?: string; reason?: string };
  if (reason === undefined || code?.startsWith('ERR_SSL_') !== true) return error;
  return new Error(`TLS: ${reason}`, { cause: error });
}

/** The later one of two errors of a connection, unless it says no more than that a question was under way as it ended. */
export const tellingFault = (before: Error | undefined, error: Error): Error | undefined =>
  error.name === 'MaxRetriesPerRequestError' ? before : asClearError(error);

/**
 * Why a first connection did not come about, with what may be wrong about the address.
 * @param fault what the connection told; nothing where the server just closed it.
 */
export function openingFault(url: string, fault: Error | undefined): Error {
  const { message, code } = (fault ?? {
    message: 'the server closed the connection',
    code: 'EPIPE',
  }) as NodeJS.ErrnoException;
  // A plain port waits for the rest of what it takes for a command; a TLS port ends what is no handshake.
  if (url.startsWith('rediss:') && code === 'ETIMEDOUT')
    return new Error(`${message}: does this port speak TLS?`);
  if (code === 'ECONNRESET' || code === 'EPIPE')
    return new Error(
      url.startsWith('redis:')
        ? `${message}: a TLS port wants rediss://`
        : `${message}: tls-auth-clients yes wants cert and key`,
    );
  return fault ?? new Error(message);
}
