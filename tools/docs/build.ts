/** `npm run docs`: writes the pages of /docs to dist/docs, each also compressed. `npm run build` runs it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writePages } from '../writePages.js';
import { htmlOf } from './markdown.js';
import { framed, PAGES } from './pages.js';
import { referenceOf } from './reference.js';

const FOLDER = join('dist', 'docs');
const STYLE = join('tools', 'docs', 'style.css');
const IMAGES = join('docs', 'images');

const pages = PAGES.filter(({ file }) => existsSync(file));
const files = new Map<string, string>([['style.css', readFileSync(STYLE, 'utf8')]]);
for (const page of pages) {
  const text = readFileSync(page.file, 'utf8');
  const content = page.file.endsWith('.json') ? referenceOf(JSON.parse(text)) : htmlOf(text, page, pages);
  files.set(`${page.slug || 'index'}.html`, framed(page, pages, content));
}
for (const image of existsSync(IMAGES) ? readdirSync(IMAGES).filter((name) => name.endsWith('.svg')) : []) {
  files.set(image, readFileSync(join(IMAGES, image), 'utf8'));
}
writePages(FOLDER, files);
