/**
 * Converts the repository's Markdown to HTML, with GitHub's anchors, an anchor for each error code, and links
 * between the pages.
 */
import { existsSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { Marked, type Token, type Tokens, type TokensList } from 'marked';
import { codeBlock } from './highlight.js';
import { addressOf, escaped, type PageSource } from './pages.js';
import { labelledTables } from './tables.js';
import { type Tab, tabsOf } from './tabs.js';

/** Folder whose files are served under the same path. */
const VECTORS = 'docs/vectors/';
const ERRORS_FILE = 'docs/errors.md';

/** Returns the anchor that GitHub creates for a heading. */
const anchorOf = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

/**
 * Converts a page to HTML. Leaves out the parts between the comments `not served` and `served`, which only
 * readers of the repository need.
 *
 * @param pages pages that links may lead to; links to other files of the repository become text, unless they
 * are served beside the pages
 */
export function htmlOf(markdown: string, page: PageSource, pages: readonly PageSource[]): string {
  const marked = new Marked({ gfm: true });
  marked.use({
    renderer: {
      heading({ tokens, depth, text }: Tokens.Heading) {
        const anchor = anchorOf(text.replaceAll(/[`*]|\[([^\]]*)\]\([^)]*\)/g, '$1'));
        return `<h${depth} id="${escaped(anchor)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      code: ({ text, lang = '' }: Tokens.Code) => codeBlock(text, lang.split(' ')[0]!),
      link({ href, tokens }: Tokens.Link) {
        const { file, target } = targetOf(href, page, pages);
        // Readers of the served pages have no files, so a link with a file's name shows the page's title.
        const title = pages.find((each) => each.file === file)?.title ?? titleOf(file);
        const isName =
          title !== undefined && tokens.every(({ raw }) => file!.endsWith(raw.replaceAll('`', '')));
        const text = isName ? escaped(title) : this.parser.parseInline(tokens);
        if (isName && target === undefined) return `<em>${text}</em> in the source code`;
        return target === undefined ? text : `<a href="${escaped(target)}">${text}</a>`;
      },
      image: ({ href, text }: Tokens.Image) =>
        `<img src="/docs/${escaped(posix.basename(href))}" alt="${escaped(text)}">`,
      html: ({ text, tabs }: (Tokens.HTML | Tokens.Tag) & { tabs?: string }) =>
        tabs ?? (text.startsWith('<!--') ? searchWordsOf(text) : escaped(text)),
    },
  });
  const served = markdown.replaceAll(/<!-- not served -->[\s\S]*?<!-- served -->/g, '');
  const html = marked.parser(withTabs(marked.lexer(served), marked));
  const isErrors = page.file === ERRORS_FILE;
  const linked = (
    isErrors ? html.replaceAll(/<tr>(\n<td>)(KS-\d{4})/g, '<tr id="$2">$1$2') : html
  ).replaceAll(/<[^>]+>|[^<]+/g, withLinkedCodes());
  return labelledTables(linked);
}

/** Converts consecutive code blocks to tabs if each has a label after its language (```ts TypeScript). */
function withTabs(tokens: TokensList | Token[], marked: Marked): Token[] {
  const given: Token[] = [];
  let tabs: Tab[] = [];
  const end = (): void => {
    if (tabs.length > 0)
      given.push({ type: 'html', raw: '', text: '', block: true, pre: false, tabs: tabsOf(tabs) } as Token);
    tabs = [];
  };
  for (const token of tokens) {
    const label = token.type === 'code' ? /^\S+ (.+)$/.exec(token.lang ?? '')?.[1] : undefined;
    if (label !== undefined) tabs.push({ label, html: marked.parser([token]) });
    else if (tabs.length === 0 || token.type !== 'space') {
      end();
      given.push(token);
    }
  }
  end();
  return given;
}

/**
 * Returns a replacer that is called with each tag and text of a page in order. It turns each error code into
 * a link, except in code, headings and links.
 */
function withLinkedCodes(): (part: string) => string {
  let depth = 0;
  return (part) => {
    const [, end, name] = /^<(\/?)(a|code|pre|h[1-6])\b/.exec(part) ?? [];
    if (name !== undefined) depth += end === '/' ? -1 : 1;
    if (depth > 0 || part.startsWith('<')) return part;
    return part.replaceAll(/KS-\d{4}/g, '<a href="/docs/errors#$&">$&</a>');
  };
}

/** Returns the words of a comment `search: …`, which the page does not show and the search finds. */
function searchWordsOf(comment: string): string {
  const [, words] = /^<!-- search: (.*?) -->/.exec(comment) ?? [];
  return words === undefined ? '' : `<template>${escaped(words)}</template>\n`;
}

/** Returns the heading of a page of the repository. Undefined for other files. */
function titleOf(file: string | undefined): string | undefined {
  if (file === undefined || !file.endsWith('.md') || !existsSync(file)) return undefined;
  return /^# (.+)$/m.exec(readFileSync(file, 'utf8'))?.[1];
}

interface Target {
  /** The linked file of the repository. */
  readonly file?: string;
  /** Address of the served file; undefined if it is not served. */
  readonly target?: string;
}

function targetOf(href: string, page: PageSource, pages: readonly PageSource[]): Target {
  if (/^https?:|^#|^\/docs\//.test(href)) return { target: href };
  const [path = '', anchor] = href.split('#');
  const file = posix.join(posix.dirname(page.file), path);
  const found = pages.find((each) => each.file === file);
  if (found !== undefined)
    return { file, target: addressOf(found) + (anchor === undefined ? '' : `#${anchor}`) };
  return file.startsWith(VECTORS) ? { file, target: `/${file}` } : { file };
}
