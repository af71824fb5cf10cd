/**
 * Whether anything that a log shows predicts what is dealt. Blocks are sealed by the program's own code and put into a log as the
 * service does; then everything public of each block is held against its outcomes.
 *
 * What is held against what:
 *   each bit of what is public of a block, against how many of its outcomes win, how many win much, and its first and last one
 *   all bits together, weighted by what half of the blocks teach, against the same in the other half
 *   the bits and bytes of each public text, place by place, against the outcomes one by one (chi-square)
 *   what follows if nonces or salts could be guessed: leaves and commitments tried with every code
 *
 * Each gives a p-value, the chance to see as much where nothing is told. The smallest may be by chance one in a million runs:
 * the bound is that over the number of tests.
 */
import { randomBytes } from 'node:crypto';
import { unpackOutcomes } from '../../../src/domain/outcome.js';
import type { ParSheet } from '../../../src/domain/par.js';
import { outcomeLeaves, rootOfTree, sealTree } from '../../../src/domain/publicLog/blockTree.js';
import { checkpointText } from '../../../src/domain/publicLog/checkpoints.js';
import { leafKeyOf, leafNonces, outcomeLeafData } from '../../../src/domain/publicLog/leaves.js';
import { entryCommitment, labelOf, privateRecord } from '../../../src/domain/publicLog/logEntries.js';
import { parseNote, signatureLine, signerOf } from '../../../src/domain/publicLog/notes.js';
import { type Opening, openedText } from '../../../src/domain/publicLog/openings.js';
import { leafHash, MemoryTree } from '../../../src/domain/publicLog/tree.js';
import { chiSquareP, normalP } from '../../../src/domain/rng/pValues.js';
import { makeBlock } from '../../../workers/makeBlock.js';

const GAMES = 8;
const TILE_LEVEL = 8;
const FALSE_ALARM = 1e-6;
const CLASSES = 3;
/** Fewer blocks on one side of a bit tell nothing. */
const BLOCKS_MIN = 100;

/** What is done wrong; nothing: what the program does. */
export interface Leak {
  /** In place of 32 random bytes. @param commit the entry's commitment with a salt */
  readonly salt?: (codes: Uint16Array, commit: (salt: Buffer) => Buffer) => Buffer;
  /** In place of the keystream's 32 bytes a leaf. */
  readonly nonces?: (count: number) => Buffer;
  /** In which order the entries of one append stand, in place of that of their games. */
  readonly order?: (one: Uint16Array, other: Uint16Array) => number;
}

interface Logged {
  readonly gameId: number;
  readonly fromIndex: number;
  readonly codes: Uint16Array;
  readonly commitment: Buffer;
  /** The entry's text for another root: all else of it is taken as known. */
  readonly textWith: (root: Buffer) => string;
  /** Nonces of its leaves that a proof shows: that of its first outcome. */
  readonly shownNonce: Buffer;
  /** The sibling that such a proof shows. */
  readonly sibling: Buffer | undefined;
  /** What the log shows of it, by name. */
  readonly shown: Map<string, Buffer>;
}

interface Sealed extends Omit<Logged, 'shown'> {
  readonly record: Buffer;
}

