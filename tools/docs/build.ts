/**
 * Writes the pages of /docs, with compressed copies, and the client package to dist/docs. `npm run build`
 * runs this tool.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { writePages } from '../writePages.js';
import { clientPackage } from './clientPackage.js';
import { htmlOf } from './markdown.js';
import { addressOf, framed, isOfOperators, PAGES } from './pages.js';
import { referenceOf } from './reference.js';
import { indexOf } from './searchIndex.js';

const FOLDER = join('dist', 'docs');
const SOURCE = join('tools', 'docs');
const IMAGES = join('docs', 'images');
/** Page whose first JSON block is also published as a file. */
const SHEETS = join('docs', 'par-sheets.md');

const VECTORS = join('docs', 'vectors');

const VERIFIER = join('dist', 'verifier');
/** Files of the verifier that the page `verify` offers with their checksums. */
const VERIFIERS = ['spindle-verify.mjs', 'verify.mjs'];
/** Comment in the source of the page `verify` that is replaced by the list of checksums. */
const CHECKSUMS = '<!-- checksums -->';

const verifiers = VERIFIERS.filter((name) => existsSync(join(VERIFIER, name))).map((name) => {
  const text = readFileSync(join(VERIFIER, name), 'utf8');
  return { name, text, sha256: createHash('sha256').update(text).digest('hex') };
});
const checksums = verifiers
  .map(({ name, sha256 }) => `- [${name}](/docs/verify/${name}), SHA-256 \`${sha256}\``)
  .join('\n');

const pages = PAGES.filter(({ file }) => existsSync(file));
const files = new Map<string, string | Uint8Array>();
const contents = pages.map((page) => {
  const text = readFileSync(page.file, 'utf8').replace(CHECKSUMS, checksums);
  return page.file.endsWith('.json') ? referenceOf(JSON.parse(text)) : htmlOf(text, page, pages);
});
for (const [place, page] of pages.entries()) {
  files.set(`${page.slug || 'index'}.html`, framed(page, pages, contents[place]!));
}
const missing = { slug: '404', title: 'Page not found', file: '', group: '' };
files.set(
  '404.html',
  framed(
    missing,
    pages,
    `<h1>Page not found</h1>
<p>This address has no page. Search for it above, or begin with one of these pages:</p>
<ul>${pages
      .filter((page) => !isOfOperators(page))
      .map((page) => `<li><a href="${addressOf(page)}">${page.title}</a></li>`)
      .join('')}</ul>`,
  ),
);
files.set('style.css', readFileSync(join(SOURCE, 'style.css'), 'utf8'));
const script = buildSync({
  entryPoints: [join(SOURCE, 'page', 'main.ts')],
  bundle: true,
  minify: true,
  write: false,
  format: 'iife',
  target: 'es2022',
  logLevel: 'warning',
});
files.set('page.js', script.outputFiles[0]!.text);
const searched = pages.map((page, place) => ({
  address: addressOf(page),
  title: page.title,
  html: contents[place]!,
  isOfOperators: isOfOperators(page),
}));
files.set('search.json', JSON.stringify(indexOf(searched)));
if (existsSync(SHEETS)) {
  files.set('examples/par-sheet.json', /```json\n([\s\S]*?)```/.exec(readFileSync(SHEETS, 'utf8'))![1]!);
}
for (const image of existsSync(IMAGES) ? readdirSync(IMAGES) : []) {
  if (image.endsWith('.svg')) files.set(image, readFileSync(join(IMAGES, image), 'utf8'));
  if (image.endsWith('.png')) files.set(image, readFileSync(join(IMAGES, image)));
}
for (const name of existsSync(VECTORS) ? readdirSync(VECTORS) : [])
  files.set(`vectors/${name}`, readFileSync(join(VECTORS, name), 'utf8'));
for (const [name, content] of clientPackage()) files.set(`client/${name}`, content);
for (const { name, text } of verifiers) files.set(`verify/${name}`, text);
files.set('verify/SHA256SUMS', verifiers.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join(''));
writePages(FOLDER, files);
