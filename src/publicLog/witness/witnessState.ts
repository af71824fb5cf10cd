/**
 * State of a witness, in a folder that one process locks. For each watched log the folder has the newest
 * cosigned checkpoint with its cosignature. A checkpoint is stored on disk before its cosignature leaves the
 * process.
 */
import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Checkpoint, parseCheckpoint } from '../../domain/publicLog/checkpoints.js';
import {
  cosignatureLine,
  type Note,
  noteText,
  parseLines,
  parseNote,
  type Signer,
  type Verifier,
} from '../../domain/publicLog/notes.js';
import { lockDataDir } from '../../platform/dataDirLock.js';
import { readIfThere, writeDurably } from '../../platform/files.js';

/** Maximum number of evidence files of one log. Two contradicting notes are enough as proof. */
const EVIDENCE_MAX = 32;

/** Returns the SHA-256 of a log's origin in lowercase hexadecimal, which names the log in paths. */
export const nameOf = (origin: string): string => createHash('sha256').update(origin).digest('hex');

/**
 * Creates a folder if necessary and locks it until this process ends.
 * @returns the real path of the folder
 * @throws Error if another process has locked it
 */
export const holdFolder = async (folder: string): Promise<string> =>
  (await lockDataDir(folder, '--state')).dataDir;

/** Stored checkpoint with the signature lines of the log and of the witness. */
export interface Kept {
  readonly note: string;
  readonly checkpoint: Checkpoint;
}

export class WitnessState {
  readonly #folder: string;
  readonly #signer: Signer;
  readonly #newest = new Map<string, Kept | undefined>();
  /** Queue of operations by origin, so that comparing and storing checkpoints of one log never overlap. */
  readonly #turns = new Map<string, Promise<unknown>>();

  /** @param folder folder that this process has locked */
  constructor(folder: string, signer: Signer) {
    this.#folder = folder;
    this.#signer = signer;
  }

  pathOf(origin: string, ...parts: string[]): string {
    return join(this.#folder, nameOf(origin), ...parts);
  }

  /** Returns the files with contradicting notes of a log. */
  async #evidence(origin: string): Promise<string[]> {
    const found = await readdir(join(this.#folder, 'evidence')).catch(() => []);
    return found.filter((file) => file.startsWith(nameOf(origin)));
  }

  async hasEvidence(origin: string): Promise<boolean> {
    return (await this.#evidence(origin)).length > 0;
  }

  /** Stores two contradicting checkpoints, unless many are stored already. */
  async keepEvidence(origin: string, seen: string, shown: string): Promise<string> {
    const folder = join(this.#folder, 'evidence');
    if ((await this.#evidence(origin)).length >= EVIDENCE_MAX) return folder;
    const pair = createHash('sha256').update(seen).update(shown).digest('hex').slice(0, 16);
    await writeDurably(join(folder, `${nameOf(origin)}-${pair}-seen.txt`), seen);
    await writeDurably(join(folder, `${nameOf(origin)}-${pair}-shown.txt`), shown);
    return folder;
  }

  async newest(origin: string): Promise<Kept | undefined> {
    if (!this.#newest.has(origin)) {
      const note = (await readIfThere(this.pathOf(origin, 'checkpoint')))?.toString('utf8');
      this.#newest.set(
        origin,
        note === undefined ? undefined : { note, checkpoint: parseCheckpoint(parseNote(note).text) },
      );
    }
    return this.#newest.get(origin);
  }

  /** Runs an operation on a log's checkpoints after the operation that is queued before it has ended. */
  inTurn<T>(origin: string, run: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(origin) ?? Promise.resolve();
    const result = before.then(run);
    this.#turns.set(
      origin,
      result.catch(() => {}),
    );
    return result;
  }

  /**
   * Cosigns a checkpoint and stores it. The caller must have verified that the checkpoint contains the newest
   * one.
   * @param signers keys of the log that signed it
   */
  async cosign(note: Note, signers: readonly Verifier[]): Promise<string> {
    const line = cosignatureLine(note.text, this.#signer, Math.floor(Date.now() / 1000));
    const own = note.lines.filter(({ name, keyId }) =>
      signers.some((signer) => signer.name === name && signer.keyId === keyId),
    );
    const kept = noteText(note.text, [...own, ...parseLines(line)]);
    const checkpoint = parseCheckpoint(note.text);
    await writeDurably(this.pathOf(checkpoint.origin, 'checkpoint'), kept);
    this.#newest.set(checkpoint.origin, { note: kept, checkpoint });
    return line;
  }
}
