/**
 * Runs a built image without a container engine, as Compose and Kubernetes would: with its own root folder,
 * read-only except `/tmp` and volumes, with its own process ids and user, and without capabilities. The
 * container uses this machine's network.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';

/** The used fields of the output of `buildah inspect`. */
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
  /**
   * Runs a program in the container, as `docker exec` does.
   * @returns its standard output
   * @throws Error if the program fails
   */
  exec(...command: string[]): Promise<string>;
  /** The status of the container's first process, as Linux reports it: `Uid`, `CapEff`, `NoNewPrivs`, …. */
  status(): Map<string, string>;
  signal(signal: NodeJS.Signals): void;
  /** Ends the container at once if it still runs. */
  end(): void;
}

/** User id of the user `node` in the image. */
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
 * @param root the folder where the image is mounted
 * @param volumes volumes as `FOLDER:PATH_INSIDE`
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
  /** Process id of the first process in the container, which is the only child of unshare. */
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
