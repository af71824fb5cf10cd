/**
 * Checks whether the public log in Postgres contains every tree that was signed before. Evidence of a missing
 * tree may be found in notes in Redis, in LOG_COPY_DIR, at the witnesses, and in the record of a halt.
 *
 * All sources are checked before any cell deals, and evidence found then prevents dealing. Later only Redis
 * and LOG_COPY_DIR are checked again, and evidence halts the log.
 */
import { join } from 'node:path';
import { type Checkpoint, parseCheckpoint } from '../../domain/publicLog/checkpoints.js';
import { NoteError, parseNote, type Verifier } from '../../domain/publicLog/notes.js';
import type { Witness } from '../../domain/publicLog/policy.js';
import { type EventEmitter, taskFailed } from '../../engine/processEvents.js';
import { missingCopy } from '../../engine/recovery/outsideCopies.store.js';
import { LOG_COMMANDS } from '../../engine/recovery/positionFindings.store.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';
import { readIfThere, UnreadableFileError } from '../../platform/files.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import { haltOnEvidence, hashOfOrigin, witnessNote } from './forkEvidence.js';
import { type LogState, logState } from './publicLog.store.js';

export interface EvidenceOptions {
  readonly sql: Sql;
  readonly nodes: Pick<RedisNodes, 'logNotes'>;
  /** Folder LOG_COPY_DIR; undefined if not set. */
  readonly folder: string | undefined;
  /** Witnesses that have an address. */
  readonly witnesses: readonly Witness[];
  readonly keys: () => readonly Verifier[];
  readonly events: EventEmitter;
}

interface Source {
  readonly from: string;
  readonly note: string;
}

type CopyState =
  | { readonly state: 'readable' | 'missing' }
  | { readonly state: 'unreadable'; readonly reason: string };

/** Returns whether a folder holds a copy of a public log, that is, a readable checkpoint. */
async function logCopyIn(folder: string | undefined): Promise<CopyState> {
  if (folder === undefined) return { state: 'missing' };
  try {
    const note = await readIfThere(join(folder, 'checkpoint'));
    if (note === undefined) return { state: 'missing' };
    if (checkpointOf(note.toString('utf8')) !== undefined) return { state: 'readable' };
    const what = note.length === 0 ? 'is empty' : "isn't a checkpoint, or is cut off";
    return { state: 'unreadable', reason: `its file checkpoint ${what}` };
  } catch (error) {
    if (!(error instanceof UnreadableFileError)) throw error;
    return { state: 'unreadable', reason: error.message };
  }
}

/** @returns undefined if the text is not a checkpoint */
export function checkpointOf(note: string): Checkpoint | undefined {
  try {
    return parseCheckpoint(parseNote(note).text);
  } catch (error) {
    if (error instanceof NoteError) return undefined;
    throw error;
  }
}

const EVERY_MS = 10_000;
/** Interval of the checks, in ms, until one has succeeded. */
const FIRST_EVERY_MS = 500;

/**
 * A witness that does not respond counts as having none.
 * @returns undefined if Redis does not respond
 */
export async function readEvidence(
  { nodes, folder, witnesses }: Pick<EvidenceOptions, 'nodes' | 'folder' | 'witnesses'>,
  origin: string,
  onError: (error: unknown) => void,
): Promise<Source[] | undefined> {
  const quietly = async <T>(read: Promise<T>, otherwise: T): Promise<T> =>
    read.catch((error: unknown) => {
      onError(error);
      return otherwise;
    });
  const [inRedis, copied, shown] = await Promise.all([
    quietly(nodes.logNotes(hashOfOrigin(origin)), []),
    // An unreadable copy may hold evidence, so its read error is not suppressed.
    folder === undefined ? undefined : readIfThere(join(folder, 'checkpoint')),
    Promise.all(witnesses.map(async ({ label, url }) => ({ label, note: await witnessNote(origin, url!) }))),
  ]);
  if (inRedis === undefined) return undefined;
  return [
    ...inRedis.map((note) => ({ from: 'Redis', note })),
    ...(copied === undefined ? [] : [{ from: 'LOG_COPY_DIR', note: copied.toString('utf8') }]),
    ...shown.flatMap(({ label, note }) => (note === undefined ? [] : [{ from: `witness ${label}`, note }])),
  ];
}

