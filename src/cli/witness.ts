/**
 * `spindle witness`: watches logs and cosigns their checkpoints as long as they are consistent. Needs no
 * store.
 */
import { randomBytes } from 'node:crypto';
import { open, readFile } from 'node:fs/promises';
import { parseSignerKey, type Signer, signerKeyOf, signerOf, vkeyOf } from '../domain/publicLog/notes.js';
import { Policy } from '../domain/publicLog/policy.js';
import { lineOf } from '../platform/secretsInLogs.js';
import { localUrl } from '../platform/serviceFile.js';
import { LogError } from '../publicLog/witness/logReader.js';
import { InconsistencyError, Pulling } from '../publicLog/witness/pulling.js';
import { serveWitness } from '../publicLog/witness/serving.js';
import { holdFolder, WitnessState } from '../publicLog/witness/witnessState.js';
import { UsageError, wholeNumber } from './command.js';

const INCONSISTENT = 3;
const SEED_BYTES = 32;
const EVERY_MAX = 86_400;

const say = (line: string): void => void process.stdout.write(`${new Date().toISOString()} ${line}\n`);

function needed(value: string | undefined, option: string): string {
  if (value === undefined) throw new UsageError(`Add the option ${option}`);
  return value;
}

async function contentOf<T>(file: string, read: (text: string) => T): Promise<T> {
  try {
    return read(await readFile(file, 'utf8'));
  } catch (error) {
    throw new UsageError(`${file}: ${lineOf(error)}`);
  }
}

function witnessKey(text: string): Signer {
  const signer = parseSignerKey(text.trim());
  if (signer.algorithm !== 'witness')
    throw new Error('it is the key of a log, but a witness needs a key of type 0x04');
  return signer;
}

async function makeKey(name: string, file: string): Promise<number> {
  const signer = signerOf(name, 'witness', randomBytes(SEED_BYTES));
  try {
    const made = await open(file, 'wx', 0o600);
    await made.writeFile(`${signerKeyOf(signer)}\n`);
    await made.close();
  } catch (error) {
    throw new UsageError(`Cannot create ${file}: ${lineOf(error)}`);
  }
  process.stdout.write(`${vkeyOf(signer)}\n`);
  return 0;
}

/** Resolves when the process receives a stop signal. */
function ended(): { readonly signal: AbortSignal; readonly promise: Promise<void> } {
  const stop = new AbortController();
  const promise = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => {
        stop.abort();
        resolve();
      });
    }
  });
  return { signal: stop.signal, promise };
}

function addressOf(listen: string): { host: string; port: number } {
  const [, host = '', port = ''] = /^(?:(.*):)?(\d{1,5})$/.exec(listen) ?? [];
  if (port === '' || Number(port) > 65_535) throw new UsageError(`«${listen}» is not HOST:PORT`);
  return { host: host.replace(/^\[|\]$/g, '') || '127.0.0.1', port: Number(port) };
}

async function pull(pulling: Pulling, everySeconds: number): Promise<number> {
  const { signal, promise } = ended();
  while (!signal.aborted) {
    try {
      await pulling.look();
    } catch (error) {
      if (error instanceof InconsistencyError) {
        say(`INCONSISTENT: ${error.message}`);
        return INCONSISTENT;
      }
      if (!(error instanceof LogError)) throw error;
      say(`Reading the log failed, will retry: ${error.message}`);
    }
    let timer: NodeJS.Timeout | undefined;
    const rest = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, everySeconds * 1000);
    });
    await Promise.race([rest, promise]);
    clearTimeout(timer);
  }
  return 0;
}

/** @returns the exit status: 0 after a stop signal; 3 if a log has signed two inconsistent trees */
export async function witness(options: {
  readonly policy?: string;
  readonly key?: string;
  readonly state?: string;
  readonly listen?: string;
  readonly pull?: string;
  readonly every?: string;
  readonly mirror?: string;
  readonly newKey?: string;
}): Promise<number> {
  const keyFile = needed(options.key, '--key FILE');
  if (options.newKey !== undefined) return makeKey(options.newKey, keyFile);
  if ((options.listen === undefined) === (options.pull === undefined))
    throw new UsageError('Give --listen HOST:PORT or --pull URL');
  const policy = await contentOf(needed(options.policy, '--policy FILE'), (text) => new Policy(text));
  if (policy.logs.length === 0) throw new UsageError(`${options.policy} names no log`);
  const signer = await contentOf(keyFile, witnessKey);
  const folder = await holdFolder(needed(options.state, '--state DIR')).catch((error: unknown) => {
    throw new UsageError(lineOf(error));
  });
  const state = new WitnessState(folder, signer);
  if (options.pull !== undefined) {
    if (!/^https?:\/\//.test(options.pull) || !URL.canParse(options.pull))
      throw new UsageError(`«${options.pull}» is not an http:// or https:// address`);
    const everySeconds = wholeNumber(options.every ?? '60');
    if (everySeconds < 1 || everySeconds > EVERY_MAX)
      throw new UsageError(`--every must be 1 to ${EVERY_MAX} seconds`);
    return pull(new Pulling({ policy, state, url: options.pull, mirror: options.mirror, say }), everySeconds);
  }
  const address = addressOf(options.listen!);
  const server = await serveWitness({ policy, state, ...address, say }).catch((error: unknown) => {
    throw new UsageError(`Cannot listen on ${options.listen}: ${lineOf(error)}`);
  });
  say(`witness ${vkeyOf(signer)} is listening on ${localUrl(address.host, server.port)}`);
  await ended().promise;
  await server.close();
  return 0;
}
