/** `npm run docs`: writes the pages of /docs to dist/docs, each also compressed. `npm run build` runs it. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
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
const made = new Map<string, string | Buffer>();
for (const [name, text] of files) {
  made.set(`${name}.br`, brotliCompressSync(text));
  made.set(`${name}.gz`, gzipSync(text, { level: 9 }));
  made.set(name, text);
}
// Each takes the place of the one before it in one step: a service that starts meanwhile finds every file.
const begun = `${FOLDER}.${process.pid}`;
for (const folder of [FOLDER, begun]) mkdirSync(folder, { recursive: true });
for (const [name, bytes] of made) {
  writeFileSync(join(begun, name), bytes);
  renameSync(join(begun, name), join(FOLDER, name));
}
for (const name of readdirSync(FOLDER)) if (!made.has(name)) rmSync(join(FOLDER, name));
rmSync(begun, { recursive: true });
