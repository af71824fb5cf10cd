/**
 * Writes the pages of /docs, with compressed copies, and the client package to dist/docs. `npm run build`
 * runs this tool.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { writePages } from '../writePages.js';
import { clientPackage } from './clientPackage.js';
import { htmlOf } from './markdown.js';
import { addressOf, framed, PAGES } from './pages.js';
import { referenceOf } from './reference.js';
import { indexOf } from './searchIndex.js';

const FOLDER = join('dist', 'docs');
const SOURCE = join('tools', 'docs');
const IMAGES = join('docs', 'images');
/** Page whose first JSON block is also published as a file. */
const SHEETS = join('docs', 'par-sheets.md');

const pages = PAGES.filter(({ file }) => existsSync(file));
const files = new Map<string, string | Uint8Array>();
const contents = pages.map((page) => {
  const text = readFileSync(page.file, 'utf8');
  return page.file.endsWith('.json') ? referenceOf(JSON.parse(text)) : htmlOf(text, page, pages);
});
for (const [place, page] of pages.entries()) {
  files.set(`${page.slug || 'index'}.html`, framed(page, pages, contents[place]!));
}
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
}));
files.set('search.json', JSON.stringify(indexOf(searched)));
if (existsSync(SHEETS)) {
  files.set('examples/par-sheet.json', /```json\n([\s\S]*?)```/.exec(readFileSync(SHEETS, 'utf8'))![1]!);
}
for (const image of existsSync(IMAGES) ? readdirSync(IMAGES) : []) {
  if (image.endsWith('.svg')) files.set(image, readFileSync(join(IMAGES, image), 'utf8'));
  if (image.endsWith('.png')) files.set(image, readFileSync(join(IMAGES, image)));
}
for (const [name, content] of clientPackage()) files.set(`client/${name}`, content);
writePages(FOLDER, files);
