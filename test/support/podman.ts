/**
 * Runs a built image with Podman, with the options that Compose gives a container of the service. The
 * container uses this machine's network.
 */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Container, ImageConfig } from './container.js';

/** Options for a container of the service in docker-compose.yml. */
const LIKE_COMPOSE = [
  ...['--network', 'host', '--user', '1000:1000', '--read-only', '--tmpfs', '/tmp'],
  ...[
    '--cap-drop',
    'all',
    '--security-opt',
    'no-new-privileges:true',
    '--memory',
    '1g',
    '--pids-limit',
    '64',
  ],
];
/**
 * Options that avoid features which a machine may forbid, such as systemd timers for health checks. The test
 * checks the health by itself.
 */
const WITHOUT_MORE = ['--no-healthcheck', '--ulimit', 'nproc=1000:1000'];
const ALONE = ['--cgroup-manager', 'cgroupfs', '--events-backend', 'file'];

/**
 * @param engine Podman's program and its options, such as `podman --runtime runc`
 * @param place the location of the image in buildah: `--root DIR --runroot DIR`
 * @returns a function that starts a container of the image
 */
export function podman(engine: string, place: readonly string[], image: string) {
  const [program, ...given] = engine.split(' ') as [string, ...string[]];
  const options = [...given, ...place, ...ALONE];
  const hardLimit = execFileSync('sh', ['-c', 'ulimit -H -n'], { encoding: 'utf8' }).trim();

  return (
    config: ImageConfig,
    { environment, volumes = [] }: { environment: Record<string, string>; volumes?: string[] },
  ): Container => {
    const name = `spindle-test-${randomBytes(4).toString('hex')}`;
    const set = Object.entries(environment).flatMap(([key, value]) => ['--env', `${key}=${value}`]);
    const mounted = volumes.flatMap((volume) => ['--volume', volume]);
    const limits = [...WITHOUT_MORE, '--ulimit', `nofile=${hardLimit}:${hardLimit}`];
    const run = ['run', '--rm', '--name', name, '--pull', 'never', ...LIKE_COMPOSE, ...limits];
    const child = spawn(program, [...options, ...run, ...set, ...mounted, image, ...config.Cmd], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ask = (...args: string[]): string =>
      execFileSync(program, [...options, ...args], { encoding: 'utf8' }).trim();
    return {
      process: child,
      exec: async (...command) =>
        (await promisify(execFile)(program, [...options, 'exec', name, ...command])).stdout,
      status: () => {
        const pid = ask('inspect', '--format', '{{.State.Pid}}', name);
        const lines = readFileSync(`/proc/${pid}/status`, 'utf8').split('\n');
        return new Map(lines.map((line) => line.split(/:\s+/) as [string, string]));
      },
      signal: (signal) => void ask('kill', '--signal', signal, name),
      end: () => void ask('rm', '--force', '--ignore', '--time', '0', name),
    };
  };
}
