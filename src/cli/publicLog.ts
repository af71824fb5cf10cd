/**
 * `spindle log`: shows the public log in Postgres, and checks whether it contains the tree of a signed
 * checkpoint. Repairs or replaces a log that does not.
 */
import { randomBytes } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { newLogKeyFile, readOrCreateSecret } from '../app/embedded/index.js';
import { parseCheckpoint } from '../domain/publicLog/checkpoints.js';
import {
  NoteError,
  parseNote,
  parseSignerKey,
  parseVkey,
  type Signer,
  signerKeyOf,
  signerOf,
  signersOf,
  vkeyOf,
} from '../domain/publicLog/notes.js';
import { Policy } from '../domain/publicLog/policy.js';
import { installation } from '../engine/recovery/installation.store.js';
import { giveCopyUp, missingCopies } from '../engine/recovery/outsideCopies.store.js';
import type { RedisNodes } from '../engine/redis/nodes.js';
import { openNodes } from '../engine/redis/openNodes.js';
import { lineOf } from '../platform/secretsInLogs.js';
import type { Sql } from '../postgres/connection.js';
import { readEvidence } from '../publicLog/log/evidenceWatch.js';
import { haltOnEvidence, hashOfOrigin } from '../publicLog/log/forkEvidence.js';
import {
  beginAnother,
  declareLost,
  endHalt,
  gameLabels,
  holdLog,
  importRecords,
  keysAfter,
} from '../publicLog/log/logImport.store.js';
import { type LogState, logOrigins, logState } from '../publicLog/log/publicLog.store.js';
import { PublicLogReads } from '../publicLog/log/publicLogReads.store.js';
import { lookAtWitnesses } from '../publicLog/log/witnesses.store.js';
import { LogReader, type SeenCheckpoint } from '../publicLog/witness/logReader.js';
import { FaultsError, type StoreUrls, UsageError } from './command.js';
import { openPostgres } from './openPostgres.store.js';
import { recoverRestored } from './recover.js';

export interface LogSettings {
  readonly allowVolatileRedis: boolean;
  readonly CLOCK_SKEW_MAX_S: number;
  readonly POSITION_FILE?: string;
  readonly LOG_KEY?: string;
  readonly LOG_POLICY?: string;
  readonly LOG_COPY_DIR?: string;
  readonly DATABASE_URL?: string;
  readonly WEBHOOK_SECRETS_KEY?: string;
  readonly dataDir: string;
}

const ACTOR = 'command';
/** Number of records imported in one transaction. */
const RECORDS_AT_ONCE = 16_384;
const ORIGIN = /^[!-*,-~]{1,255}$/;

const progress = (line: string): void => void process.stderr.write(`${line}\n`);

interface Opened {
  readonly sql: Sql;
  readonly nodes: RedisNodes;
  readonly state: LogState;
  readonly settings: LogSettings;
}

async function withStores(
  { redisUrl, databaseUrl }: StoreUrls,
  settings: LogSettings,
  run: (opened: Opened) => Promise<number>,
): Promise<number> {
  let nodes: RedisNodes | undefined;
  const sql = openPostgres(databaseUrl, 'log', 4);
  try {
    const state = await logState(sql);
    if (state === undefined)
      throw new UsageError('The public log does not exist yet. A worker creates it when it starts.');
    nodes = await openNodes(redisUrl, () => {});
    nodes.writtenFormat = (await installation(sql)).format;
    return await run({ sql, nodes, state, settings });
  } finally {
    nodes?.close();
    await sql.end();
  }
}

const print = (isJson: boolean, value: object, lines: readonly string[]): void =>
  void process.stdout.write(`${isJson ? JSON.stringify(value) : lines.join('\n')}\n`);

