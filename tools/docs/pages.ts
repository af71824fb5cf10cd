/** Defines the pages of /docs, their sources, and the frame around each page. */

export interface PageSource {
  /** Last part of the address `/docs/slug`; empty for `/docs`. */
  readonly slug: string;
  readonly title: string;
  /** Markdown file or OpenAPI document in the repository. */
  readonly file: string;
  /** Group of the page in the navigation. */
  readonly group: string;
}

const group = (name: string, pages: readonly [slug: string, title: string, file: string][]): PageSource[] =>
  pages.map(([slug, title, file]) => ({ slug, title, file, group: name }));

/** Group of the pages for operators. All other pages are for partners. */
export const OPERATORS_GROUP = 'Run it';

/** Pages about running a service. The search shows what partners need before them. */
export const isOfOperators = ({ group: name }: PageSource): boolean => name === OPERATORS_GROUP;

/** The pages in the order of the navigation. A page whose source file does not exist is left out. */
export const PAGES: readonly PageSource[] = [
  ...group('Start', [
    ['', 'Overview', 'docs/README.md'],
    ['quick-start', 'Quick start', 'docs/quick-start.md'],
    ['par-sheets', 'PAR sheets', 'docs/par-sheets.md'],
    ['client', 'TypeScript client', 'clients/typescript/README.md'],
  ]),
  ...group('Reference', [
    ['api', 'API reference', 'openapi/partner.v1.json'],
    ['play-api', 'Play API', 'openapi/play.v1.json'],
    ['errors', 'Errors', 'docs/errors.md'],
    ['contract', 'Contract', 'docs/contract.md'],
    ['changelog', 'Changelog', 'clients/typescript/API_CHANGELOG.md'],
  ]),
  ...group('Guides', [
    ['requests', 'Requests', 'docs/requests.md'],
    ['reconcile', 'Reconcile', 'docs/reconcile.md'],
    ['webhooks', 'Webhooks', 'docs/webhooks.md'],
    ['go-live', 'Go live', 'docs/go-live.md'],
    ['raffles', 'Raffles', 'docs/raffles.md'],
    ['communal', 'Communal bonus', 'docs/communal.md'],
    ['blackjack', 'Blackjack', 'docs/blackjack.md'],
    ['proofs', 'Proofs', 'docs/proofs.md'],
    ['verify', 'Verifier', 'verifier/README.md'],
  ]),
  ...group(OPERATORS_GROUP, [
    ['operators', 'Run it', 'docs/operators.md'],
    ['reports', 'Reports', 'docs/reports.md'],
    ['compliance', 'Compliance', 'docs/compliance.md'],
    ['operator-api', 'Operator API', 'openapi/operator.v1.json'],
  ]),
];

export const addressOf = ({ slug }: PageSource): string => (slug === '' ? '/docs' : `/docs/${slug}`);

export const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/**
 * Placeholder for the address of the service in examples. The page's script replaces it with the address that
 * the page came from.
 */
export const ORIGIN = 'https://spindle.example.com';

/** A heading of the page that the navigation links to. */
export interface Place {
  readonly anchor: string;
  readonly title: string;
  /** Headings below this heading. */
  readonly below: readonly Place[];
}

/**
 * Returns the headings for the navigation: headings of level 2 and, on an API page, the operations below
 * them.
 */
function placesOf(content: string): Place[] {
  const places: { anchor: string; title: string; below: Place[] }[] = [];
  for (const [, level, anchor, html] of content.matchAll(/<h([23]) id="([^"]+)"[^>]*>([\s\S]*?)<\/h\1>/g)) {
    const title = html!.replaceAll(/<[^>]+>/g, '').trim();
    if (level === '2') places.push({ anchor: anchor!, title, below: [] });
    else if (html!.includes('class="method"'))
      places.at(-1)?.below.push({ anchor: anchor!, title: anchor!, below: [] });
  }
  return places;
}

const listOf = (places: readonly Place[]): string =>
  places.length === 0
    ? ''
    : `<ul>${places
        .map(({ anchor, title, below }) => `<li><a href="#${anchor}">${title}</a>${listOf(below)}</li>`)
        .join('')}</ul>`;

/**
 * Returns a complete page. It loads only the site's single script and style sheet, and nothing from other
 * origins. It is readable without the script.
 */
export function framed(page: PageSource, pages: readonly PageSource[], content: string): string {
  const link = (each: PageSource): string => {
    const current = each === page ? ' aria-current="page"' : '';
    const below = each === page ? listOf(placesOf(content)) : '';
    return `<li><a href="${addressOf(each)}"${current}>${each.title}</a>${below}</li>`;
  };
  const groups = [...new Set(pages.map(({ group: name }) => name))].map(
    (name) =>
      `<p>${name}</p><ul>${pages
        .filter((each) => each.group === name)
        .map(link)
        .join('')}</ul>`,
  );
  const text = withOrigins(content);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${page.title} · Spindle</title>
<link rel="stylesheet" href="/docs/style.css">
<link rel="icon" href="data:,">
<script src="/docs/page.js" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header><button type="button" id="site-menu" aria-expanded="false" aria-controls="site-pages" hidden>Menu</button><a class="home" href="/docs">Spindle</a><div id="site-search" role="search"></div></header>
<nav id="site-pages" aria-label="Pages" tabindex="0">${groups.join('')}</nav>
<main id="content">
${text}
</main>
</body>
</html>
`;
}

/**
 * Marks the address of the service in the texts of a page, but not in attributes, so that the page's script
 * finds it.
 */
const withOrigins = (html: string): string =>
  html.replaceAll(/<[^>]+>|[^<]+/g, (part) =>
    part.startsWith('<') ? part : part.replaceAll(ORIGIN, `<span class="origin">${ORIGIN}</span>`),
  );
