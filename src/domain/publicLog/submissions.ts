/**
 * Messages between a log and a witness (C2SP tlog-witness, `add-checkpoint`), and the decision of a witness
 * about a submission.
 */
import { type Checkpoint, parseCheckpoint } from './checkpoints.js';
import { fromBase64, fromDecimal } from './encoding.js';
import { type Note, NoteError, parseNote, signersOf, type Verifier } from './notes.js';
import { EMPTY_ROOT, HASH_BYTES, isConsistent } from './tree.js';

const PROOF_MAX = 63;
/** Media type of the response that contains the size known to the witness. */
export const SIZE_TYPE = 'text/x.tlog.size';

export interface Submission {
  /** Size of the newest checkpoint that the witness has cosigned. */
  readonly old: number;
  /** Proof that the tree of the submitted checkpoint contains the tree of the old checkpoint. */
  readonly proof: readonly Buffer[];
  /** The signed note of the checkpoint, unchanged. */
  readonly note: string;
}

export const submissionText = ({ old, proof, note }: Submission): string =>
  [`old ${old}`, ...proof.map((hash) => hash.toString('base64')), '', note].join('\n');

export function parseSubmission(text: string): Submission & { readonly parsed: Note } {
  const end = text.indexOf('\n\n');
  const [first = '', ...lines] = text.slice(0, Math.max(end, 0)).split('\n');
  const old = first.startsWith('old ') ? fromDecimal(first.slice('old '.length)) : undefined;
  const proof = lines.map(fromBase64);
  if (old === undefined || lines.length > PROOF_MAX || proof.some((hash) => hash?.length !== HASH_BYTES)) {
    throw new NoteError('The body must have an old size, at most 63 hashes, an empty line and a checkpoint');
  }
  const note = text.slice(end + 2);
  return { old, proof: proof as Buffer[], note, parsed: parseNote(note) };
}

/** State of a log as a witness knows it. */
export interface WitnessedLog {
  /** Keys of the log whose signatures are accepted. Empty if the log is unknown. */
  readonly keys: readonly Verifier[];
  /** Newest checkpoint that the witness cosigned. */
  readonly newest: Checkpoint | undefined;
}

/** Refusal of a witness to cosign: HTTP status and description. */
export interface WitnessRefusal {
  readonly status: 400 | 403 | 404 | 409 | 422;
  readonly problem: string;
  /** Whether the log signed the checkpoint although it contradicts the history that the witness has seen. */
  readonly isFork: boolean;
}

const refusal = (status: WitnessRefusal['status'], problem: string, isFork = false): WitnessRefusal => ({
  status,
  problem,
  isFork,
});

/** Returns the log's keys that signed the note, or the reason for a refusal. */
function opened(note: Note, keys: readonly Verifier[]): { signers: Verifier[] } | WitnessRefusal {
  if (keys.length === 0) return refusal(404, 'this witness does not know the log');
  try {
    const signers = signersOf(note, keys);
    return signers.length === 0
      ? refusal(403, 'the checkpoint has no signature by a known key of the log')
      : { signers };
  } catch (error) {
    if (error instanceof NoteError) return refusal(403, error.message);
    throw error;
  }
}

/** Returns why a tree does not contain the newest tree that the witness has seen. Undefined if it does. */
function inconsistency(
  { old, proof }: Submission,
  { size, root }: Checkpoint,
  newest: Checkpoint | undefined,
): WitnessRefusal | undefined {
  if (size === 0 && !root.equals(EMPTY_ROOT)) return refusal(422, 'the root is not the root of an empty log');
  if (old === 0)
    return proof.length === 0 ? undefined : refusal(422, 'the proof must be empty if the old size is 0');
  const older = newest!;
  if (isConsistent(older, { size, root }, proof)) return undefined;
  const isFork = older.size === size && !older.root.equals(root);
  return refusal(
    422,
    'the proof does not show that the tree contains the tree of the last cosigned checkpoint',
    isFork,
  );
}

/**
 * @param log returns the state of a log by the origin of the checkpoint
 * @returns the checkpoint and the keys of the log that signed it, or the refusal
 * @throws NoteError if the note is not a checkpoint (400)
 */
export function judgeSubmission(
  submission: Submission & { readonly parsed: Note },
  log: (origin: string) => WitnessedLog,
): { readonly checkpoint: Checkpoint; readonly signers: readonly Verifier[] } | WitnessRefusal {
  const checkpoint = parseCheckpoint(submission.parsed.text);
  const { keys, newest } = log(checkpoint.origin);
  const found = opened(submission.parsed, keys);
  if ('status' in found) return found;
  if (submission.old > checkpoint.size)
    return refusal(400, 'the old size is above the size of the checkpoint');
  if (submission.old !== (newest?.size ?? 0))
    return refusal(409, 'the old size is not the size of the last cosigned checkpoint');
  return inconsistency(submission, checkpoint, newest) ?? { checkpoint, signers: found.signers };
}