export class EvidenceWatch extends PeriodicService {
  readonly name = 'public log verification';
  #isFirst = true;
  /**
   * Reason why the copy of the log that Postgres has recorded counts as missing; undefined if the copy
   * exists.
   */
  #missing: string | undefined;
  /** Log, keys and notes of the newest check that found no evidence ({@link #textOf}). */
  #judged: string | undefined;

  constructor(private readonly options: EvidenceOptions) {
    super({ everyMs: FIRST_EVERY_MS }, taskFailed(options.events, 'public log verification'));
  }

  /** Runs the first check before any cell is prepared and before anything is appended. */
  override async start(): Promise<void> {
    await this.takeTurn();
    await super.start();
  }

  /** Reason why nothing may be dealt or appended yet; undefined once the first check is complete. */
  get problem(): string | undefined {
    return this.#isFirst
      ? `log: ${this.#missing ?? 'the public log has not been compared with its published copies yet'}`
      : undefined;
  }

  /**
   * Reports at the start if the copy of the log that Postgres has recorded is missing or unreadable.
   * @returns whether dealing must wait
   */
  async #isCopyMissing(): Promise<boolean> {
    const { sql, folder, events } = this.options;
    const copy = await logCopyIn(folder);
    const damage = copy.state === 'unreadable' ? copy.reason : undefined;
    const reason =
      copy.state === 'readable' ? undefined : await missingCopy(sql, 'LOG_COPY_DIR', folder, damage);
    if (reason !== undefined && reason !== this.#missing)
      events.emit('OutsideCopyMissing', { setting: 'LOG_COPY_DIR', reason });
    this.#missing = reason;
    return reason !== undefined;
  }

  /**
   * Checks a note that was found while the log runs.
   * @returns whether the note is evidence, which halts the log
   */
  async judge(source: Source): Promise<boolean> {
    const { sql, keys } = this.options;
    const before = (await logState(sql))!;
    const halting = { keys: keys(), isHeld: false, actor: 'worker' };
    const found = await haltOnEvidence(sql, [source], halting);
    if (found !== undefined && before.halt === null) await this.#tell();
    return found !== undefined;
  }

  protected async turn(): Promise<void> {
    const { sql, witnesses, keys } = this.options;
    const isFirst = this.#isFirst;
    const known = (await logState(sql))!;
    if (isFirst && (await this.#isCopyMissing())) return;
    const asked = { ...this.options, witnesses: isFirst ? witnesses : [] };
    const read = await readEvidence(asked, known.origin, (error) => this.onTurnFailed(error));
    if (read === undefined) return;
    if (isFirst) {
      const noted = known.haltNote === null ? [] : [{ from: 'noted before', note: known.haltNote }];
      await haltOnEvidence(sql, [...noted, ...read], { keys: keys(), isHeld: true, actor: 'worker' });
      await this.#tell();
    } else await this.#judgeAll(known, read);
    this.#isFirst = false;
    this.postpone(EVERY_MS);
  }

  /** Checks all notes, unless the log, the keys and the notes are the same as at the previous check. */
  async #judgeAll(known: LogState, sources: readonly Source[]): Promise<void> {
    const text = this.#textOf(known, sources);
    if (text === this.#judged) return;
    this.#judged = undefined;
    let isEvidence = false;
    for (const source of sources) if (await this.judge(source)) isEvidence = true;
    if (!isEvidence) this.#judged = text;
  }

  /** Returns a text that determines the result of a check. */
  #textOf({ logId, size, root, vkeys }: LogState, sources: readonly Source[]): string {
    const keyIds = this.options.keys().map(({ keyId }) => keyId);
    return JSON.stringify([logId, size, root.toString('hex'), vkeys, keyIds, sources]);
  }

  /**
   * Emits an event if the log is halted. A halt that was recorded before this process started is reported,
   * too.
   */
  async #tell(): Promise<void> {
    const { sql, events } = this.options;
    const { halt, isHeld } = (await logState(sql))!;
    if (halt !== null) events.emit('LogHalted', { reason: `${halt}: ${LOG_COMMANDS}`, isDealing: !isHeld });
  }
}
