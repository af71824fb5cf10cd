/** Public test corpora that lie next to the project's folder. A clone without them skips their tests. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './root.js';

const CORPORA = join(ROOT, '..', 'shared', 'data', 'corpora');

/** The reason why tests that need the corpora are skipped, or undefined if the corpora exist. */
export const corporaMissing: string | undefined = existsSync(CORPORA)
  ? undefined
  : 'the public corpora (JSONTestSuite, Big List of Naughty Strings) are not beside this clone';

/**
 * Reads the files of JSONTestSuite. A parser must accept the files `y_` as JSON and refuse the files `n_`;
 * for the files `i_` it may do either.
 */
export function jsonParsingFiles(): { name: string; bytes: Buffer }[] {
  const folder = join(CORPORA, 'json-parsing', 'test_parsing');
  return readdirSync(folder).map((name) => ({ name, bytes: readFileSync(join(folder, name)) }));
}

/** Reads the Big List of Naughty Strings without duplicates. */
export function naughtyStrings(): string[] {
  const text = readFileSync(join(CORPORA, 'naughty-strings', 'blns.json'), 'utf8');
  return [...new Set(JSON.parse(text) as string[])];
}

export interface HmacVector {
  readonly key: Buffer;
  readonly message: Buffer;
  /** The first bytes of the expected digest. */
  readonly tag: Buffer;
  readonly isValid: boolean;
  readonly comment: string;
}

/** Reads the HMAC-SHA256 test vectors of Wycheproof. */
export function hmacVectors(): HmacVector[] {
  const { testGroups } = JSON.parse(
    readFileSync(join(CORPORA, 'hmac-sha256', 'hmac_sha256_test.json'), 'utf8'),
  ) as {
    testGroups: { tests: { key: string; msg: string; tag: string; result: string; comment: string }[] }[];
  };
  return testGroups.flatMap(({ tests }) =>
    tests.map(({ key, msg, tag, result, comment }) => ({
      key: Buffer.from(key, 'hex'),
      message: Buffer.from(msg, 'hex'),
      tag: Buffer.from(tag, 'hex'),
      isValid: result === 'valid',
      comment,
    })),
  );
}

/** Reads the contract's test vectors of proofs, or returns undefined if they do not exist. */
export function contractProofVectors(): object | undefined {
  const file = join(CORPORA, '..', 'vectors', 'proof-v1.json');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as object) : undefined;
}
