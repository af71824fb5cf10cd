/**
 * Runs after `npm ci`. Puts the newest binding of uWebSockets.js that loads on this machine where the package
 * looks for it, and removes the bindings that this program does not use.
 *
 * The package `uws-pack` has bindings for all platforms, but only up to Node 22 (133 MB, of which 14 MB are
 * kept). A newer package has bindings for Node 20 to 25 on Linux with glibc 2.38 or later, such as Debian 13
 * and Ubuntu 24.04. It is 41 MB to download, so it is no dependency: only a machine that can load its binding
 * downloads it and keeps one file of 7 MB. Without any binding the service uses node:http, and says so.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('../node_modules/uWebSockets.js/dist/bin/', import.meta.url));
const NEWER = {
  package: '@btc-vision/uwebsockets.js@20.57.0',
  integrity:
    'sha512-SuPpEjSKZ7P58L/27BXXsrGsMwLmPupfYny8oJsOmFZ4+zX7Ca97nBPtZ3ngKbfeDZzTyi7rXri74INGerhugg==',
  abis: ['115', '127', '137', '141'],
  glibc: [2, 38],
};
const DOWNLOAD_MS = 120_000;
const LOAD_MS = 20_000;

const { platform, arch, versions } = process;
const fileOf = (abi) => `uws_${platform}_${arch}_${abi}.node`;
const own = fileOf(versions.modules);
/** Whether it is an error that no binding loads, as in the container image. */
const isRequired = process.argv.includes('--required');
/** File beside the binding that says from which package it comes. */
const MARK = 'newer';

/** Returns whether this machine has the C library and the Node version that the newer bindings need. */
function suitsNewer() {
  if (platform !== 'linux' || !NEWER.abis.includes(versions.modules)) return false;
  const found = process.report.getReport().header.glibcVersionRuntime;
  if (found === undefined) return false;
  const [major, minor] = found.split('.').map(Number);
  return major > NEWER.glibc[0] || (major === NEWER.glibc[0] && minor >= NEWER.glibc[1]);
}

/**
 * Downloads the newer package by npm, and copies the binding of this machine from it.
 * @throws Error if the download fails, differs from the expected hash, or the binding does not load
 */
function installNewer() {
  const folder = mkdtempSync(join(tmpdir(), 'spindle-binding-'));
  try {
    const npm = process.env.npm_execpath;
    const [program, words] = npm === undefined ? ['npm', []] : [process.execPath, [npm]];
    const packed = execFileSync(program, [...words, 'pack', NEWER.package, '--silent'], {
      cwd: folder,
      timeout: DOWNLOAD_MS,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const archive = join(folder, packed.trim().split('\n').at(-1));
    const hash = createHash('sha512').update(readFileSync(archive)).digest('base64');
    if (`sha512-${hash}` !== NEWER.integrity)
      throw new Error(`${NEWER.package} does not have its expected hash`);
    execFileSync('tar', ['-xzf', archive, '-C', folder, `package/${own}`]);
    const binding = join(folder, 'package', own);
    // Loads the binding in a process of its own, because a wrong one may end the process.
    execFileSync(process.execPath, ['-e', `process.dlopen({ exports: {} }, ${JSON.stringify(binding)})`], {
      timeout: LOAD_MS,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    copyFileSync(binding, join(FOLDER, own));
    writeFileSync(join(FOLDER, MARK), `${NEWER.package}\n`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

// Node 20 and Node 22 may take turns on a development machine.
const kept = ['115', '127'].includes(versions.modules) ? ['115', '127'].map(fileOf) : [own];
for (const name of readdirSync(FOLDER)) if (!kept.includes(name)) rmSync(join(FOLDER, name));
if (suitsNewer()) {
  try {
    installNewer();
    process.stdout.write(`uWebSockets.js uses the binding of ${NEWER.package}\n`);
  } catch (error) {
    const [reason] = String(error.message).split('\n');
    process.stdout.write(`uWebSockets.js keeps its older binding, or node:http is used: ${reason}\n`);
    if (isRequired) process.exitCode = 1;
  }
}
