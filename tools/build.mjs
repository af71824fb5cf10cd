/**
 * Builds `dist`: `node tools/build.mjs [STEP …]`. Without a step it runs every step whose inputs or outputs
 * have changed since the step's last run. So a build without changes takes less than a second, and no output
 * keeps a change that something else has made. With steps it runs only these. Independent steps run in
 * parallel. Types are checked by `npm run check`, not by a build.
 *
 *    types ─┬─> compile ─┬──────────> console ─┐
 *           │            └> verifier ┐         ├─> manifest
 *           └─> client ──────────────┴> docs ──┘
 *    typebox ───────────────^
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { build as bundle, transform } from 'esbuild';

const run = promisify(execFile);
/** Fingerprints of the files of each step after its last successful run. */
const STATE = join('.cache', 'build.json');
const TYPEBOX = { index: 'typebox', 'compile/index': 'typebox/compile', 'system/index': 'typebox/system' };

/** Lists the files of a folder, or the file itself. A path that does not exist has no files. */
function filesOf(path) {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return [];
  if (found.isFile()) return [path];
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Lists the TypeScript files of tsconfig.build.json, with all files that they import. */
function sources() {
  const { include } = JSON.parse(readFileSync('tsconfig.build.json', 'utf8'));
  const queue = include.flatMap(filesOf).filter((file) => /\.ts$/.test(file) && !/\.d\.ts$/.test(file));
  const found = new Set(queue.filter((file) => !file.startsWith(join('tools', 'docs', 'page'))));
  for (const file of found) {
    for (const [, name] of readFileSync(file, 'utf8').matchAll(
      /(?:from|import\()\s*'(\.{1,2}\/[^']+)\.js'/g,
    )) {
      const imported = relative('.', join(dirname(file), `${name}.ts`));
      if (existsSync(imported)) found.add(imported);
    }
  }
  return [...found].sort();
}

const node = (...args) => run(process.execPath, args);
const tool = (name) => node(join('dist', 'tools', `${name}.js`));

/** Bundles and runs a program of the openapi folder, which needs no compiled files. */
async function openApi(name) {
  const outfile = join('.cache', 'openapi', `${name}.js`);
  await bundle({
    entryPoints: [join('openapi', `${name}.ts`)],
    outfile,
    bundle: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    logLevel: 'warning',
  });
  const { stdout } = await node(outfile);
  process.stdout.write(stdout);
}

const CLIENT = join('clients', 'typescript');
const COMPILED_CLIENT = join('dist', 'client');

/**
 * Writes the compiled client a second time, as CommonJS for `require`. The copy has its own folder, whose
 * package.json makes Node.js and TypeScript read the `.js` and `.d.ts` files in it as CommonJS.
 */
async function writeClientForRequire() {
  const folder = join(COMPILED_CLIENT, 'cjs');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "type": "commonjs" }\n');
  for (const file of readdirSync(COMPILED_CLIENT).filter((name) => /\.(js|d\.ts)$/.test(name))) {
    const text = readFileSync(join(COMPILED_CLIENT, file), 'utf8');
    const isCode = file.endsWith('.js');
    const options = { format: 'cjs', platform: 'node', target: 'es2022' };
    writeFileSync(join(folder, file), isCode ? (await transform(text, options)).code : text);
  }
}

