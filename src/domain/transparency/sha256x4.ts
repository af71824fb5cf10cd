/**
 * SHA-256 of four messages at a time, for the two hashes that each outcome of a block costs. One call of the platform's hash takes
 * 0.6 µs and more for a message of one block, nearly all of it the call. This is FIPS 180-4 as a WebAssembly function of 64 rounds
 * on vectors of four 32-bit words, a lane for each message: it is assembled here, once.
 */

const ROUNDS = 64;
const LANES = 4;
const STATE_WORDS = 8;
const BLOCK_WORDS = 16;

/** The first bits of the fractional parts of roots of the first primes. */
function fractions(count: number, root: (prime: number) => bigint): Int32Array {
  const words = new Int32Array(count);
  for (let prime = 2, at = 0; at < count; prime++) {
    let isPrime = true;
    for (let by = 2; by * by <= prime; by++) isPrime &&= prime % by !== 0;
    if (isPrime) words[at++] = Number(BigInt.asIntN(32, root(prime)));
  }
  return words;
}

/** The largest whole number whose power is at most a value. */
function rootOf(value: bigint, power: bigint): bigint {
  let low = 0n;
  let high = 1n << 40n;
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** power <= value) low = middle;
    else high = middle;
  }
  return low;
}
const INITIAL = fractions(STATE_WORDS, (prime) => rootOf(BigInt(prime) << 64n, 2n));
const CONSTANTS = fractions(ROUNDS, (prime) => rootOf(BigInt(prime) << 96n, 3n));

// Assembling ---------------------------------------------------------------------------------------------------------

const V128 = 0x7b;
const I32 = 0x7f;
const OP = {
  load: [0xfd, 0x00, 0x04],
  store: [0xfd, 0x0b, 0x04],
  constant: [0xfd, 0x0c],
  and: [0xfd, 0x4e],
  or: [0xfd, 0x50],
  xor: [0xfd, 0x51],
  shiftLeft: [0xfd, 0xab, 0x01],
  shiftRight: [0xfd, 0xad, 0x01],
  add: [0xfd, 0xae, 0x01],
} as const;
type Code = readonly number[];

function leb(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  do {
    bytes.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
    rest >>>= 7;
  } while (rest > 0);
  return bytes;
}
const get = (local: number): Code => [0x20, ...leb(local)];
const set = (local: number): Code => [0x21, ...leb(local)];
const number = (value: number): Code => [0x41, ...leb(value)];
const vector = (word: number): Code => {
  const bytes = Array.from({ length: 4 }, (_, at) => (word >>> (8 * at)) & 0xff);
  return [...OP.constant, ...bytes, ...bytes, ...bytes, ...bytes];
};
const shiftRight = (x: Code, by: number): Code => [...x, ...number(by), ...OP.shiftRight];
const rotate = (x: Code, by: number): Code => [
  ...shiftRight(x, by),
  ...[...x, ...number(32 - by), ...OP.shiftLeft],
  ...OP.or,
];
const xor3 = (a: Code, b: Code, c: Code): Code => [...a, ...b, ...OP.xor, ...c, ...OP.xor];
const load = (pointer: number, word: number): Code => [...get(pointer), ...OP.load, ...leb(16 * word)];

/** Locals: where a block is, where the state is, eight working words, sixteen of the schedule, one more. */
const [BLOCK, STATE, WORK, SCHEDULE, SUM] = [0, 1, 2, 10, 26] as const;

