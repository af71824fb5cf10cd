/** Opens the public log for a worker: its name, its keys and, if necessary, a new log. */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { publicRecord } from '../../domain/publicLog/logEntries.js';
import { parseSignerKey, type Signer, signerKeyOf, signerOf, vkeyOf } from '../../domain/publicLog/notes.js';
import { Policy } from '../../domain/publicLog/policy.js';
import { UnknownKeyError } from '../../domain/secretBox.js';
import { job } from '../../engine/processEvents.js';
import type { OnFailpoint } from '../../platform/failpoints.js';
import { hasAsynchronousStandby } from '../../postgres/postgresDurability.js';
import { anchorDay } from '../../publicLog/log/auditAnchor.js';
import { Cosigning } from '../../publicLog/log/cosigning.js';
import { EvidenceWatch } from '../../publicLog/log/evidenceWatch.js';
import { LogCopies } from '../../publicLog/log/logCopies.js';
import { PublicLog } from '../../publicLog/log/logWriter.js';
import { beginLog, type LogState, logState, noteAuditHead } from '../../publicLog/log/publicLog.store.js';
import { noteWitnesses } from '../../publicLog/log/witnesses.store.js';
import { PROGRAM_CHECK_CRON } from '../constants.js';
import { logKeyFile, readOrCreateSecret, SetupError } from '../embedded/index.js';
import { registerLogMetrics } from '../metrics/logMetrics.js';
import type { RoleParts } from './parts.js';

const SEED_BYTES = 32;

/** Returns the default origin of a log without a configured name. */
const originOf = (datasetId: string): string =>
  `spindle-${createHash('sha256').update(datasetId).digest('hex').slice(0, 16)}.invalid/log`;

const newKey = (origin: string): string => signerKeyOf(signerOf(origin, 'log', randomBytes(SEED_BYTES)));

type Parts = Pick<RoleParts, 'config' | 'sql' | 'installed' | 'secretBox'>;

/** @throws SetupError if a key does not belong to this log */
function signersIn(texts: readonly string[], origin: string, from: string): Signer[] {
  return texts.map((text) => {
    try {
      const signer = parseSignerKey(text.trim());
      if (signer.name === origin && signer.algorithm === 'log') return signer;
    } catch {
      // The error thrown after the loop reports an invalid key without revealing its text.
    }
    throw new SetupError(`${from} must contain signer keys with the name ${origin}, the origin of the log`);
  });
}

/**
 * Returns the configured signing keys, or a stored one, which is created if missing. The stored key is in
 * DATA_DIR if Postgres is embedded, otherwise in Postgres.
 */
async function signersOf(
  { config, secretBox }: Parts,
  origin: string,
  state: LogState | undefined,
): Promise<{ signers: Signer[]; kept: string | null }> {
  if (config.LOG_KEY !== undefined)
    return { signers: signersIn(config.LOG_KEY.split(','), origin, 'LOG_KEY'), kept: null };
  if (config.DATABASE_URL === undefined) {
    const path = logKeyFile(config.dataDir, origin);
    const text = await readOrCreateSecret(path, () => newKey(origin));
    return { signers: signersIn([text], origin, path), kept: null };
  }
  const sealed = state === undefined ? secretBox.seal(newKey(origin)) : state.signer;
  if (sealed === null)
    throw new SetupError(
      'LOG_KEY is not set, but this database does not contain the key of the log. Set LOG_KEY to the key.',
    );
  try {
    return { signers: signersIn([secretBox.open(sealed)], origin, 'Postgres'), kept: sealed };
  } catch (error) {
    if (!(error instanceof UnknownKeyError)) throw error;
    throw new SetupError(
      `WEBHOOK_SECRETS_KEY does not contain the key ${error.keyId}, which encrypts the signer key of the public log in Postgres`,
    );
  }
}

/**
 * Reads the log's keys, and begins the log if there is none.
 * @returns the signing keys of this process, and the sealed key if Postgres has it
 * @throws SetupError if the settings do not match the log
 */
async function openLogKeys(parts: Parts): Promise<{ signers: Signer[]; kept: string | null }> {
  const { config, sql, installed } = parts;
  const known = await logState(sql);
  const origin = config.LOG_ORIGIN ?? known?.origin ?? originOf(installed.datasetId);
  if (known !== undefined && known.origin !== origin)
    throw new SetupError(`LOG_ORIGIN is ${origin}, but the public log of this database is ${known.origin}`);
  const { signers, kept } = await signersOf(parts, origin, known);
  const vkeys = signers.map(vkeyOf);
  if (known === undefined) {
    const at = new Date().toISOString();
    const genesis = { type: 'genesis', at, format: 'spindle log v1', origin, vkey: vkeys[0] };
    await beginLog(sql, { origin, vkeys, signer: kept }, publicRecord(genesis));
  }
  const state = (await logState(sql))!;
  // Another worker may have begun the log with its own new key.
  if (known === undefined && kept !== null && state.signer !== kept) return openLogKeys(parts);
  if (!vkeys.includes(state.vkeys[0]!))
    throw new SetupError(`LOG_KEY does not contain the current key of the public log: ${state.vkeys[0]}`);
  return { signers, kept };
}

