/**
 * Signed notes (C2SP signed-note) with Ed25519 keys in the form of Go's x/mod, and cosignatures (C2SP
 * tlog-cosignature v1).
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { fromBase64, fromHex } from './encoding.js';
import { sha256 } from './tree.js';

const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');
const KEY_BYTES = 32;
const ID_BYTES = 4;
const SIGNATURE_BYTES = 64;
const TIME_BYTES = 8;
/** Maximum number of signature lines. A note with more is refused. */
const LINES_MAX = 100;
const NOTE_MAX = 1_000_000;
const LINE_START = '— ';
const SIGNER_START = 'PRIVATE+KEY+';
const NAME = /^[^\s+]+$/u;

/**
 * Signature types. A log signs its own checkpoints; a witness signs the checkpoints of other logs together
 * with the time.
 */
const ALGORITHMS = { log: 0x01, witness: 0x04 } as const;
type Algorithm = keyof typeof ALGORITHMS;

export interface Verifier {
  readonly name: string;
  /** Key id: 4 bytes as 8 lowercase hexadecimal digits. */
  readonly keyId: string;
  readonly algorithm: Algorithm;
  readonly publicKey: Buffer;
}

export interface Signer extends Verifier {
  readonly seed: Buffer;
}

export interface SignatureLine {
  readonly name: string;
  readonly keyId: string;
  /** Bytes of the signature, without the key id that precedes them. */
  readonly signature: Buffer;
}

export interface Note {
  /** Text of the note, including the line feed at its end. */
  readonly text: string;
  readonly lines: readonly SignatureLine[];
}

export class NoteError extends Error {}

const algorithmOf = (byte: number | undefined): Algorithm | undefined =>
  byte === ALGORITHMS.log ? 'log' : byte === ALGORITHMS.witness ? 'witness' : undefined;

const keyIdOf = (name: string, typed: Buffer): string =>
  sha256(name, '\n', typed).subarray(0, ID_BYTES).toString('hex');

const privateKeyOf = (seed: Buffer): KeyObject =>
  createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' });

/** @param seed 32 bytes */
export function signerOf(name: string, algorithm: Algorithm, seed: Buffer): Signer {
  if (!NAME.test(name)) throw new NoteError(`«${name}» is not a valid name of a key`);
  const publicKey = createPublicKey(privateKeyOf(seed))
    .export({ format: 'der', type: 'spki' })
    .subarray(SPKI.length);
  const keyId = keyIdOf(name, Buffer.concat([Buffer.of(ALGORITHMS[algorithm]), publicKey]));
  return { name, keyId, algorithm, publicKey, seed };
}

const spelled = (name: string, keyId: string, algorithm: Algorithm, key: Buffer): string =>
  `${name}+${keyId}+${Buffer.concat([Buffer.of(ALGORITHMS[algorithm]), key]).toString('base64')}`;

/** Formats a verifier key: `name+id+base64(type ‖ public key)`. */
export const vkeyOf = ({ name, keyId, algorithm, publicKey }: Verifier): string =>
  spelled(name, keyId, algorithm, publicKey);

/** Formats a signer key: `PRIVATE+KEY+name+id+base64(type ‖ seed)`. */
export const signerKeyOf = ({ name, keyId, algorithm, seed }: Signer): string =>
  SIGNER_START + spelled(name, keyId, algorithm, seed);

function parseKey(text: string): { name: string; keyId: string; algorithm: Algorithm; key: Buffer } {
  const [, name = '', keyId = '', encoded = ''] = /^([^+]*)\+([^+]*)\+(.*)$/su.exec(text) ?? [];
  const typed = fromBase64(encoded);
  const algorithm = algorithmOf(typed?.[0]);
  if (!NAME.test(name) || fromHex(keyId, ID_BYTES) === undefined)
    throw new NoteError('A key must have the form NAME+KEYID+KEY');
  if (typed === undefined || algorithm === undefined || typed.length !== 1 + KEY_BYTES) {
    throw new NoteError(`The key of ${name} is not an Ed25519 key of a log (0x01) or a witness (0x04)`);
  }
  return { name, keyId, algorithm, key: typed.subarray(1) };
}

/** @throws NoteError if the text is not a vkey of type 0x01 or 0x04, or its id does not match its key */
export function parseVkey(text: string): Verifier {
  const { name, keyId, algorithm, key } = parseKey(text);
  if (keyIdOf(name, Buffer.concat([Buffer.of(ALGORITHMS[algorithm]), key])) !== keyId) {
    throw new NoteError(`The key id ${keyId} of ${name} does not match the key`);
  }
  return { name, keyId, algorithm, publicKey: key };
}

/**
 * @throws NoteError if the text is not a signer key, or its id does not match; the message contains nothing
 * of the key
 */
