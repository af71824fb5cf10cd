/** Runs a built image with Podman, with what Compose gives a container of the service; it shares this machine's network. */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Container, ImageConfig } from './container.js';

/** As docker-compose.yml has it for a process of the service. */
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
/** Podman asks for more than a machine may allow it, and systemd for its clock of health checks: the test asks for health itself. */
const WITHOUT_MORE = ['--no-healthcheck', '--ulimit', 'nproc=1000:1000'];
const ALONE = ['--cgroup-manager', 'cgroupfs', '--events-backend', 'file'];

/**
 * @param engine Podman's program and its options, such as `podman --runtime runc`
 * @param place where buildah keeps the image: `--root DIR --runroot DIR`
 * @returns starts a container of the image
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
