/** What a log sends to a witness, and what a witness answers (C2SP tlog-witness, `add-checkpoint`). */
import { type Checkpoint, parseCheckpoint } from './checkpoints.js';
import { fromBase64, fromDecimal } from './encoding.js';
import { type Note, NoteError, parseNote, signersOf, type Verifier } from './notes.js';
import { EMPTY_ROOT, HASH_BYTES, isConsistent } from './tree.js';

/** Hashes of a consistency proof. */
const PROOF_MAX = 63;
/** The answer that tells the size that the witness has. */
export const SIZE_TYPE = 'text/x.tlog.size';

export interface Submission {
  /** Records of the newest checkpoint that the witness cosigned. */
  readonly old: number;
  /** That the tree of the note contains that one. */
  readonly proof: readonly Buffer[];
  /** As it is. */
  readonly note: string;
}

export const submissionText = ({ old, proof, note }: Submission): string =>
  [`old ${old}`, ...proof.map((hash) => hash.toString('base64')), '', note].join('\n');

/** @throws NoteError where it is not a submission */
export function parseSubmission(text: string): Submission & { readonly parsed: Note } {
  const end = text.indexOf('\n\n');
  const [first = '', ...lines] = text.slice(0, Math.max(end, 0)).split('\n');
  const old = first.startsWith('old ') ? fromDecimal(first.slice('old '.length)) : undefined;
  const proof = lines.map(fromBase64);
  if (old === undefined || lines.length > PROOF_MAX || proof.some((hash) => hash?.length !== HASH_BYTES)) {
    throw new NoteError('The body is not an old size, at most 63 hashes, an empty line and a checkpoint');
  }
  const note = text.slice(end + 2);
  return { old, proof: proof as Buffer[], note, parsed: parseNote(note) };
}

/** What a witness knows of a log. */
export interface WitnessedLog {
  /** Keys whose signature counts; none: the log is unknown. */
  readonly keys: readonly Verifier[];
  /** The newest checkpoint that was cosigned. */
  readonly newest: Checkpoint | undefined;
}

/** Why a witness does not cosign: its answer's status, and for people. */
export interface WitnessRefusal {
  readonly status: 400 | 403 | 404 | 409 | 422;
  readonly problem: string;
  /** The checkpoint is signed by the log, and is not of the history that the witness has seen. */
  readonly isFork: boolean;
}

const refusal = (status: WitnessRefusal['status'], problem: string, isFork = false): WitnessRefusal => ({
  status,
  problem,
  isFork,
});

/** The log's keys that signed it, and its checkpoint; or why it is refused. */
function opened(note: Note, keys: readonly Verifier[]): { signers: Verifier[] } | WitnessRefusal {
  if (keys.length === 0) return refusal(404, 'the log is unknown');
  try {
    const signers = signersOf(note, keys);
    return signers.length === 0 ? refusal(403, 'no known key of the log signed it') : { signers };
  } catch (error) {
    if (error instanceof NoteError) return refusal(403, error.message);
    throw error;
  }
}

/** Why a tree is not one that contains the newest that was seen; undefined: it is. */
function inconsistency(
  { old, proof }: Submission,
  { size, root }: Checkpoint,
  newest: Checkpoint | undefined,
): WitnessRefusal | undefined {
  if (size === 0 && !root.equals(EMPTY_ROOT)) return refusal(422, 'the root of no records is another');
  if (old === 0)
    return proof.length === 0
      ? undefined
      : refusal(422, 'nothing is proven of no records, and a proof is sent');
  const older = newest!;
  if (isConsistent(older, { size, root }, proof)) return undefined;
  const isFork = older.size === size && !older.root.equals(root);
  return refusal(422, 'the proof does not show that the tree contains the one seen before', isFork);
}

/**
 * Judges a submission. @param log by the origin of the checkpoint
 * @returns the checkpoint, and the keys of the log that signed it; or why it is not cosigned
 * @throws NoteError where the note is no checkpoint (400)
 */
export function judgeSubmission(
  submission: Submission & { readonly parsed: Note },
  log: (origin: string) => WitnessedLog,
): { readonly checkpoint: Checkpoint; readonly signers: readonly Verifier[] } | WitnessRefusal {
  const checkpoint = parseCheckpoint(submission.parsed.text);
  const { keys, newest } = log(checkpoint.origin);
  const found = opened(submission.parsed, keys);
  if ('status' in found) return found;
  if (submission.old > checkpoint.size) return refusal(400, 'the old size is above the checkpoint');
  if (submission.old !== (newest?.size ?? 0)) return refusal(409, 'the old size is another');
  return inconsistency(submission, checkpoint, newest) ?? { checkpoint, signers: found.signers };
}
