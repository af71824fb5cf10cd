/** The pages of /docs: which there are, what they are made of, and the frame around each. */

export interface PageSource {
  /** `/docs/slug`; empty: `/docs`. */
  readonly slug: string;
  readonly title: string;
  /** Markdown file, or OpenAPI document, of the repository. */
  readonly file: string;
}

/** In the order of the navigation. A file that is not there has no page. */
export const PAGES: readonly PageSource[] = [
  { slug: '', title: 'Quick start', file: 'docs/quick-start.md' },
  { slug: 'api', title: 'API reference', file: 'openapi/partner.v1.json' },
  { slug: 'idempotency', title: 'Idempotency', file: 'docs/idempotency.md' },
  { slug: 'errors', title: 'Errors', file: 'docs/errors.md' },
  { slug: 'webhooks', title: 'Webhooks', file: 'docs/webhooks.md' },
  { slug: 'rate-limits', title: 'Rate limits', file: 'docs/rate-limits.md' },
  { slug: 'sandbox', title: 'Sandbox', file: 'docs/sandbox.md' },
  { slug: 'raffles', title: 'Raffles', file: 'docs/raffles.md' },
  { slug: 'communal', title: 'Communal bonus', file: 'docs/communal.md' },
  { slug: 'blackjack', title: 'Blackjack', file: 'docs/blackjack.md' },
  { slug: 'client', title: 'Client', file: 'clients/typescript/README.md' },
  { slug: 'contract', title: 'Contract', file: 'docs/contract.md' },
  { slug: 'changelog', title: 'Changelog', file: 'clients/typescript/API_CHANGELOG.md' },
  { slug: 'operator-api', title: 'Operator API', file: 'openapi/operator.v1.json' },
  { slug: 'play-api', title: 'Play API', file: 'openapi/play.v1.json' },
];

export const addressOf = ({ slug }: PageSource): string => (slug === '' ? '/docs' : `/docs/${slug}`);

export const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** A whole page: no script, no style of its own, nothing from elsewhere. */
export function framed(page: PageSource, pages: readonly PageSource[], content: string): string {
  const links = pages.map((each) => {
    const current = each === page ? ' aria-current="page"' : '';
    return `<li><a href="${addressOf(each)}"${current}>${each.title}</a></li>`;
  });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${page.title} · Spindle</title>
<link rel="stylesheet" href="/docs/style.css">
<link rel="icon" href="data:,">
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<nav aria-label="Pages"><strong>Spindle</strong><ul>${links.join('')}</ul></nav>
<main id="content">
${content}
</main>
</body>
</html>
`;
}