/** @returns the exit status: 0 if the log is running, 1 if it is halted */
export async function showLog(
  urls: StoreUrls,
  settings: LogSettings,
  { json }: { readonly json: boolean },
): Promise<number> {
  return withStores(urls, settings, async ({ sql, state }) => {
    const published = await new PublicLogReads(sql).publishedOf(state.logId);
    const witnesses = (await lookAtWitnesses(sql)).ages;
    const shown = {
      origin: state.origin,
      size: state.size,
      root: state.root.toString('base64'),
      publishedSize: published?.size ?? 0,
      keys: state.vkeys,
      witnesses,
      halted: state.halt,
      isDealing: !state.isHeld,
      haltNote: state.haltNote,
      earlier: (await logOrigins(sql)).slice(0, -1),
    };
    const ages = witnesses.map(
      ({ vkey, cosignedSeconds, knownSeconds, isRefusing }) =>
        `witness    ${vkey}: ${isRefusing ? 'refuses; ' : ''}${
          cosignedSeconds === null
            ? `has never cosigned, configured ${Math.round(knownSeconds)} s ago`
            : `cosigned ${Math.round(cosignedSeconds)} s ago`
        }`,
    );
    print(json, shown, [
      `origin     ${shown.origin}`,
      `size       ${shown.size}, ${shown.publishedSize} published`,
      `root       ${shown.root}`,
      ...shown.keys.map((vkey) => `key        ${vkey}`),
      ...ages,
      ...shown.earlier.map((origin) => `previous   ${origin}, at /log/${hashOfOrigin(origin)}/`),
      `halted     ${state.halt === null ? 'no' : `${state.halt}${state.isHeld ? '; dealing is stopped' : ''}`}`,
    ]);
    return state.halt === null ? 0 : 1;
  });
}

function givenKeys({ LOG_KEY: texts }: LogSettings): Signer[] {
  try {
    return (texts?.split(',') ?? []).map((text) => parseSignerKey(text.trim()));
  } catch {
    throw new UsageError('LOG_KEY must contain signer keys of the form PRIVATE+KEY+NAME+KEYID+KEY');
  }
}

/** @returns the exit status: 0 if the log contains the note's tree; 1 if it does not, which halts the log */
export async function checkNote(
  urls: StoreUrls,
  settings: LogSettings,
  { note: path, json }: { readonly note: string; readonly json: boolean },
): Promise<number> {
  const note = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new UsageError(`Cannot read ${path}: ${lineOf(error)}`);
  });
  return withStores(urls, settings, async ({ sql, state }) => {
    const keys = [...state.vkeys.map(parseVkey), ...givenKeys(settings)];
    const size = ownSize(note, state.origin, keys, path);
    const halting = { keys, isHeld: false, actor: ACTOR };
    const found = await haltOnEvidence(sql, [{ from: 'log check', note }], halting);
    const isContained = found === undefined;
    print(json, { isContained, size, problem: found?.problem ?? null }, [
      isContained
        ? `CONTAINED: the log of ${state.size} records contains the tree of ${size} records`
        : `NOT CONTAINED: ${found.problem}. The log is halted.`,
    ]);
    return isContained ? 0 : 1;
  });
}

/** Returns the size of the tree in a note of this log. */
function ownSize(note: string, origin: string, keys: Parameters<typeof signersOf>[1], path: string): number {
  try {
    const parsed = parseNote(note);
    const checkpoint = parseCheckpoint(parsed.text);
    if (checkpoint.origin !== origin)
      throw new NoteError(
        `it belongs to the log ${checkpoint.origin}, but the log of this database is ${origin}`,
      );
    if (signersOf(parsed, keys).length === 0) throw new NoteError('it is not signed by a key of the log');
    return checkpoint.size;
  } catch (error) {
    if (error instanceof NoteError) throw new UsageError(`${path}: ${error.message}`);
    throw error;
  }
}

/** Opens a copy of a log at a URL or in a folder. A mirror folder may contain several logs. */
async function readerOf(from: string, origin: string): Promise<LogReader> {
  if (/^https?:\/\//.test(from)) {
    if (!URL.canParse(from)) throw new UsageError(`«${from}» is not a valid address`);
    return new LogReader(from);
  }
  const own = join(from, hashOfOrigin(origin));
  const isThere = (path: string): Promise<boolean> =>
    stat(join(path, 'checkpoint')).then(
      () => true,
      () => false,
    );
  if (await isThere(own)) return new LogReader(own);
  if (await isThere(from)) return new LogReader(from);
  throw new UsageError(`${from} does not contain a checkpoint of a log`);
}

/**
 * Returns all known checkpoints of the log that come from outside the log tables: from Redis, the copy, the
 * witnesses, and the record of a halt.
 */
async function outside({ nodes, state, settings }: Opened): Promise<{ from: string; note: string }[]> {
  const path = settings.LOG_POLICY;
  const policy = path === undefined ? undefined : new Policy(await readFile(path, 'utf8'));
  const witnesses = policy?.witnesses.filter(({ url }) => url !== undefined) ?? [];
  const sources = { nodes, folder: settings.LOG_COPY_DIR, witnesses };
  const read = await readEvidence(sources, state.origin, (error) => progress(lineOf(error)));
  if (read === undefined) throw new Error('Redis is not responding');
  return [...read, ...(state.haltNote === null ? [] : [{ from: 'noted before', note: state.haltNote }])];
}