function sealed(
  about: { sheet: ParSheet; gameId: number; number: number; labelKey: Buffer; count: number },
  leak: Leak,
): Sealed {
  const { sheet, gameId, number, labelKey, count } = about;
  const fromIndex = number * count;
  const made = makeBlock({ sheet, gameId, fromIndex, count });
  const codes = unpackOutcomes(made.outcomes);
  const key = leafKeyOf({ gameId, fromIndex, nonce: Buffer.from(made.nonce) });
  const nonces = leak.nonces?.(count) ?? leafNonces(key, count);
  const tree =
    leak.nonces === undefined
      ? made.tree
      : sealTree(
          outcomeLeaves({
            gameId,
            fromIndex,
            codes,
            nonces: (first, n) => nonces.subarray(32 * first, 32 * (first + n)),
          }),
        );
  const opening: Opening = {
    gameId,
    number,
    type: 'block',
    fromIndex,
    toIndex: fromIndex + count,
    at: new Date(0),
    isLate: false,
    reason: null,
    labelKey,
    mathHash: Buffer.from(made.mathHash),
    commitment: null,
    tree: Buffer.from(tree),
    seed: Buffer.from(made.seed),
    nonce: Buffer.from(made.nonce),
  };
  const textWith = (root: Buffer): string => openedText({ ...opening, tree: root });
  const text = textWith(rootOfTree(tree));
  const commit = (salt: Buffer): Buffer => entryCommitment(salt, text);
  const commitment = commit(leak.salt?.(codes, commit) ?? randomBytes(32));
  const leafAt = (at: number): Buffer =>
    leafHash(
      outcomeLeafData({ gameId, index: fromIndex + at }, codes[at]!, nonces.subarray(32 * at, 32 * at + 32)),
    );
  return {
    gameId,
    fromIndex,
    codes,
    commitment,
    textWith,
    record: privateRecord(labelOf(labelKey, number), commitment),
    shownNonce: Buffer.from(nonces.subarray(0, 32)),
    sibling: count > 1 ? leafAt(1) : undefined,
  };
}

/** A log of so many blocks of each of 8 games, a block of each in one append. */
export function loggedBlocks(sheet: ParSheet, perGame: number, count: number, leak: Leak = {}): Logged[] {
  const labelKeys = Array.from({ length: GAMES }, () => randomBytes(32));
  const signer = signerOf('prediction.example/log', 'log', randomBytes(32));
  const tree = new MemoryTree();
  const blocks: (Sealed & { readonly at: number; readonly root: Buffer; readonly signature: Buffer })[] = [];
  for (let number = 0; number < perGame; number++) {
    const append = labelKeys.map((labelKey, gameId) =>
      sealed({ sheet, gameId, number, labelKey, count }, leak),
    );
    const { order } = leak;
    if (order !== undefined) append.sort((a, b) => order(a.codes, b.codes));
    const first = tree.size;
    for (const { record } of append) tree.append(leafHash(record));
    const root = tree.root();
    const text = checkpointText({ origin: 'prediction.example/log', size: tree.size, root });
    const { lines } = parseNote(`${text}\n${signatureLine(text, signer)}`);
    const { signature } = lines[0]!;
    for (const [place, block] of append.entries())
      blocks.push({ ...block, at: first + place, root, signature });
  }
  return blocks.map(({ at, root, signature, record, ...block }, place) => {
    const tile = Math.floor(at / 2 ** TILE_LEVEL);
    const isFull = (tile + 1) * 2 ** TILE_LEVEL <= tree.size;
    const shown: [string, Buffer | undefined][] = [
      ['label', record.subarray(1, 17)],
      ['commitment', record.subarray(17)],
      ['hash of the record', tree.read(0, at)],
      ['hash with its neighbour', tree.read(1, Math.floor(at / 2))],
      ['hash of its tile', isFull ? tree.read(TILE_LEVEL, tile) : Buffer.alloc(32)],
      ['root', root],
      ['signature', signature],
      ['record before', blocks[place - 1]?.record ?? Buffer.alloc(record.length)],
      ['record behind', blocks[place + 1]?.record ?? Buffer.alloc(record.length)],
      ['length and place', Buffer.of(record.length, at & 0xff, at % GAMES)],
    ];
    return { ...block, shown: new Map(shown.map(([name, bytes]) => [name, bytes!])) };
  });
}

/** By code: 0 pays nothing, 2 is of the highest prizes that come once in a hundred or more, 1 the others. */
export function classesOf(sheet: ParSheet): Uint8Array {
  const classes = new Uint8Array(sheet.combinations.length);
  let share = 0;
  const byPay = sheet.combinations
    .map((each, code) => ({ ...each, code }))
    .filter(({ payMultiplier }) => payMultiplier > 0);
  for (const { code, comboProbability } of byPay.sort((a, b) => b.payMultiplier - a.payMultiplier)) {
    classes[code] = share < 0.01 ? 2 : 1;
    share += comboProbability;
  }
  return classes;
}