export function parseSignerKey(text: string): Signer {
  if (!text.startsWith(SIGNER_START)) throw new NoteError(`A signer key must begin with ${SIGNER_START}`);
  const { name, keyId, algorithm, key } = parseKey(text.slice(SIGNER_START.length));
  const signer = signerOf(name, algorithm, key);
  if (signer.keyId !== keyId) throw new NoteError(`The key id ${keyId} of ${name} does not match the key`);
  return signer;
}

const hasControls = (text: string): boolean =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a note has no control characters but line ends.
  /[\u0000-\u0009\u000b-\u001f\ufffd]/.test(text);

function parseLine(line: string): SignatureLine {
  const [, name = '', encoded = ''] = /^— (\S+) (\S+)$/u.exec(line) ?? [];
  const bytes = fromBase64(encoded);
  if (!NAME.test(name) || bytes === undefined || bytes.length <= ID_BYTES) {
    throw new NoteError('A signature line is malformed');
  }
  return { name, keyId: bytes.toString('hex', 0, ID_BYTES), signature: bytes.subarray(ID_BYTES) };
}

/** Parses signature lines without a note, which are the response of a witness. */
export function parseLines(text: string): SignatureLine[] {
  if (!text.endsWith('\n')) throw new NoteError('The last signature line must end with a newline');
  const lines = text.slice(0, -1).split('\n');
  if (lines.length > LINES_MAX) throw new NoteError(`The note has more than ${LINES_MAX} signature lines`);
  return lines.map(parseLine);
}

/** Parses a note without verifying it. */
export function parseNote(note: string): Note {
  if (note.length > NOTE_MAX || hasControls(note))
    throw new NoteError('The note is too long or is not plain text');
  const at = note.lastIndexOf('\n\n');
  if (at < 0) throw new NoteError('The note has no signatures');
  return { text: note.slice(0, at + 1), lines: parseLines(note.slice(at + 2)) };
}

const lineOf = ({ name, keyId }: Pick<Verifier, 'name' | 'keyId'>, signature: Buffer): string =>
  `${LINE_START}${name} ${Buffer.concat([Buffer.from(keyId, 'hex'), signature]).toString('base64')}\n`;

export const noteText = (text: string, lines: readonly SignatureLine[]): string =>
  `${text}\n${lines.map(({ name, keyId, signature }) => lineOf({ name, keyId }, signature)).join('')}`;

/**
 * Signs a text with the key of a log and returns the signature line.
 * @param text ends with a line feed
 */
export const signatureLine = (text: string, signer: Signer): string =>
  lineOf(signer, sign(null, Buffer.from(text), privateKeyOf(signer.seed)));

const cosigned = (text: string, seconds: bigint): Buffer =>
  Buffer.from(`cosignature/v1\ntime ${seconds}\n${text}`);

/** Signs a text with the key of a witness and returns the signature line. */
export function cosignatureLine(text: string, signer: Signer, seconds: number): string {
  const time = Buffer.alloc(TIME_BYTES);
  time.writeBigUInt64BE(BigInt(seconds));
  const signature = sign(null, cosigned(text, BigInt(seconds)), privateKeyOf(signer.seed));
  return lineOf(signer, Buffer.concat([time, signature]));
}

/** Returns whether a signature line names this key. Its signature may still be wrong. */
const isOf = (line: SignatureLine, key: Verifier): boolean =>
  line.name === key.name && line.keyId === key.keyId;

function isSigned(text: string, { signature }: SignatureLine, { algorithm, publicKey }: Verifier): boolean {
  const key = createPublicKey({ key: Buffer.concat([SPKI, publicKey]), format: 'der', type: 'spki' });
  if (algorithm === 'log') {
    return signature.length === SIGNATURE_BYTES && verify(null, Buffer.from(text), key, signature);
  }
  if (signature.length !== TIME_BYTES + SIGNATURE_BYTES) return false;
  const signed = cosigned(text, signature.readBigUInt64BE());
  return verify(null, signed, key, signature.subarray(TIME_BYTES));
}

/** Returns whether a signature line names the key and has the key's valid signature of the text. */
export const isSignedBy = (text: string, line: SignatureLine, key: Verifier): boolean =>
  isOf(line, key) && isSigned(text, line, key);

/**
 * Returns when a witness signed, as Unix time in seconds.
 * @param line line of a witness with a verified signature
 */
export const cosignedAt = ({ signature }: SignatureLine): number => Number(signature.readBigUInt64BE());

/**
 * Verifies the signature lines of known keys in a note. Lines of unknown keys are ignored.
 * @throws NoteError if the line of a known key has a wrong signature
 */
export function signersOf<K extends Verifier>({ text, lines }: Note, keys: readonly K[]): K[] {
  const signed = keys.filter((key) => {
    const own = lines.filter((line) => isOf(line, key));
    if (own.some((line) => !isSigned(text, line, key))) {
      throw new NoteError(`The signature of ${key.name} (${key.keyId}) is invalid`);
    }
    return own.length > 0;
  });
  return signed;
}