/**
 * Checks that the tree to be imported contains every known signed tree.
 * @throws FaultsError if a note of the log has a signed tree that the copy does not contain
 */
async function assertLargest(opened: Opened, reader: LogReader, seen: SeenCheckpoint): Promise<void> {
  const { state } = opened;
  const { size } = seen.checkpoint;
  const faults: string[] = [];
  for (const { from, note } of await outside(opened)) {
    let known: ReturnType<typeof parseCheckpoint>;
    try {
      const parsed = parseNote(note);
      known = parseCheckpoint(parsed.text);
      const keys = [...state.vkeys.map(parseVkey), ...seen.signers];
      if (known.origin !== state.origin || signersOf(parsed, keys).length === 0) continue;
    } catch (error) {
      if (error instanceof NoteError) continue;
      throw error;
    }
    if (known.size > size) faults.push(`${from}: a signed checkpoint of ${known.size} records`);
    else if (known.size > 0 && !(await reader.rootWithin(known.size, seen.checkpoint)).equals(known.root))
      faults.push(`${from}: a signed checkpoint of ${known.size} records with another root`);
  }
  if (faults.length > 0)
    throw new FaultsError(
      `The copy has ${size} records, but the log has signed checkpoints that the copy does not contain. Use another copy, or begin a new log.`,
      faults,
    );
}

/**
 * Returns the newest checkpoint of a copy. Keys from the settings are accepted besides the recorded keys,
 * because the record of a key replacement may be lost.
 */
async function seenOf(reader: LogReader, { state, settings }: Opened): Promise<SeenCheckpoint> {
  const own = [...state.vkeys.map(parseVkey), ...givenKeys(settings)];
  return reader.checkpoint(own.filter(({ name }) => name === state.origin));
}

/** Imports the records that the copy has and the log lacks. Each batch is proven by the copy's checkpoint. */
async function takeOver({ sql, state }: Opened, reader: LogReader, seen: SeenCheckpoint): Promise<LogState> {
  const { checkpoint } = seen;
  if (state.size > checkpoint.size)
    throw new FaultsError('The log has more records than the copy. Use a newer copy.', []);
  if (!(await reader.rootWithin(state.size, checkpoint)).equals(state.root))
    throw new FaultsError(
      'The copy does not contain the log that Postgres has, because the two logs differ. Begin a new log.',
      [],
    );
  const labels = await gameLabels(sql);
  let now = state;
  while (now.size < checkpoint.size) {
    const to = Math.min(now.size + RECORDS_AT_ONCE, checkpoint.size);
    const records = await reader.records(now.size, to, checkpoint.size);
    if (records.length !== to - now.size) throw new Error('Some records are missing in the copy');
    keysAfter(now.vkeys, records);
    await importRecords(sql, now, records, await reader.rootWithin(to, checkpoint), labels);
    progress(`imported ${to} of ${checkpoint.size} records`);
    now = (await logState(sql))!;
  }
  return now;
}

/**
 * Voids all open outcomes, including those that players may have seen.
 * @throws FaultsError if a cell could not be recovered
 */
async function giveUpOpen({ sql, nodes, settings }: Opened): Promise<void> {
  const unwell = await recoverRestored(sql, nodes, {
    allowVolatile: settings.allowVolatileRedis,
    clockSkewMaxS: settings.CLOCK_SKEW_MAX_S,
    positionFile: settings.POSITION_FILE,
    progress,
  });
  if (unwell.length > 0)
    throw new FaultsError(
      'Some cells could not be recovered, so dealing is stopped. Run the command again.',
      unwell.map(({ cell, state, note }) => `cell ${cell}: ${state} ${note}`.trimEnd()),
    );
}

/**
 * Returns whether a worker failed to find the copy of the log that Postgres has on record. In that case
 * Postgres may have been restored to an older state.
 */
const isCopyMissing = async (sql: Sql): Promise<boolean> =>
  (await missingCopies(sql)).includes('LOG_COPY_DIR');