export interface Findings {
  readonly tests: number;
  /** A p-value below it is no chance. */
  readonly bound: number;
  /** The smallest, and what it is of. */
  readonly smallest: { readonly name: string; readonly p: number };
}

const bitOf = (bytes: Buffer, bit: number): number => (bytes[bit >> 3]! >> (bit & 7)) & 1;

/** Looks for anything that predicts. @param classes by code, {@link classesOf} */
export function predictionsOf(blocks: readonly Logged[], classes: Uint8Array): Findings {
  const found: { name: string; p: number }[] = [
    ...blockwise(blocks, classes),
    ...[...blocks[0]!.shown.keys()].flatMap((name) => outcomewise(blocks, classes, name)),
    guessedSiblings(blocks, classes.length),
    guessedCommitments(blocks, classes.length),
  ];
  const smallest = found.reduce((least, each) => (each.p < least.p ? each : least));
  return { tests: found.length, bound: FALSE_ALARM / found.length, smallest };
}

/** What is told of whole blocks. */
function figuresOf(blocks: readonly Logged[], classes: Uint8Array): [string, Float64Array][] {
  const count = (of: (codes: Uint16Array) => number): Float64Array =>
    Float64Array.from(blocks, ({ codes }) => of(codes));
  const those = (wanted: (kind: number) => boolean) => (codes: Uint16Array) =>
    codes.reduce((sum, code) => sum + (wanted(classes[code]!) ? 1 : 0), 0);
  return [
    ['wins', count(those((kind) => kind > 0))],
    ['high wins', count(those((kind) => kind === 2))],
    ['the first outcome', count((codes) => Math.min(1, classes[codes[0]!]!))],
    ['the last outcome', count((codes) => Math.min(1, classes[codes.at(-1)!]!))],
  ];
}

function blockwise(blocks: readonly Logged[], classes: Uint8Array): { name: string; p: number }[] {
  const found: { name: string; p: number }[] = [];
  for (const [figure, values] of figuresOf(blocks, classes)) {
    const learned = new Float64Array(blocks.length);
    for (const name of blocks[0]!.shown.keys()) {
      const texts = blocks.map(({ shown }) => shown.get(name)!);
      for (let bit = 0; bit < 8 * texts[0]!.length; bit++) {
        const bits = Uint8Array.from(texts, (text) => bitOf(text, bit));
        found.push({
          name: `bit ${bit} of ${name}, and ${figure}`,
          p: normalP(differenceOf(bits, values, 0, 1)),
        });
        const weight = differenceOf(bits, values, 0, 2);
        for (let i = 1; i < blocks.length; i += 2) learned[i]! += weight * (bits[i]! - 0.5);
      }
    }
    found.push({ name: `all bits together, and ${figure}`, p: normalP(correlationOf(learned, values)) });
  }
  return found;
}

/** By how many standard errors the mean of the values differs where a bit is set. Looks at every so manyth from the first one on. */
function differenceOf(bits: Uint8Array, values: Float64Array, first: number, every: number): number {
  const n = [0, 0];
  const sum = [0, 0];
  let squares = 0;
  for (let i = first; i < bits.length; i += every) {
    n[bits[i]!]!++;
    sum[bits[i]!]! += values[i]!;
    squares += values[i]! ** 2;
  }
  const all = n[0]! + n[1]!;
  if (Math.min(n[0]!, n[1]!) < BLOCKS_MIN / every) return 0;
  // The spread of all values: where a bit tells everything, that of each side is nothing.
  const variance = squares / all - ((sum[0]! + sum[1]!) / all) ** 2;
  const error = Math.sqrt(variance * (1 / n[0]! + 1 / n[1]!));
  return error === 0 ? 0 : (sum[1]! / n[1]! - sum[0]! / n[0]!) / error;
}

