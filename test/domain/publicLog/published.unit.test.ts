/**
 * Tests notes, proofs and tiles against third-party vectors: golang.org/x/mod (sumdb/note, sumdb/tlog, by the
 * Go Authors) and the examples of C2SP.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseCheckpoint } from '../../../src/domain/publicLog/checkpoints.js';
import {
  NoteError,
  parseNote,
  parseSignerKey,
  parseVkey,
  signersOf,
} from '../../../src/domain/publicLog/notes.js';
import { parseTilePath, tilePath } from '../../../src/domain/publicLog/tiles.js';
import { isConsistent, leafHash, rootByInclusion } from '../../../src/domain/publicLog/tree.js';
import { ROOT } from '../../support/root.js';

interface Published {
  note: {
    vkeys: { peter: string; enoch: string };
    signerKey: string;
    wrongVkeys: string[];
    text: string;
    lines: { peter: string; enoch: string };
  };
  tree: {
    size: number;
    root: string;
    leafIndex: number;
    leafInput: string;
    auditPath: string[];
    oldSize: number;
    oldRoot: string;
    consistency: string[];
  };
  checkpoint: string;
}

const FILE = join(ROOT, 'test', 'domain', 'publicLog', 'publishedVectors.json');
const { note, tree, checkpoint }: Published = JSON.parse(readFileSync(FILE, 'utf8'));
const { peter, enoch } = note.lines;
const [peterKey, enochKey] = [note.vkeys.peter, note.vkeys.enoch].map(parseVkey);
const signed = (...lines: string[]): string => `${note.text}\n${lines.join('')}`;

/** Yields every proper substring of a text, and the text with each character replaced by the next one. */
function* manglingsOf(text: string): Generator<string> {
  for (let from = 0; from < text.length; from++) {
    for (let to = from + 1; to <= text.length; to++) {
      if (to - from < text.length) yield text.slice(from, to);
    }
  }
  for (let at = 0; at < text.length; at++) {
    yield text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) + 1) + text.slice(at + 1);
  }
}

describe('signed notes of golang.org/x/mod/sumdb/note', () => {
  test('verifies a signed note of sumdb/note if one key, both keys or no key is known', () => {
    const read = parseNote(signed(peter, enoch));
    expect(read.text).toBe(note.text);
    expect(signersOf(read, [peterKey!])).toEqual([peterKey]);
    expect(signersOf(read, [peterKey!, enochKey!])).toEqual([peterKey, enochKey]);
    expect(signersOf(read, [])).toEqual([]);
    expect(signersOf(parseNote(signed(peter, peter, enoch, enoch)), [peterKey!])).toEqual([peterKey]);
  });

  test('refuses a note of sumdb/note with a wrong signature under the name of a known key', () => {
    const wrong = `${peter.slice(0, 60)}ABCD${peter.slice(60)}`;
    expect(() => signersOf(parseNote(signed(wrong)), [peterKey!])).toThrow(NoteError);
    for (const misnamed of [peter.replace('PeterNeumann', 'CarmenSandiego'), peter.replace('x08g', 'xxxx')]) {
      expect(signersOf(parseNote(signed(misnamed)), [peterKey!])).toEqual([]);
    }
  });

  test.each([
    ['no signatures', note.text],
    ['no lines', `${note.text}\n`],
    ['a line without its end', signed(peter.slice(0, -1))],
    ['a control character', `\u0001${signed(peter)}`],
    ['a name with a space', signed(peter.replace('PeterNeumann', 'Bad Name'))],
    ['a line of another kind', `${signed(peter)}Unexpected line.\n`],
    ['more than 100 lines', signed(peter.repeat(101))],
  ])('refuses a note of sumdb/note with %s', (_, wrong) => {
    expect(() => parseNote(wrong)).toThrow(NoteError);
  });

  test('refuses keys of sumdb/note with any part missing or any character changed', () => {
    for (const wrong of [...note.wrongVkeys, ...manglingsOf(note.vkeys.peter)]) {
      expect(() => parseVkey(wrong), wrong).toThrow(NoteError);
    }
    expect(parseSignerKey(note.signerKey)).toMatchObject({ name: 'PeterNeumann' });
    for (const wrong of manglingsOf(note.signerKey)) {
      expect(() => parseSignerKey(wrong), wrong).toThrow(NoteError);
    }
  });
});

describe('Merkle trees of golang.org/x/mod/sumdb/tlog', () => {
  const hashes = (texts: readonly string[]): Buffer[] => texts.map((text) => Buffer.from(text, 'base64'));
  const now = { size: tree.size, root: Buffer.from(tree.root, 'base64') };
  const old = { size: tree.oldSize, root: Buffer.from(tree.oldRoot, 'base64') };

  test('verifies a real inclusion proof of the log Argon 2020', () => {
    const leaf = leafHash(Buffer.from(tree.leafInput, 'base64'));
    const path = hashes(tree.auditPath);
    expect(rootByInclusion(tree.leafIndex, now.size, leaf, path)).toEqual(now.root);
    expect(rootByInclusion(tree.leafIndex + 1, now.size, leaf, path)).not.toEqual(now.root);
  });

  test('verifies a real consistency proof of the log Argon 2020', () => {
    const path = hashes(tree.consistency);
    expect(isConsistent(old, now, path)).toBe(true);
    expect(isConsistent({ ...old, size: old.size - 1 }, now, path)).toBe(false);
    expect(isConsistent(now, old, path)).toBe(false);
  });

  // Only the x/mod cases for tiles of height 8 apply. C2SP tlog-tiles omits the height, and `data` in x/mod
  // is `entries` in C2SP.
  test.each([
    ['tile/0/001', 0, 1, 256],
    ['tile/0/001.p/5', 0, 1, 5],
    ['tile/5/x123/x456/078', 5, 123_456_078, 256],
    ['tile/5/x123/x456/078.p/2', 5, 123_456_078, 2],
    ['tile/0/x003/x057/500', 0, 3_057_500, 256],
    ['tile/entries/x003/x057/500', 'entries' as const, 3_057_500, 256],
  ])('reads and writes the tile path %s', (path, level, index, width) => {
    expect(parseTilePath(path)).toEqual({ level, index, width });
    expect(tilePath({ level, index, width })).toBe(path);
  });

  test.each(['tile/5/123/456/078', 'tile/-1/123/456/078'])('refuses the tile path %s', (path) => {
    expect(parseTilePath(path)).toBeUndefined();
  });
});

test('reads the example checkpoint of C2SP tlog-checkpoint', () => {
  const read = parseNote(checkpoint);
  expect(read.lines.map(({ name }) => name)).toEqual(['example.com/behind-the-sofa']);
  const { origin, size, root } = parseCheckpoint(read.text)!;
  expect([origin, size]).toEqual(['example.com/behind-the-sofa', 20_852_163]);
  expect(root.toString('base64')).toBe('CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=');
});
