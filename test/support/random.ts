/** Reproducible random choices: the generator sfc32, seeded with a hash of words. */
import { createHash } from 'node:crypto';

export class Random {
  readonly #state: Uint32Array;

  /**
   * @param words purpose of the choices, such as the seed of a run and a round; other words give other
   * choices
   */
  constructor(...words: readonly (string | number)[]) {
    const digest = createHash('sha256').update(words.join(':')).digest();
    this.#state = Uint32Array.from([0, 4, 8, 12].map((at) => digest.readUInt32LE(at)));
  }

  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  next(): number {
    const state = this.#state;
    const [a, b, c, counter] = state as unknown as [number, number, number, number];
    const sum = (a + b + counter) >>> 0;
    state[3] = counter + 1;
    state[0] = b ^ (b >>> 9);
    state[1] = c + (c << 3);
    state[2] = ((c << 21) | (c >>> 11)) + sum;
    return sum / 4_294_967_296;
  }

  /** Returns an integer from least to most, both inclusive. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.whole(0, items.length - 1)]!;
  }

  shuffled<T>(items: readonly T[]): T[] {
    const list = [...items];
    for (let i = list.length - 1; i > 0; i--) {
      const j = this.whole(0, i);
      [list[i], list[j]] = [list[j]!, list[i]!];
    }
    return list;
  }
}