function roundCode(round: number): number[] {
  const work = (place: number): number => WORK + ((place - round + ROUNDS) % STATE_WORDS);
  const [a, b, c, d, e, f, g, h] = Array.from({ length: STATE_WORDS }, (_, place) => work(place)) as [
    ...[number, number, number, number],
    ...[number, number, number, number],
  ];
  const word = (back: number): Code => get(SCHEDULE + ((round + back) % BLOCK_WORDS));
  const scheduled: Code =
    round < BLOCK_WORDS
      ? []
      : [
          ...[
            ...word(0),
            ...xor3(rotate(word(1), 7), rotate(word(1), 18), shiftRight(word(1), 3)),
            ...OP.add,
          ],
          ...[...word(9), ...OP.add],
          ...[...xor3(rotate(word(14), 17), rotate(word(14), 19), shiftRight(word(14), 10)), ...OP.add],
          ...set(SCHEDULE + (round % BLOCK_WORDS)),
        ];
  return [
    ...scheduled,
    ...[...get(h), ...word(0), ...OP.add, ...vector(CONSTANTS[round]!), ...OP.add],
    ...[...xor3(rotate(get(e), 6), rotate(get(e), 11), rotate(get(e), 25)), ...OP.add],
    ...[...get(f), ...get(g), ...OP.xor, ...get(e), ...OP.and, ...get(g), ...OP.xor, ...OP.add],
    ...set(SUM),
    ...[...get(d), ...get(SUM), ...OP.add, ...set(d)],
    ...[...xor3(rotate(get(a), 2), rotate(get(a), 13), rotate(get(a), 22)), ...get(SUM), ...OP.add],
    ...[...get(a), ...get(b), ...OP.and, ...get(a), ...get(b), ...OP.or, ...get(c), ...OP.and, ...OP.or],
    ...OP.add,
    ...set(h),
  ];
}

function moduleBytes(): Uint8Array {
  const words = Array.from({ length: STATE_WORDS }, (_, word) => word);
  const body = [
    // 25 locals that are vectors.
    ...[1, 25, V128],
    ...words.flatMap((word) => [...load(STATE, word), ...set(WORK + word)]),
    ...Array.from({ length: BLOCK_WORDS }, (_, word) => [
      ...load(BLOCK, word),
      ...set(SCHEDULE + word),
    ]).flat(),
    ...Array.from({ length: ROUNDS }, (_, round) => roundCode(round)).flat(),
    ...words.flatMap((word) => [
      ...get(STATE),
      ...[...load(STATE, word), ...get(WORK + word), ...OP.add],
      ...[...OP.store, ...leb(16 * word)],
    ]),
    0x0b,
  ];
  const section = (id: number, content: Code): Code => [id, ...leb(content.length), ...content];
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 2, I32, I32, 0]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, 1]),
    ...section(7, [2, 1, 0x6d, 2, 0, 1, 0x66, 0, 0]),
    ...section(10, [1, ...leb(body.length), ...body]),
  ]);
}

interface Compression {
  readonly f: (block: number, state: number) => void;
  readonly m: { readonly buffer: ArrayBuffer };
}
/** The part of WebAssembly that is needed: its types come with those of browsers only. */
const { WebAssembly: assembly } = globalThis as unknown as {
  readonly WebAssembly: {
    readonly Module: new (bytes: Uint8Array) => object;
    readonly Instance: new (module: object) => { readonly exports: unknown };
  };
};
const { f: compress, m: memory } = new assembly.Instance(new assembly.Module(moduleBytes()))
  .exports as Compression;

// Hashing ------------------------------------------------------------------------------------------------------------

const STATE_AT = 2 * BLOCK_WORDS * LANES;
const BYTES_PER_WORD = 4;
const begin = Int32Array.from({ length: STATE_WORDS * LANES }, (_, at) => INITIAL[Math.floor(at / LANES)]!);

/** Two blocks of each message: word `w` of block `b` of message `lane` is at `(16 × b + w) × 4 + lane`, as a number. */
export const blocks = new Int32Array(memory.buffer, 0, STATE_AT);
/** The digests: word `w` of message `lane` is at `w × 4 + lane`. */
export const digests = new Int32Array(memory.buffer, STATE_AT * BYTES_PER_WORD, STATE_WORDS * LANES);

/** Hashes what is in {@link blocks}, padding included, into {@link digests}. @param count blocks of each message, 1 or 2 */
export function hashFour(count: 1 | 2): void {
  digests.set(begin);
  compress(0, STATE_AT * BYTES_PER_WORD);
  if (count === 2) compress(BLOCK_WORDS * LANES * BYTES_PER_WORD, STATE_AT * BYTES_PER_WORD);
}
