/**
 * Packs the partner API client, with its dependencies, as an npm package. The same sources give the same
 * bytes.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const SOURCE = join('clients', 'typescript');
/** Folder with the compiled client from `npm run build`. */
const COMPILED = join('dist', 'client');
const BUNDLED = ['openapi-fetch', 'openapi-typescript-helpers'];
const BLOCK = 512;
/** Modification time of all files: 1985-10-26, as in packages that npm itself creates. */
const MODIFIED_S = 499_162_500;

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  readonly [member: string]: unknown;
}

const sha256 = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex');
const read = (...path: string[]): string => readFileSync(join(...path), 'utf8');

/**
 * Returns the package and its checksum by file name. Returns no files if the client has not been compiled.
 */
export function clientPackage(): Map<string, string | Uint8Array> {
  if (!existsSync(join(COMPILED, 'index.js'))) return new Map();
  const { private: _, ...manifest } = JSON.parse(read(SOURCE, 'package.json')) as Manifest;
  const name = `spindle-client-${manifest.version}.tgz`;
  const bytes = gzipped(tarOf(contentOf(manifest)));
  return new Map<string, string | Uint8Array>([
    [name, bytes],
    ['SHA256SUMS', `${sha256(bytes)}  ${name}\n`],
  ]);
}

/** Returns the files of the package by path. */
function contentOf(manifest: Manifest): Map<string, string> {
  const files = new Map<string, string>([
    ['package.json', `${JSON.stringify(manifest, null, 2)}\n`],
    ['README.md', standing(read(SOURCE, 'README.md'))],
    ['API_CHANGELOG.md', standing(read(SOURCE, 'API_CHANGELOG.md'))],
    ['LICENSE', read(SOURCE, 'LICENSE')],
    ['PROVENANCE.md', provenanceOf(manifest)],
  ]);
  for (const file of filesIn(COMPILED)) files.set(`dist/${file}`, read(COMPILED, file));
  for (const each of BUNDLED) {
    const folder = join('node_modules', each);
    for (const file of filesIn(folder)) {
      if (
        /^(package\.json|LICENSE.*)$|\.([cm]?js|d\.[cm]?ts)$/.test(file) &&
        !/(^|\/)(src|examples|test)\//.test(file)
      ) {
        files.set(`node_modules/${each}/${file}`, read(folder, file));
      }
    }
  }
  return files;
}

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath ?? entry.path, entry.name)
        .slice(folder.length + 1)
        .replaceAll('\\', '/'),
    );

/**
 * Replaces links to other files of the repository by plain text, because those files are not in the package.
 */
const standing = (markdown: string): string => markdown.replaceAll(/\[([^\]]+)\]\(\.\.\/[^)]*\)/g, '$1');

function provenanceOf({ name, version }: Manifest): string {
  const documents = ['partner', 'play'].map((scope) => {
    const text = read('openapi', `${scope}.v1.json`);
    const info = (JSON.parse(text) as { info: { version: string } }).info;
    return `| \`openapi/${scope}.v1.json\` | ${info.version} | \`${sha256(text)}\` |`;
  });
  const bundled = BUNDLED.map((each) => {
    const made = JSON.parse(read('node_modules', each, 'package.json')) as {
      version: string;
      license: string;
    };
    return `| \`${each}\` | ${made.version} | ${made.license} |`;
  });
  return `# Origin of this package

${name} ${version} was made by the build of version ${version} of the service, from \`clients/typescript\` and these documents:

| Document | Version | SHA-256 |
|---|---|---|
${documents.join('\n')}

The package contains these dependencies, unchanged:

| Package | Version | Licence |
|---|---|---|
${bundled.join('\n')}

\`npm ci && npm run build\` with the same sources and the same version of Node.js creates the same bytes in \`dist/docs/client\`, and their SHA-256 in
\`SHA256SUMS\`. All files have the date that npm gives to files of packages, 1985-10-26. The service serves the package of its own build.
To publish the package to a registry, publish this file from a build that the registry can attest (\`npm publish --provenance FILE\`).
`;
}

/** Creates a tar archive (POSIX ustar) with all files below \`package/\`, sorted by path. */
function tarOf(files: ReadonlyMap<string, string>): Buffer {
  const parts: Buffer[] = [];
  for (const path of [...files.keys()].sort()) {
    const content = Buffer.from(files.get(path)!);
    parts.push(
      headOf(`package/${path}`, content.length),
      content,
      Buffer.alloc(-content.length & (BLOCK - 1)),
    );
  }
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]);
}

function headOf(path: string, size: number): Buffer {
  if (Buffer.byteLength(path) > 100) throw new Error(`${path} is too long for a tar archive`);
  const head = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, length: number): void =>
    void head.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1');
  head.write(path, 0);
  octal(0o644, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(MODIFIED_S, 136, 12);
  head.write('        0', 148, 'latin1');
  head.write('ustar\x0000', 257, 'latin1');
  octal(
    head.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  );
  return head;
}

/**
 * Compresses bytes by gzip. The header does not name the operating system, so that all machines create the
 * same bytes.
 */
function gzipped(bytes: Buffer): Buffer {
  const packed = gzipSync(bytes, { level: 9 });
  packed[9] = 255;
  return packed;
}