const ANCHOR_EVERY_MS = 600_000;
/** Maximum number of witnesses in a policy. Each witness costs one request per second. */
const WITNESSES_MAX = 32;

/**
 * Reads the file LOG_POLICY; undefined if not set.
 * @throws SetupError that names the invalid line
 */
function readPolicy(path: string | undefined): Policy | undefined {
  if (path === undefined) return undefined;
  let policy: Policy;
  try {
    policy = new Policy(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new SetupError(`LOG_POLICY ${path}: ${(error as Error).message}`);
  }
  const unnamed = policy.witnesses.find(({ url }) => url === undefined);
  if (unnamed !== undefined)
    throw new SetupError(
      `LOG_POLICY ${path}: the witness in line ${unnamed.line} has no address to submit checkpoints to`,
    );
  if (policy.witnesses.length > WITNESSES_MAX)
    throw new SetupError(`LOG_POLICY ${path}: the policy has more than ${WITNESSES_MAX} witnesses`);
  return policy;
}

export interface OpenedLog {
  readonly publicLog: PublicLog;
  readonly copies: LogCopies;
  /** True if a block is loaded into Redis only after enough witnesses have cosigned the block's log entry. */
  readonly hasQuorum: boolean;
  /** Returns the reason why nothing may be dealt yet. Undefined if dealing is allowed. */
  readonly problem: () => string | undefined;
}

/**
 * Starts a worker's services for the public log: appending, signing and publishing, asking the witnesses, and
 * searching for evidence of a fork.
 */
export async function openPublicLog(parts: RoleParts, onFailpoint: OnFailpoint): Promise<OpenedLog> {
  const { config, sql, nodes, services, events, metrics, log } = parts;
  const policy = readPolicy(config.LOG_POLICY);
  const witnesses = policy?.witnesses ?? [];
  const opened = await openLogKeys(parts);
  let { signers } = opened;
  if (opened.kept !== null)
    log.warn('the signing key of the public log is stored in Postgres because LOG_KEY is not set');
  await noteWitnesses(sql, witnesses.map(vkeyOf), policy?.rules.join('\n') ?? null);
  const folder = config.LOG_COPY_DIR;
  if (folder === undefined && (await hasAsynchronousStandby(sql)))
    log.warn('a Postgres standby is asynchronous: set LOG_COPY_DIR or make the standby synchronous');
  // The evidence watch must start before anything is appended or signed, and before a cell is prepared.
  const watch = new EvidenceWatch({ sql, nodes, folder, witnesses, keys: () => signers, events });
  await services.add(watch);
  const problem = (): string | undefined => watch.problem;
  const hasQuorum = policy !== undefined && !policy.hasNoQuorum;
  let cosigning: Cosigning | undefined;
  const judge = (source: Parameters<EvidenceWatch['judge']>[0]): Promise<boolean> => watch.judge(source);
  const copies = new LogCopies({ sql, nodes, folder, problem, judge, events });
  const publicLog = new PublicLog({
    sql,
    batchMs: config.constants.logBatchMs,
    hasQuorum,
    problem,
    events,
    onFailpoint,
    signersOf: async () => {
      ({ signers } = await openLogKeys(parts));
      return signers;
    },
    onSigned: () => cosigning?.signed(),
    onPublished: () => copies.wake(),
  });
  if (witnesses.length > 0 && policy !== undefined) {
    cosigning = new Cosigning({
      sql,
      policy,
      everyMs: config.constants.logCosignMs,
      judge,
      events,
      onPublished: (size) => publicLog.learnPublished(size),
    });
  }
  registerLogMetrics({ metrics, events, publicLog, copies, witnesses: () => cosigning?.states() ?? [] });
  await services.add(publicLog);
  await services.add(copies);
  if (cosigning !== undefined) await services.add(cosigning);
  const anchors = job(events, 'audit anchor', ANCHOR_EVERY_MS, async () => {
    const day = anchorDay(PROGRAM_CHECK_CRON, parts.world.now());
    // The public log polls for waiting records every two seconds, so there is no need to wake it here.
    if (day !== undefined) await noteAuditHead(sql, day);
  });
  await services.add(anchors);
  return { publicLog, copies, hasQuorum, problem };
}
