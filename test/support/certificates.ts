/** Creates certificates for the servers of a test with openssl. */
import { execFile, spawnSync } from 'node:child_process';
import { chmod, chown, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { storesParent } from './disk.js';

const run = promisify(execFile);
const EC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-noenc', '-days', '2'];

export interface Certificates {
  /** Path of the PEM file of the CA. */
  readonly ca: string;
  /** Path of a certificate that is signed by {@link ca} for 127.0.0.1 only. */
  readonly cert: string;
  readonly key: string;
  /** Path of another CA, which has signed no certificate. */
  readonly otherCa: string;
  drop(): Promise<void>;
}

/** Returns the reason why openssl can't make certificates on this machine, or undefined if it can. */
export const opensslMissing = (): string | undefined =>
  spawnSync('openssl', ['version']).status === 0 ? undefined : 'openssl is not installed';

/** @param owner a file or folder of the user that runs the servers */
export async function makeCertificates(owner: string): Promise<Certificates> {
  const folder = await mkdtemp(join(await storesParent(), 'spindle-certificates-'));
  const path = (name: string): string => join(folder, name);
  const openssl = (...args: string[]): Promise<unknown> => run('openssl', args, { cwd: folder });
  for (const name of ['ca', 'other-ca'])
    await openssl(
      'req',
      '-x509',
      ...EC,
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.crt`,
      '-subj',
      `/CN=${name}`,
    );
  await writeFile(path('names'), 'subjectAltName=IP:127.0.0.1\n');
  await openssl('req', ...EC, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=stores');
  const signing = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'names'];
  await openssl('x509', '-req', '-in', 'server.csr', '-out', 'server.crt', ...signing);
  await chmod(folder, 0o755);
  // Postgres refuses a key that other users can read.
  await chmod(path('server.key'), 0o600);
  const { uid, gid } = await stat(owner);
  if (process.getuid?.() === 0) await chown(path('server.key'), uid, gid);
  return {
    ca: path('ca.crt'),
    cert: path('server.crt'),
    key: path('server.key'),
    otherCa: path('other-ca.crt'),
    drop: () => rm(folder, { recursive: true, force: true }),
  };
}
