/**
 * What a witness keeps of the logs that it watches, in a folder that one process holds: of each the newest checkpoint that it
 * cosigned, with its cosignature. A checkpoint is on disk before anybody sees the cosignature.
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

/** Files of evidence of one log: a pair proves it. */
const EVIDENCE_MAX = 32;

/** How a log is named in paths: SHA-256 of its origin, lowercase hexadecimal. */
export const nameOf = (origin: string): string => createHash('sha256').update(origin).digest('hex');

/** Makes a folder if need be, and holds it until this process ends. @returns its real path. @throws Error where another one holds it */
export const holdFolder = async (folder: string): Promise<string> =>
  (await lockDataDir(folder, '--state')).dataDir;

/** A checkpoint as it is kept: with the log's own lines and the witness's. */
export interface Kept {
  readonly note: string;
  readonly checkpoint: Checkpoint;
}

export class WitnessState {
  readonly #folder: string;
  readonly #signer: Signer;
  readonly #newest = new Map<string, Kept | undefined>();
  /** By origin: what is compared and stored, one after the other. */
  readonly #turns = new Map<string, Promise<unknown>>();

  /** @param folder held by this process alone */
  constructor(folder: string, signer: Signer) {
    this.#folder = folder;
    this.#signer = signer;
  }

  pathOf(origin: string, ...parts: string[]): string {
    return join(this.#folder, nameOf(origin), ...parts);
  }

  /** Notes of a log that contradict each other. */
  async #evidence(origin: string): Promise<string[]> {
    const found = await readdir(join(this.#folder, 'evidence')).catch(() => []);
    return found.filter((file) => file.startsWith(nameOf(origin)));
  }

  async hasEvidence(origin: string): Promise<boolean> {
    return (await this.#evidence(origin)).length > 0;
  }

  /** Keeps two checkpoints that contradict each other, unless there are many already. @returns their folder */
  async keepEvidence(origin: string, seen: string, shown: string): Promise<string> {
    const folder = join(this.#folder, 'evidence');
    if ((await this.#evidence(origin)).length >= EVIDENCE_MAX) return folder;
    const pair = createHash('sha256').update(seen).update(shown).digest('hex').slice(0, 16);
    await writeDurably(join(folder, `${nameOf(origin)}-${pair}-seen.txt`), seen);
    await writeDurably(join(folder, `${nameOf(origin)}-${pair}-shown.txt`), shown);
    return folder;
  }

  /** The newest checkpoint of a log that was cosigned. */
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

  /** Runs what compares and stores checkpoints of a log, one after the other. */
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
   * Cosigns a checkpoint, which must contain the newest one, and keeps it.
   * @param signers the log's keys that have signed it
   * @returns the line of the cosignature
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
