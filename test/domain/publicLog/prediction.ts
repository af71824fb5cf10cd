/**
 * Checks whether any public data of the log predicts dealt outcomes. Blocks are sealed by the service's own
 * code and appended to a log as the service does. Then all public data of each block is tested against its
 * outcomes:
 * - each public bit of a block, against the number of its wins, of its large wins, and its first and last
 *   outcome
 * - all bits together, with weights found in half of the blocks, against the same figures of the other half
 * - the bits and bytes of each public text, position by position, against the single outcomes (chi-square)
 * - guessable nonces or salts: leaves and commitments are computed with every outcome code
 *
 * Each test gives a p-value, the probability of the observation if the public data reveals nothing. The bound
 * for the smallest p-value is one in a million divided by the number of tests.
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
/** Minimum number of blocks with the same value of a bit. A value with fewer blocks gives no evidence. */
const BLOCKS_MIN = 100;

/**
 * A deliberate mistake in sealing or logging. An object without properties stands for the correct behaviour.
 */
export interface Leak {
  /**
   * Salt that is used instead of 32 random bytes.
   * @param commit computes the entry's commitment with a salt
   */
  readonly salt?: (codes: Uint16Array, commit: (salt: Buffer) => Buffer) => Buffer;
  /** Nonces that are used instead of 32 bytes of keystream for each leaf. */
  readonly nonces?: (count: number) => Buffer;
  /** Order of two entries within one append. By default entries are in the order of their games. */
  readonly order?: (one: Uint16Array, other: Uint16Array) => number;
}

interface Logged {
  readonly gameId: number;
  readonly fromIndex: number;
  readonly codes: Uint16Array;
  readonly commitment: Buffer;
  /** Builds the entry's text with another root, as somebody can who knows all other fields. */
  readonly textWith: (root: Buffer) => string;
  /** The nonce of the block's first outcome, which the proof of that outcome contains. */
  readonly shownNonce: Buffer;
  /** The sibling hash that the proof of the first outcome contains. */
  readonly sibling: Buffer | undefined;
  /** The public data of the block, by name. */
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

/** Builds a log with this many blocks of each of 8 games. Each append has one block of each game. */
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

/**
 * Assigns a class to each outcome code: 0 pays nothing, 2 is one of the highest prizes, and 1 is any other
 * prize. Prizes belong to class 2, from the highest down, until their probabilities together reach 0.01.
 */
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
  /** Bound below which a p-value is not due to chance. */
  readonly bound: number;
  /** The smallest p-value and the name of its test. */
  readonly smallest: { readonly name: string; readonly p: number };
}

const bitOf = (bytes: Buffer, bit: number): number => (bytes[bit >> 3]! >> (bit & 7)) & 1;

/**
 * Searches all public data for anything that predicts outcomes.
 * @param classes the class of each code, from {@link classesOf}
 */
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

/** Figures of whole blocks that public data must not predict. */
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

/**
 * Difference between the means of the values with the bit set and unset, in standard errors. Uses every
 * `every`-th value, starting at `first`.
 */
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
  // The variance of all values is used, because the variance on each side is zero if a bit reveals
  // everything.
  const variance = squares / all - ((sum[0]! + sum[1]!) / all) ** 2;
  const error = Math.sqrt(variance * (1 / n[0]! + 1 / n[1]!));
  return error === 0 ? 0 : (sum[1]! / n[1]! - sum[0]! / n[0]!) / error;
}

/** The correlation of every second pair of values, in standard errors. */
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

/** Tests the bits and bytes of one public text, position by position, against the single outcomes. */
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

/**
 * Pearson's chi-square test of a table with three columns. Rows with too small an expected count are omitted.
 */
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

/**
 * Tries to guess the sibling in the proof of an outcome, with all-zero nonces and with nonces that other
 * proofs show.
 */
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

/**
 * Tries to guess blocks of one outcome by their commitment, with known salts and nonces. All other fields of
 * the entry are assumed to be known.
 */
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