/** The correlation of every other value, in standard errors. */
function correlationOf(one: Float64Array, other: Float64Array): number {
  const at = Array.from({ length: Math.floor(one.length / 2) }, (_, i) => 2 * i + 1);
  const mean = (values: Float64Array): number => at.reduce((sum, i) => sum + values[i]!, 0) / at.length;
  const [a, b] = [mean(one), mean(other)];
  let [ab, aa, bb] = [0, 0, 0];
  for (const i of at) {
    ab += (one[i]! - a) * (other[i]! - b);
    aa += (one[i]! - a) ** 2;
    bb += (other[i]! - b) ** 2;
  }
  return aa * bb === 0 ? 0 : (ab / Math.sqrt(aa * bb)) * Math.sqrt(at.length);
}

/** Bits and bytes of one public text, in turn, against the outcomes one by one. */
function outcomewise(
  blocks: readonly Logged[],
  classes: Uint8Array,
  name: string,
): { name: string; p: number }[] {
  const byBit = new Float64Array(2 * CLASSES);
  const byByte = new Float64Array(256 * CLASSES);
  for (const { codes, shown } of blocks) {
    const text = shown.get(name)!;
    for (let i = 0; i < codes.length; i++) {
      const kind = classes[codes[i]!]!;
      byBit[bitOf(text, i % (8 * text.length)) * CLASSES + kind]!++;
      byByte[text[i % text.length]! * CLASSES + kind]!++;
    }
  }
  return [
    { name: `the bits of ${name}, and each outcome`, p: independenceP(byBit) },
    { name: `the bytes of ${name}, and each outcome`, p: independenceP(byByte) },
  ];
}

/** Pearson's chi-square of a table with three columns; rows of which too few are expected are left out. */
function independenceP(table: Float64Array): number {
  const columns = new Float64Array(CLASSES);
  for (let i = 0; i < table.length; i++) columns[i % CLASSES]! += table[i]!;
  const total = columns.reduce((sum, each) => sum + each, 0);
  let statistic = 0;
  let rows = 0;
  for (let from = 0; from < table.length; from += CLASSES) {
    const row = table.subarray(from, from + CLASSES);
    const size = row.reduce((sum, each) => sum + each, 0);
    if (Math.min(...columns.map((column) => (column * size) / total)) < 20) continue;
    rows++;
    row.forEach((count, kind) => {
      const expected = (columns[kind]! * size) / total;
      statistic += (count - expected) ** 2 / expected;
    });
  }
  return rows < 2 ? 1 : chiSquareP(statistic, (rows - 1) * (CLASSES - 1));
}

/** Who holds the proof of an outcome tries the sibling that it shows, with nonces that were shown, and none. */
function guessedSiblings(blocks: readonly Logged[], codes: number): { name: string; p: number } {
  let hits = 0;
  let last: Buffer = Buffer.alloc(32);
  for (const { gameId, fromIndex, shownNonce, sibling } of blocks) {
    for (const nonce of [shownNonce, last, Buffer.alloc(32)]) {
      for (let code = 0; code < codes && sibling !== undefined; code++) {
        const leaf = leafHash(outcomeLeafData({ gameId, index: fromIndex + 1 }, code, nonce));
        if (leaf.equals(sibling)) hits++;
      }
    }
    last = shownNonce;
  }
  return { name: 'siblings, by nonces that were shown', p: hits === 0 ? 1 : 0 };
}

/** Blocks whose outcomes all are of one code, with salts and nonces that are known, all else of the entry taken as known. */
function guessedCommitments(blocks: readonly Logged[], codes: number): { name: string; p: number } {
  let hits = 0;
  for (const { gameId, fromIndex, codes: dealt, commitment, textWith, shown } of blocks) {
    if (dealt.length > 1) continue;
    const salts = [Buffer.alloc(32), Buffer.concat([shown.get('label')!, shown.get('label')!])];
    for (let code = 0; code < codes; code++) {
      const leaf = leafHash(outcomeLeafData({ gameId, index: fromIndex }, code, Buffer.alloc(32)));
      if (salts.some((salt) => entryCommitment(salt, textWith(leaf)).equals(commitment))) hits++;
    }
  }
  return { name: 'commitments, by salts and nonces that are known', p: hits === 0 ? 1 : 0 };
}
