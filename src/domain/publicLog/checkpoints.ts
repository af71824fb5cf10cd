/**
 * Formats and parses checkpoints (C2SP tlog-checkpoint) and proofs that a log contains a record (C2SP
 * tlog-proof).
 */
import { fromBase64, fromDecimal } from './encoding.js';
import { type Note, NoteError, parseNote } from './notes.js';
import { HASH_BYTES } from './tree.js';

const PROOF_HEAD = 'c2sp.org/tlog-proof@v1';
/** Maximum number of hashes in the path of an inclusion proof. */
const PATH_MAX = 63;

export interface Checkpoint {
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
}

export const checkpointText = ({ origin, size, root }: Checkpoint): string =>
  `${origin}\n${size}\n${root.toString('base64')}\n`;

/** Lines after the third are ignored, because each log may define them. */
export function parseCheckpoint(text: string): Checkpoint {
  const [origin = '', decimal = '', encoded = ''] = text.split('\n');
  const size = fromDecimal(decimal);
  const root = fromBase64(encoded);
  if (origin === '' || size === undefined || root?.length !== HASH_BYTES || !text.endsWith('\n')) {
    throw new NoteError('A checkpoint must have an origin, a size and a root, each on its own line');
  }
  return { origin, size, root };
}

export interface TlogProof {
  readonly index: number;
  readonly path: readonly Buffer[];
  /** The signed note of the checkpoint, unchanged. */
  readonly checkpoint: string;
}

export const tlogProofText = ({ index, path, checkpoint }: TlogProof): string =>
  `${[PROOF_HEAD, `index ${index}`, ...path.map((hash) => hash.toString('base64'))].join('\n')}\n\n${checkpoint}`;

/**
 * @returns undefined if a line is not the base64 of a hash, or there are more lines than a tree has levels
 */
function hashesOf(lines: readonly string[]): Buffer[] | undefined {
  const hashes = lines.map(fromBase64);
  const isPath = lines.length <= PATH_MAX && hashes.every((hash) => hash?.length === HASH_BYTES);
  return isPath ? (hashes as Buffer[]) : undefined;
}

/** Parses an inclusion proof. Proofs with extra data are refused, because this service makes none. */
export function parseTlogProof(text: string): TlogProof & { readonly note: Note } {
  const end = text.indexOf('\n\n');
  const [head, place = '', ...lines] = text.slice(0, Math.max(end, 0)).split('\n');
  const index = place.startsWith('index ') ? fromDecimal(place.slice('index '.length)) : undefined;
  const path = hashesOf(lines);
  if (head !== PROOF_HEAD || index === undefined || path === undefined) {
    throw new NoteError(`The text is not a valid proof in the format ${PROOF_HEAD}`);
  }
  const checkpoint = text.slice(end + 2);
  return { index, path, checkpoint, note: parseNote(checkpoint) };
}
