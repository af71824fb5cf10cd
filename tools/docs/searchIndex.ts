/** Builds the index for the search of /docs: which sections of which pages contain which words. */

export interface Searched {
  readonly address: string;
  readonly title: string;
  readonly html: string;
  readonly isOfOperators: boolean;
}

/** Format of the index that the page's script reads. */
export interface SearchIndex {
  /** Address and title of each page, and 1 if it is for operators. */
  readonly pages: readonly (readonly [string, string, 0 | 1])[];
  /**
   * Sections: page number, anchor (empty for the beginning of the page), heading, and other words that people
   * search for it.
   */
  readonly sections: readonly (readonly [number, string, string, string?])[];
  /** All words in sorted order, separated by spaces. */
  readonly words: string;
  /**
   * The sections of each word, separated by spaces. Section numbers are stored as differences in base 36,
   * separated by commas.
   */
  readonly places: string;
}

const COMMON = new Set(
  'a an and are as at be by can for from has have if in is it its may no not of on one only or so than that the then there they this to was were what when where which with you your'.split(
    ' ',
  ),
);
const LONGEST = 32;

/**
 * Returns the words of a text in lower case. The page's script splits the search text with the same function.
 */
export const wordsOf = (text: string): string[] =>
  (text.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}_-]*/gu) ?? []).filter(
    (word) =>
      word.length > 1 &&
      word.length <= LONGEST &&
      !COMMON.has(word) &&
      !/^[\d-]{5,}$|^[0-9a-f]{16,}$/.test(word),
  );

const textOf = (html: string): string =>
  html
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
    .replaceAll(/\s+/g, ' ')
    .trim();

interface Section {
  readonly anchor: string;
  readonly heading: string;
  readonly html: string;
  readonly also?: string;
}

/** Splits a page into sections at its anchors: headings, and rows of the error code table. */
function sectionsOf({ title, html }: Searched): Section[] {
  // Examples are not indexed, because their content is also in the schemas and in the text around them.
  const text = html.replaceAll(/<pre[\s\S]*?<\/pre>|<details>[\s\S]*?<\/details>/g, ' ');
  const starts = [...text.matchAll(/<(h[1-6]|tr)\b[^>]* id="([^"]+)"[^>]*>/g)];
  const before: Section = {
    anchor: '',
    heading: title,
    html: text.slice(0, starts[0]?.index ?? text.length),
  };
  const others = starts.map((start, place): Section => {
    const [, tag, anchor] = start;
    const own = text.slice(start.index, starts[place + 1]?.index ?? text.length);
    const cells = own.split('</td>');
    const heading =
      tag === 'tr' ? `${anchor} ${textOf(cells[3] ?? '')}` : textOf(own.slice(0, own.indexOf(`</${tag}>`)));
    const [, also] = /<template>([^<]*)<\/template>/.exec(own) ?? [];
    return { anchor: anchor!, heading, html: own, ...(also === undefined ? {} : { also }) };
  });
  return [before, ...others].filter((section) => section.anchor !== '' || textOf(section.html) !== '');
}

export function indexOf(searched: readonly Searched[]): SearchIndex {
  const sections: [number, string, string, string?][] = [];
  const placesOf = new Map<string, number[]>();
  for (const [page, each] of searched.entries()) {
    for (const { anchor, heading, html, also } of sectionsOf(each)) {
      const place =
        sections.push(also === undefined ? [page, anchor, heading] : [page, anchor, heading, also]) - 1;
      for (const word of new Set(wordsOf(`${anchor} ${heading} ${textOf(html)}`))) {
        const places = placesOf.get(word);
        if (places === undefined) placesOf.set(word, [place]);
        else places.push(place);
      }
    }
  }
  const words = [...placesOf.keys()].sort();
  const coded = (places: readonly number[]): string =>
    places.map((place, at) => (place - (places[at - 1] ?? 0)).toString(36)).join(',');
  return {
    pages: searched.map(({ address, title, isOfOperators }) => [address, title, isOfOperators ? 1 : 0]),
    sections,
    words: words.join(' '),
    places: words.map((word) => coded(placesOf.get(word)!)).join(' '),
  };
}
