/** Parses DATABASE_URL as libpq does, so that psql and pg_dump accept the same URL with the same meaning. */
import type { ClientConfig } from 'pg';
import { parse, toClientConfig } from 'pg-connection-string';
import { seedsOf } from '../domain/storeUrl.js';

const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'];

/** The hosts of a URL, of which one at a time is used. As with libpq, a URL may list several. */
export class PostgresHosts {
  /** Options of the first host. */
  readonly options: ClientConfig;
  readonly count: number;
  readonly #urls: readonly string[];
  readonly #all: ClientConfig[];
  #turn = 0;

  constructor(url: string) {
    this.#urls = seedsOf(url);
    this.#all = this.#urls.map(optionsOf);
    this.options = this.#all[0]!;
    this.count = this.#urls.length;
  }

  get turn(): number {
    return this.#turn;
  }

  /**
   * The host to connect to, with the present content of the files of certificates, which may be renewed while
   * the process runs. If a file can't be read, its earlier content is used.
   */
  get place(): Pick<ClientConfig, 'host' | 'port' | 'ssl'> {
    const at = this.#turn % this.count;
    try {
      this.#all[at] = optionsOf(this.#urls[at]!);
    } catch {
      // The file may be about to be replaced.
    }
    const { host, port, ssl } = this.#all[at]!;
    return {
      ...(host === undefined ? {} : { host }),
      ...(port === undefined ? {} : { port }),
      ...(ssl === undefined ? {} : { ssl }),
    };
  }

  /** Passes the turn to the next host, unless that has happened since. */
  failed(turn: number): void {
    if (turn === this.#turn) this.#turn++;
  }
}

/** Values of target_session_attrs that suit this service, which only uses a server that accepts writes. */
const WRITABLE = ['read-write', 'primary', 'any'];

/**
 * Returns the driver's options for a URL. `sslmode=require` encrypts without verification, except for the
 * certificate chain if `sslrootcert` is given. `verify-ca` verifies that a CA in `sslrootcert` signed the
 * certificate, and `verify-full` also verifies the server's name. See PostgreSQL documentation, "SSL Support"
 * of libpq.
 */
function optionsOf(url: string): ClientConfig {
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
  if ([parameters.get('host'), parameters.get('port')].some((value) => value?.includes(',')))
    throw new Error(
      'DATABASE_URL must list several hosts before the database: postgres://a:5432,b:5432/name',
    );
  const target = parameters.get('target_session_attrs');
  if (target !== null && !WRITABLE.includes(target))
    throw new Error(`target_session_attrs of DATABASE_URL must be one of ${WRITABLE.join(', ')}`);
  parameters.delete('target_session_attrs');
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
