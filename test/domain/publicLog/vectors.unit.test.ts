/**
 * Tests the published proof vectors, third-party keys and notes, and malformed input that strict parsers must
 * refuse.
 */
import { describe, expect, test } from 'vitest';
import {
  checkpointText,
  parseCheckpoint,
  parseTlogProof,
  tlogProofText,
} from '../../../src/domain/publicLog/checkpoints.js';
import { leafKeyOf, leafNonces } from '../../../src/domain/publicLog/leaves.js';
import { LabelScan, labelIn, labelOf, privateRecord } from '../../../src/domain/publicLog/logEntries.js';
import {
  cosignatureLine,
  NoteError,
  parseLines,
  parseNote,
  parseSignerKey,
  parseVkey,
  signatureLine,
  signerKeyOf,
  signerOf,
  signersOf,
  vkeyOf,
} from '../../../src/domain/publicLog/notes.js';
import { Policy } from '../../../src/domain/publicLog/policy.js';
import { recordsOf, tileOfRecords } from '../../../src/domain/publicLog/tiles.js';
import { proofVectors } from '../../../tools/vectors/proof.js';
import { contractProofVectors } from '../../support/corpora.js';
import { readVectors } from './proofVectors.js';

const vectors = readVectors();
const CONTRACT = contractProofVectors();
const withoutAbout = ({ about: _, ...rest }: object & { about?: string }): object => rest;

describe('published vectors of proofs', () => {
  test('generates exactly the published proof vectors', () => {
    expect(proofVectors()).toEqual(vectors);
  });

  test.skipIf(CONTRACT === undefined)(
    'the contract contains the same proof vectors as the published file',
    () => {
      expect(withoutAbout(vectors)).toEqual(withoutAbout(CONTRACT!));
    },
  );

  test('reads the published proof vectors back', () => {
    const { log, entry, witness, proof } = vectors;
    const records = recordsOf(Buffer.from(log.bundle, 'hex'))!;
    expect(records.map((record) => labelIn(record)?.toString('hex'))[1]).toBe(entry.label);
    expect(tileOfRecords(records).toString('hex')).toBe(log.tile);
    const read = parseTlogProof(proof.tlogProof);
    expect(tlogProofText(read)).toBe(proof.tlogProof);
    const checkpoint = parseCheckpoint(read.note.text);
    expect(checkpointText(checkpoint)).toBe(read.note.text);
    expect(checkpoint).toMatchObject({ origin: log.origin, size: 3 });
    const keys = [parseVkey(log.vkey), parseVkey(witness.vkey)];
    expect(signersOf(read.note, keys)).toEqual(keys);
  });

  test('derives the published leaf nonces of a block from any position in the block on', () => {
    const { gameId, fromIndex, nonce, nonces } = vectors.block;
    const key = leafKeyOf({ gameId, fromIndex, nonce: Buffer.from(nonce, 'hex') });
    expect(leafNonces(key, 2, 1).toString('hex')).toBe(nonces.slice(1).join(''));
  });
});

/** The example in the documentation of golang.org/x/mod/sumdb/note, by the Go Authors. */
const GO = {
  vkey: 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW',
  signerKey: 'PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz',
  note:
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n\n" +
    '— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n',
};

describe('signed notes', () => {
  test('signs and verifies the example note of x/mod', () => {
    const signer = parseSignerKey(GO.signerKey);
    expect(signerKeyOf(signer)).toBe(GO.signerKey);
    expect(vkeyOf(signer)).toBe(GO.vkey);
    const note = parseNote(GO.note);
    expect(`${note.text}\n${signatureLine(note.text, signer)}`).toBe(GO.note);
    expect(signersOf(note, [parseVkey(GO.vkey)])).toHaveLength(1);
  });

  test('refuses a note with a wrong signature of a known key, and ignores signatures of unknown keys', () => {
    const key = parseVkey(GO.vkey);
    const wrong = parseNote(GO.note.replace('answer', 'Answer'));
    expect(() => signersOf(wrong, [key])).toThrow(NoteError);
    expect(signersOf(wrong, [parseVkey(vectors.log.vkey)])).toEqual([]);
  });

  test('refuses malformed signed notes', () => {
    for (const wrong of [
      GO.note.slice(0, -1),
      GO.note.replace('\n\n', '\n'),
      GO.note.replace('— ', '- '),
      GO.note.replace('AM=', 'AN='),
      GO.note.replace('PeterNeumann ', 'Peter+Neumann '),
      GO.note.replace('you', 'y\tou'),
      `${GO.note}\n`,
      '',
    ]) {
      expect(() => parseNote(wrong), wrong).toThrow(NoteError);
    }
    expect(() => parseLines('')).toThrow(NoteError);
  });

  test.each([
    GO.vkey.replace('c74f20a3', 'c74f20a4'),
    GO.vkey.replace('c74f20a3', 'C74F20A3'),
    GO.vkey.replace('PeterNeumann', 'Peter Neumann'),
    GO.vkey.replace('+AR', '+Ah'),
    'name',
    'name+00000000+AQ==',
  ])('refuses the malformed key %s', (vkey) => {
    expect(() => parseVkey(vkey)).toThrow(NoteError);
    expect(() => parseSignerKey(`PRIVATE+KEY+${vkey}`)).toThrow(NoteError);
    expect(() => parseSignerKey(vkey)).toThrow(NoteError);
  });

  test('rejects checkpoints with non-canonical numbers', () => {
    const text = vectors.log.checkpoint3.split('\n').slice(0, 3).join('\n');
    expect(parseCheckpoint(`${text}\nextension\n`).size).toBe(3);
    for (const size of ['03', '-3', '9007199254740992', '', '3.0']) {
      expect(() => parseCheckpoint(`${text.replace('\n3\n', `\n${size}\n`)}\n`), size).toThrow(NoteError);
    }
    expect(() => parseCheckpoint(text)).toThrow(NoteError);
  });

  test('rejects proofs with a wrong header, index or path', () => {
    const { tlogProof } = vectors.proof;
    const hash = 'N1tX75Aavzlso4TdnL3/kNvwLayahjo3W+bvuPi4J8o=';
    for (const [old, other] of [
      ['@v1', '@v2'],
      ['index 1', 'index 01'],
      ['index 1', 'extra AA==\nindex 1'],
      [hash, hash.slice(4)],
      [hash, 'N1tX75Aavzlso4TdnL3/kNvwLayahjo3W+bvuPi4J8p='],
      [hash, Array.from({ length: 64 }, () => hash).join('\n')],
    ] as const) {
      expect(() => parseTlogProof(tlogProof.replace(old, other)), other).toThrow(NoteError);
    }
  });
});

