/**
 * Makes the base image of a Dockerfile from Debian packages and from Node in npm's registry if no image can
 * be pulled. It has the same Debian, Node, npm and user as `node:VERSION-SUITE-slim`.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The major version of npm in the published image of Node 24. */
const NPM = 'npm@11';
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/**
 * @param image for example `node:24.21.0-trixie-slim`
 * @param buildah runs buildah and returns its output
 * @returns the name of the image
 */
export function imageBase(image: string, buildah: (...args: string[]) => string): string {
  const [, version, suite] = /^node:(\d+\.\d+\.\d+)-(\w+)-slim$/.exec(image)!;
  const name = `localhost/spindle-base:${version}-${suite}`;
  if (buildah('images', '--format', '{{.Name}}:{{.Tag}}').split('\n').includes(name)) return name;
  const folder = mkdtempSync(join(tmpdir(), 'spindle-base-'));
  const root = join(folder, 'root');
  const run = (program: string, ...args: string[]): string =>
    execFileSync(program, args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const packages = ['--variant=minbase', '--include=ca-certificates'];
    run('debootstrap', ...packages, suite!, root);
    const machine = { x64: 'x64', arm64: 'arm64' }[process.arch as string];
    for (const [what, from, to] of [
      [`node-linux-${machine}@${version}`, 'package/bin/node', '/usr/local/bin/node'],
      [NPM, 'package', '/usr/local/lib/node_modules/npm'],
    ] as const) {
      run('tar', 'xzf', run('npm', 'pack', what, '--silent').trim(), 'package');
      mkdirSync(join(root, to, '..'), { recursive: true });
      run('mv', from, join(root, to));
      rmSync(join(folder, 'package'), { recursive: true, force: true });
    }
    for (const tool of ['npm', 'npx'])
      symlinkSync(`../lib/node_modules/npm/bin/${tool}-cli.js`, join(root, 'usr/local/bin', tool));
    // The build uses the same registry and certificates as this machine.
    if (existsSync(CERTIFICATES)) run('cp', CERTIFICATES, join(root, CERTIFICATES));
    mkdirSync(join(root, 'usr/local/etc'), { recursive: true });
    const registry = run('npm', 'config', 'get', 'registry').trim();
    writeFileSync(
      join(root, 'usr/local/etc/npmrc'),
      `cafile=${CERTIFICATES}\nregistry=${registry}\nupdate-notifier=false\n`,
    );
    run('chroot', root, 'groupadd', '--gid', '1000', 'node');
    run('chroot', root, 'useradd', '--uid', '1000', '--gid', 'node', '--create-home', 'node');
    const container = buildah('from', 'scratch').trim();
    run('sh', '-c', `rm -rf root/var/cache/apt/* root/var/lib/apt/lists/*`);
    buildah('copy', '--quiet', container, root, '/');
    const path = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
    buildah('config', '--env', path, '--cmd', '["node"]', container);
    buildah('commit', '--quiet', '--rm', container, name);
    return name;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