/** @returns the exit status: 0 if records were imported, 1 if there is nothing to import */
export async function importLog(
  urls: StoreUrls,
  settings: LogSettings,
  { from, json }: { readonly from: string; readonly json: boolean },
): Promise<number> {
  return withStores(urls, settings, async (opened) => {
    const { sql, state } = opened;
    const reader = await readerOf(from, state.origin);
    const seen = await seenOf(reader, opened);
    await assertLargest(opened, reader, seen);
    const source = { from: `log import ${from}`, note: seen.text };
    const halting = { keys: seen.signers, isHeld: true, actor: ACTOR };
    const found = await haltOnEvidence(sql, [source], halting);
    const halted = (await logState(sql))!;
    if (found === undefined && halted.halt === null) {
      print(json, { imported: 0, lost: 0, size: state.size }, [
        'Nothing to import. The log contains all records of the copy.',
      ]);
      return 1;
    }
    await holdLog(sql, state.logId);
    const now = await takeOver({ ...opened, state: halted }, reader, seen);
    const lost = await declareLost(sql);
    await giveUpOpen(opened);
    const imported = now.size - state.size;
    await endHalt(sql, now, seen.text, { from, imported, lost });
    if (await isCopyMissing(sql)) await giveCopyUp(sql, 'LOG_COPY_DIR');
    print(json, { imported, lost, size: now.size }, [
      `IMPORTED: ${imported} records; the log has ${now.size} records. ${lost} entries of games are lost, and the log declares them lost.`,
      'Next: start the processes of the service if they are stopped, wait until /statusz is 200, and run `spindle audit`.',
    ]);
    return 0;
  });
}

/**
 * Returns the key of the new log: from LOG_KEY, or a new key, stored where the key of the previous log is
 * stored.
 */
async function newKey(
  { state, settings }: Opened,
  origin: string,
): Promise<{ signers: readonly Signer[]; kept: string | null }> {
  if (settings.LOG_KEY !== undefined) {
    const signers = givenKeys(settings).filter(
      ({ name, algorithm }) => name === origin && algorithm === 'log',
    );
    if (signers.length === 0)
      throw new UsageError(
        `LOG_KEY contains no key with the name ${origin}. Add a key with this name to LOG_KEY and set LOG_ORIGIN, for this command and for all workers.`,
      );
    return { signers, kept: null };
  }
  const made = signerKeyOf(signerOf(origin, 'log', randomBytes(32)));
  if (settings.DATABASE_URL === undefined) {
    const text = await readOrCreateSecret(newLogKeyFile(settings.dataDir, origin), () => made);
    return { signers: [parseSignerKey(text)], kept: null };
  }
  if (state.signer === null)
    throw new UsageError(
      'LOG_KEY is not set, but the current log has its key there. Set LOG_KEY to a new key.',
    );
  const { SecretBox } = await import('../domain/secretBox.js');
  const box = new SecretBox(settings.WEBHOOK_SECRETS_KEY?.split(',') ?? []);
  return { signers: [parseSignerKey(made)], kept: box.seal(made) };
}

/** @returns the exit status, which is 0 */
export async function runBeginLog(
  urls: StoreUrls,
  settings: LogSettings,
  { origin, reason, json }: { readonly origin: string; readonly reason: string; readonly json: boolean },
): Promise<number> {
  if (!ORIGIN.test(origin))
    throw new UsageError('--origin must be 1 to 255 ASCII characters without spaces or +');
  return withStores(urls, settings, async (opened) => {
    const { sql, state } = opened;
    if ((await logOrigins(sql)).includes(origin))
      throw new UsageError(`${origin} is the name of an earlier log of this database. Use another name.`);
    const { signers, kept } = await newKey(opened, origin);
    // If Postgres was restored to an older state, players may have seen open outcomes, so the open outcomes
    // are voided.
    const isMissing = await isCopyMissing(sql);
    if (state.isHeld || isMissing) await giveUpOpen(opened);
    const log = { origin, vkeys: signers.map(vkeyOf), signer: kept };
    const blocks = await beginAnother(sql, state, log, reason);
    if (isMissing) await giveCopyUp(sql, 'LOG_COPY_DIR');
    print(json, { origin, vkey: log.vkeys[0]!, previous: state.origin, blocks }, [
      `BEGUN: ${origin}`,
      `key        ${log.vkeys[0]}`,
      `previous   ${state.origin}, at /log/${hashOfOrigin(state.origin)}/`,
      `${blocks} open blocks were logged again and marked as late`,
    ]);
    return 0;
  });
}