describe('witness policies', () => {
  const witnesses = ['a', 'b', 'c'].map((name, at) => signerOf(name, 'witness', Buffer.alloc(32, at)));
  const lines = [
    '# who is trusted',
    `log ${vectors.log.vkey} https://log.example/log/`,
    ...witnesses.map((key) => `witness ${key.name} ${vkeyOf(key)} https://${key.name}.example`),
  ];
  const text = [...lines, 'group two 2 a b c', 'quorum two', ''].join('\n');

  test('counts cosignatures of witnesses by the groups of the policy', () => {
    const policy = new Policy(text);
    expect(policy.logs[0]).toMatchObject({ name: vectors.log.origin, url: 'https://log.example/log' });
    const body = vectors.log.checkpoint3.slice(0, vectors.log.checkpoint3.indexOf('\n\n') + 1);
    const note = vectors.log.checkpoint3 + witnesses.map((key) => cosignatureLine(body, key, 1)).join('');
    const signed = signersOf(parseNote(note), policy.witnesses);
    expect(signed).toHaveLength(3);
    expect(policy.isSatisfied(signed)).toBe(true);
    expect(policy.isSatisfied(signed.slice(1))).toBe(true);
    expect(policy.isSatisfied(signed.slice(2))).toBe(false);
    expect(new Policy([...lines, 'quorum none'].join('\n')).isSatisfied([])).toBe(true);
    const nested = ['group ab all a b', 'group any-of any ab c', 'quorum any-of'];
    expect(new Policy([...lines, ...nested].join('\n')).isSatisfied(signed.slice(0, 1))).toBe(false);
    expect(new Policy([...lines, ...nested].join('\n')).isSatisfied(signed.slice(2))).toBe(true);
  });

  test.each([
    ['frog', 'Line 6 of the policy begins with «frog»'],
    [`witness a ${vkeyOf(witnesses[0]!)}`, 'Line 6 of the policy defines the name a a second time'],
    [`witness d ${vkeyOf(witnesses[0]!)}`, 'Line 6 of the policy has the same key as an earlier witness'],
    [`witness d ${vectors.log.vkey}`, 'Line 6 of the policy has the key of a log'],
    [`log ${vectors.witness.vkey}`, 'Line 6 of the policy has the key of a witness'],
    ['log x', 'Line 6 of the policy has an invalid key'],
    ['group g 3 a b', 'Line 6 of the policy has the threshold «3»'],
    ['group g 1 d', 'Line 6 of the policy refers to «d»'],
    ['group g 1 a a', 'Line 6 of the policy has the member a, which is already in a group'],
    ['quorum d', 'Line 6 of the policy refers to «d»'],
    ['quorum none\nquorum none', 'Line 7 of the policy is a second quorum line'],
    ['', 'The policy has no quorum line'],
  ])('refuses a witness policy with the line %s', (line, message) => {
    expect(() => new Policy([...lines, line].join('\n'))).toThrow(message);
  });
});

describe("scanning the log for a game's labels", () => {
  const labelKey = Buffer.alloc(32, 7);
  const record = (number: number, key = labelKey) => privateRecord(labelOf(key, number), Buffer.alloc(32));
  const scanned = (...records: Buffer[]) => {
    const scan = new LabelScan(labelKey);
    records.forEach((each, index) => {
      scan.take(index, each);
    });
    return scan.result();
  };

  test('finds each numbered record of the given game in the log, and no record of other games', () => {
    const other = record(0, Buffer.alloc(32, 8));
    const { places, faults } = scanned(other, record(0), Buffer.of(2), record(2), record(1));
    expect([...places]).toEqual([
      [0, 1],
      [2, 3],
      [1, 4],
    ]);
    expect(faults).toEqual([]);
  });

  test('reports which numbers of a game are missing from the log, and which are logged twice', () => {
    expect(scanned(record(0), record(2), record(0)).faults).toEqual([
      'entry number 0 is in the log twice, at the indices 0 and 2',
      'entry number 1 is not in the log',
    ]);
  });
});
