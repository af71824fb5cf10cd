/**
 * Converts the repository's Markdown to HTML, with GitHub's anchors, an anchor for each error code, and links
 * between the pages.
 */
import { posix } from 'node:path';
import { Marked, type Token, type Tokens, type TokensList } from 'marked';
import { codeBlock } from './highlight.js';
import { addressOf, escaped, type PageSource } from './pages.js';
import { labelledTables } from './tables.js';
import { type Tab, tabsOf } from './tabs.js';

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
 * @param pages pages that links may lead to; links to other files of the repository become text
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
        const text = this.parser.parseInline(tokens);
        const target = targetOf(href, page, pages);
        return target === undefined ? text : `<a href="${escaped(target)}">${text}</a>`;
      },
      image: ({ href, text }: Tokens.Image) =>
        `<img src="/docs/${escaped(posix.basename(href))}" alt="${escaped(text)}">`,
      html: ({ text, tabs }: (Tokens.HTML | Tokens.Tag) & { tabs?: string }) =>
        tabs ?? (text.startsWith('<!--') ? '' : escaped(text)),
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

function targetOf(href: string, page: PageSource, pages: readonly PageSource[]): string | undefined {
  if (/^https?:|^#|^\/docs\//.test(href)) return href;
  const [path = '', anchor] = href.split('#');
  const file = posix.join(posix.dirname(page.file), path);
  const target = pages.find((each) => each.file === file);
  if (target === undefined) return undefined;
  return addressOf(target) + (anchor === undefined ? '' : `#${anchor}`);
}
