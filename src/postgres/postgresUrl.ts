/** Parses DATABASE_URL as libpq does, so that psql and pg_dump accept the same URL with the same meaning. */
import type { ClientConfig } from 'pg';
import { parse, toClientConfig } from 'pg-connection-string';

const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'];

/**
 * Returns the driver's options for a URL. `sslmode=require` encrypts without verification, except for the
 * certificate chain if `sslrootcert` is given. `verify-ca` verifies that a CA in `sslrootcert` signed the
 * certificate, and `verify-full` also verifies the server's name. See PostgreSQL documentation, "SSL Support"
 * of libpq.
 * @throws Error with a one-line message without secrets if the URL can't be used
 */
export function postgresOptionsOf(url: string): ClientConfig {
  const [address = '', query = ''] = url.split('?', 2);
  const parameters = new URLSearchParams(query);
  const mode = parameters.get('sslmode');
  // `prefer` and `allow` are refused, because an attacker could silently prevent the encryption.
  if (mode !== null && !SSL_MODES.includes(mode))
    throw new Error(`sslmode of DATABASE_URL must be one of ${SSL_MODES.join(', ')}`);
  if (parameters.get('sslrootcert') === 'system') {
    if (mode !== 'verify-full')
      throw new Error('sslrootcert=system of DATABASE_URL needs sslmode=verify-full');
    parameters.delete('sslrootcert');
  }
  if (mode === 'verify-ca' && !parameters.has('sslrootcert'))
    throw new Error(
      'sslmode=verify-ca of DATABASE_URL needs sslrootcert, because anybody can get a certificate of a public CA',
    );
  parameters.delete('uselibpqcompat');
  const all = parameters.size === 0 ? address : `${address}?${parameters}`;
  try {
    return toClientConfig(parse(all, { useLibpqCompat: true })) as ClientConfig;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ERR_INVALID_URL')
      throw new Error('DATABASE_URL is not a valid URL. Percent-encode special characters.');
    throw new Error(`DATABASE_URL can't be used: ${message}`);
  }
}
