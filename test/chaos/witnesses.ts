/**
 * Runs three witnesses of the public log as separate processes (`spindle witness`). Two of them make the
 * quorum.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../src/app/embedded/index.js';
import { signerKeyOf, signerOf, vkeyOf } from '../../src/domain/publicLog/notes.js';
import { cliOf, ROOT } from '../support/root.js';
import { FOLDER_VARIABLE } from '../support/runFolder.js';
import { until } from '../support/wait.js';

const WITNESSES = 3;
const READY_WITHIN_MS = 30_000;

class WitnessProcess {
  #child: ChildProcess | undefined;

  constructor(
    private readonly args: readonly string[],
    private readonly environment: NodeJS.ProcessEnv,
    private readonly url: string,
  ) {}

  async start(): Promise<void> {
    const cli = cliOf(ROOT);
    const child = spawn(process.execPath, [cli, 'witness', ...this.args], {
      env: this.environment,
      stdio: 'ignore',
    });
    this.#child = child;
    const answers = (): Promise<boolean> =>
      fetch(this.url).then(
        () => true,
        () => false,
      );
    await until(answers, 'a witness answers', READY_WITHIN_MS);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  freeze(): void {
    this.#child?.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child?.kill('SIGCONT');
  }
}

export class Witnesses {
  private constructor(
    readonly all: readonly WitnessProcess[],
    /** File name for LOG_POLICY. */
    readonly policy: string,
  ) {}

  /**
   * Starts new witnesses without a stored checkpoint.
   * @param log text of `/log/policy` with the log's key
   */
  static async start(folder: string, log: string): Promise<Witnesses> {
    const home = join(folder, `witnesses-${randomBytes(4).toString('hex')}`);
    await mkdir(home);
    const known = join(home, 'log');
    const key = log.split('\n').find((line) => line.startsWith('log '))!;
    await writeFile(known, `${key}\nquorum none\n`);
    const lines: string[] = [];
    const all: WitnessProcess[] = [];
    for (let n = 1; n <= WITNESSES; n++) {
      const signer = signerOf(`witness.example/w${n}`, 'witness', randomBytes(32));
      const file = join(home, `key-${n}`);
      await writeFile(file, signerKeyOf(signer));
      const listen = `127.0.0.1:${await freePort()}`;
      const args = ['--policy', known, '--key', file, '--state', join(home, `${n}`), '--listen', listen];
      const environment = { PATH: process.env.PATH, HOME: process.env.HOME, [FOLDER_VARIABLE]: folder };
      all.push(new WitnessProcess(args, environment, `http://${listen}/`));
      lines.push(`witness w${n} ${vkeyOf(signer)} http://${listen}`);
    }
    await Promise.all(all.map((witness) => witness.start()));
    const policy = join(home, 'policy');
    await writeFile(policy, `${lines.join('\n')}\ngroup two 2 w1 w2 w3\nquorum two\n`);
    return new Witnesses(all, policy);
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((witness) => witness.kill()));
  }
}
