/** What DATABASE_URL says of a connection, read as libpq reads it: psql and pg_dump take the same address and mean the same. */
import type { ClientConfig } from 'pg';
import { parse, toClientConfig } from 'pg-connection-string';

const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'];

/**
 * `sslmode=require` encrypts and checks nothing, but the chain where `sslrootcert` is given; `verify-ca` checks that a CA of
 * `sslrootcert` signed the certificate; `verify-full` the server's name, too. PostgreSQL documentation, "SSL Support" of libpq.
 * @throws Error with one line, without a secret, where the address can't be used.
 */
export function postgresOptionsOf(url: string): ClientConfig {
  const [address = '', query = ''] = url.split('?', 2);
  const parameters = new URLSearchParams(query);
  const mode = parameters.get('sslmode');
  // With `prefer` and `allow` a connection that somebody interferes with is not encrypted, and nobody is told.
  if (mode !== null && !SSL_MODES.includes(mode))
    throw new Error(`sslmode of DATABASE_URL must be one of ${SSL_MODES.join(', ')}`);
  if (parameters.get('sslrootcert') === 'system') {
    if (mode !== 'verify-full')
      throw new Error('sslrootcert=system of DATABASE_URL needs sslmode=verify-full');
    parameters.delete('sslrootcert');
  }
  if (mode === 'verify-ca' && !parameters.has('sslrootcert'))
    throw new Error(
      'sslmode=verify-ca of DATABASE_URL needs sslrootcert: of a public CA anybody gets a certificate',
    );
  parameters.delete('uselibpqcompat');
  const all = parameters.size === 0 ? address : `${address}?${parameters}`;
  try {
    return toClientConfig(parse(all, { useLibpqCompat: true })) as ClientConfig;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ERR_INVALID_URL')
      throw new Error('DATABASE_URL is no URL: special characters are to be percent-encoded');
    throw new Error(`DATABASE_URL can't be used: ${message}`);
  }
}
