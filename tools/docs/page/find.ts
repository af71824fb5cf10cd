/**
 * Finds sections by the search index. A section contains every word, which may be incomplete. If none does,
 * it contains some of them. Pages for operators come after those for partners.
 */
import { type SearchIndex, wordsOf } from '../searchIndex.js';

export interface Found {
  readonly href: string;
  readonly page: string;
  readonly heading: string;
}

const RESULTS_MAX = 12;
/** Maximum number of indexed words that an incomplete word matches. */
const BEGUN_MAX = 500;

export class Finder {
  readonly #index: SearchIndex;
  readonly #words: readonly string[];
  readonly #places: readonly string[];

  constructor(index: SearchIndex) {
    this.#index = index;
    this.#words = index.words.split(' ');
    this.#places = index.places.split(' ');
  }

  /** Returns at most 12 sections, the best match first. */
  find(text: string): Found[] {
    const asked = wordsOf(text);
    if (asked.length === 0) return [];
    const of = asked.map((word) => this.#scores(word));
    const having = [...new Set(of.flatMap((scores) => [...scores.keys()]))];
    const every = having.filter((section) => of.every((scores) => scores.has(section)));
    const sums = (every.length > 0 ? every : having).map((section): [number, number] => {
      const sum = of.reduce((total, scores) => total + (scores.get(section) ?? 0), 0);
      return [section, sum + this.#headingScore(section, asked)];
    });
    sums.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    return sums.slice(0, RESULTS_MAX).map(([section]) => this.#found(section));
  }

  /** Returns the score of each section for a word. Rare words and complete words score higher. */
  #scores(asked: string): Map<number, number> {
    const scores = new Map<number, number>();
    let at = lowerBound(this.#words, asked);
    for (const end = at + BEGUN_MAX; at < end && this.#words[at]?.startsWith(asked); at++) {
      const places = this.#places[at]!.split(',');
      const rarity = Math.log(1 + this.#index.sections.length / places.length);
      const score = this.#words[at] === asked ? rarity + 2 : rarity / 2;
      let section = 0;
      for (const step of places) {
        section += Number.parseInt(step, 36);
        scores.set(section, Math.max(score, scores.get(section) ?? 0));
      }
    }
    return scores;
  }

  #headingScore(section: number, asked: readonly string[]): number {
    const [page, anchor, heading, also = ''] = this.#index.sections[section]!;
    const words = `${anchor} ${heading} ${also}`.toLowerCase();
    const inHeading = asked.filter((word) => words.includes(word)).length;
    const title = this.#index.pages[page]![1].toLowerCase();
    const inTitle = asked.filter((word) => title.includes(word)).length;
    const isSchema = anchor.startsWith('schema-') ? 2 : 0;
    const isOfOperators = 12 * this.#index.pages[page]![2];
    return (
      6 * inHeading +
      2 * inTitle +
      (anchor.toLowerCase() === asked.join(' ') ? 10 : 0) -
      isSchema -
      isOfOperators
    );
  }

  #found(section: number): Found {
    const [page, anchor, heading] = this.#index.sections[section]!;
    const [address, title] = this.#index.pages[page]!;
    return { href: anchor === '' ? address : `${address}#${anchor}`, page: title, heading };
  }
}

/**
 * Returns the position in the sorted list of the first word that is equal to the given word or comes after
 * it.
 */
function lowerBound(words: readonly string[], word: string): number {
  let low = 0;
  let high = words.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (words[middle]! < word) low = middle + 1;
    else high = middle;
  }
  return low;
}
