/**
 * Runs a built image without a container engine, as Compose and Kubernetes would: its own root, read only but for `/tmp` and its
 * volumes, process ids of its own, its user, no capabilities and no way to new ones. It shares this machine's network.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';

/** Of `buildah inspect`, as far as it is used. */
export interface ImageConfig {
  readonly Env: readonly string[];
  readonly Cmd: readonly string[];
  readonly WorkingDir: string;
  readonly User: string;
  readonly StopSignal: NodeJS.Signals;
  readonly Healthcheck: { readonly Test: readonly string[] };
}

export interface Container {
  readonly process: ChildProcess;
  /** Runs a program in it, as `docker exec` does. @returns its standard output @throws Error where it fails */
  exec(...command: string[]): Promise<string>;
  /** What Linux says of its first process: `Uid`, `CapEff`, `NoNewPrivs`, …. */
  status(): Map<string, string>;
  signal(signal: NodeJS.Signals): void;
  /** Ends it at once, where it still runs. */
  end(): void;
}

/** The user `node` of the image. */
const USER = '1000';
const UNPRIVILEGED = [
  ...['setpriv', '--reuid', USER, '--regid', USER, '--clear-groups', '--no-new-privs'],
  ...['--inh-caps=-all', '--bounding-set=-all', '--'],
];
const SET_UP = `
set -e
mount --bind "$1" "$1"
for volume in $2; do mount --bind "\${volume%%:*}" "$1\${volume#*:}"; done
mount -o remount,bind,ro "$1"
mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
root=$1
shift 2
exec chroot "$root" "$@"`;

/**
 * @param root where the image is mounted
 * @param volumes `FOLDER:PATH_INSIDE`
 */
export function startContainer(
  root: string,
  config: ImageConfig,
  { environment, volumes = [] }: { environment: Record<string, string>; volumes?: string[] },
): Container {
  const given = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const inside = [...UNPRIVILEGED, 'env', '-i', '-C', config.WorkingDir, ...config.Env, ...given];
  const alone = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private'];
  const child = spawn(
    'unshare',
    [...alone, 'sh', '-c', SET_UP, 'sh', root, volumes.join(' '), ...inside, ...config.Cmd],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  /** The first process inside: the only child of unshare. */
  const pid = (): number =>
    Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim());
  return {
    process: child,
    exec: async (...command) => {
      const into = ['--target', String(pid()), '--mount', '--pid', '--root'];
      const { stdout } = await promisify(execFile)('nsenter', [...into, '--', ...inside, ...command]);
      return stdout;
    },
    status: () =>
      new Map(
        readFileSync(`/proc/${pid()}/status`, 'utf8')
          .split('\n')
          .map((line) => line.split(/:\s+/) as [string, string]),
      ),
    signal: (signal) => void process.kill(pid(), signal),
    end: () => void child.kill('SIGKILL'),
  };
}