/** Each step with the files that it reads and writes, the steps before it, and its work. */
const STEPS = {
  typebox: {
    inputs: () => [],
    outputs: () => filesOf(join('dist', 'typebox')),
    after: [],
    work: () =>
      bundle({
        entryPoints: TYPEBOX,
        outdir: join('dist', 'typebox'),
        bundle: true,
        splitting: true,
        format: 'esm',
        platform: 'node',
        logLevel: 'warning',
      }),
  },
  compile: {
    inputs: () => [...sources(), 'tsconfig.json', 'tsconfig.build.json'],
    outputs: () =>
      sources().flatMap((file) => ['.js', '.js.map'].map((end) => join('dist', file.replace(/\.ts$/, end)))),
    after: ['types'],
    work: async () => {
      await bundle({
        entryPoints: sources(),
        outbase: '.',
        outdir: 'dist',
        format: 'esm',
        platform: 'node',
        target: 'es2022',
        sourcemap: true,
        logLevel: 'warning',
      });
      chmodSync(join('dist', 'src', 'cli', 'cli.js'), 0o755);
    },
  },
  types: {
    inputs: () => filesOf('openapi').filter((file) => !file.endsWith('write.ts')),
    outputs: () => [
      join(CLIENT, 'src', 'partner.v1.ts'),
      join(CLIENT, 'src', 'play.v1.ts'),
      join('src', 'api', 'client', 'operator.v1.d.ts'),
    ],
    after: [],
    work: () => openApi('types'),
  },
  client: {
    inputs: () => [...filesOf(join(CLIENT, 'src')), join(CLIENT, 'tsconfig.json')],
    outputs: () => filesOf(COMPILED_CLIENT),
    after: ['types'],
    work: async () => {
      const tsc = join('node_modules', 'typescript', 'bin', 'tsc');
      await node(tsc, '-p', CLIENT, '--noCheck', '--outDir', COMPILED_CLIENT);
      await writeClientForRequire();
    },
  },
  verifier: {
    inputs: () => [...filesOf('verifier'), ...sources(), 'package.json'],
    outputs: () => filesOf(join('dist', 'verifier')),
    after: ['compile', 'typebox'],
    work: () => tool('verifier'),
  },
  console: {
    inputs: () => [
      ...['console', join('src', 'domain'), join('src', 'api', 'client')].flatMap(filesOf),
      join('tools', 'console.ts'),
    ],
    outputs: () => filesOf(join('dist', 'console')),
    after: ['compile'],
    work: () => tool('console'),
  },
  docs: {
    inputs: () => [
      ...['docs', 'tools', 'openapi', CLIENT, 'CHANGELOG.md', 'package.json'].flatMap(filesOf),
      ...['verifier', COMPILED_CLIENT, join('dist', 'verifier')].flatMap(filesOf),
    ],
    outputs: () => filesOf(join('dist', 'docs')),
    after: ['compile', 'client', 'typebox', 'verifier'],
    work: () => tool(join('docs', 'build')),
  },
  manifest: {
    inputs: () => ['dist', 'lua', join('src', 'postgres', 'migrations')].flatMap(filesOf),
    outputs: () => ['manifest.sha256'],
    after: ['verifier', 'console', 'docs'],
    work: () => tool('manifest'),
  },
};

const state = existsSync(STATE) ? JSON.parse(readFileSync(STATE, 'utf8')) : {};

/**
 * Hashes the paths, sizes and modification times of the inputs of a step, and the contents of its outputs.
 * All steps depend on this file and on the installed packages.
 */
function fingerprint({ inputs, outputs }) {
  const hash = createHash('sha256').update(process.version);
  for (const file of [...inputs(), join('tools', 'build.mjs'), 'package-lock.json']) {
    const found = statSync(file, { throwIfNoEntry: false });
    hash.update(`${file}\0${found?.size}\0${found?.mtimeMs}\n`);
  }
  for (const file of outputs()) {
    hash.update(`${file}\0`);
    if (existsSync(file)) hash.update(readFileSync(file));
  }
  return hash.digest('hex');
}

async function runStep(name) {
  const step = STEPS[name];
  if (state[name] === fingerprint(step)) return;
  delete state[name];
  await step.work();
  // Some steps write files that are among their own inputs.
  state[name] = fingerprint(step);
}

const started = new Map();
/** Runs a step once, after the steps that must come before it. */
function ensure(name) {
  if (!started.has(name)) {
    started.set(
      name,
      Promise.all(STEPS[name].after.map(ensure)).then(() => runStep(name)),
    );
  }
  return started.get(name);
}

const asked = process.argv.slice(2);
if (asked[0] === 'openapi') {
  await ensure('typebox');
  await openApi('write');
} else {
  try {
    await Promise.all((asked.length > 0 ? asked : Object.keys(STEPS)).map(ensure));
  } catch (error) {
    process.stderr.write(`${error.stdout ?? ''}${error.stderr ?? `${error.message}\n`}`);
    process.exitCode = 1;
  } finally {
    mkdirSync(dirname(STATE), { recursive: true });
    writeFileSync(STATE, JSON.stringify(state));
  }
}
