/**
 * Writes the log to a file descriptor in the thread pool, so that a reader that stalls delays nothing. If
 * writes fail permanently, as with a closed terminal, pino's own destination would retry without end and
 * block everything else.
 */
import { write, writeSync } from 'node:fs';

/** Maximum number of bytes that wait for a reader that stalls. Further lines are lost. */
const WAITING_MAX = 4 * 1024 * 1024;
const RETRY_MS = 100;
/** Number of attempts, when the process ends, to write to a reader that stalls. */
const TRIES_AT_EXIT = 10;

export class LogOutput {
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #isWriting = false;

  /** @param fd file descriptor that stays open as long as the process runs */
  constructor(private readonly fd: number) {
    process.on('exit', () => this.flushSync());
  }

  /**
   * Writes a line asynchronously. A line that can't be written is lost, for example without a terminal or
   * with a full disk.
   */
  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#waitingBytes + bytes.length > WAITING_MAX) return;
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (!this.#isWriting) this.#next();
  }

  #next(): void {
    this.#isWriting = this.#waiting.length > 0;
    if (this.#isWriting) this.#send(this.#take());
  }

  #take(): Buffer {
    const all = Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#waitingBytes = 0;
    return all;
  }

  #send(bytes: Buffer): void {
    write(this.fd, bytes, (error, written) => {
      if (isBusy(error)) setTimeout(() => this.#send(bytes), RETRY_MS).unref();
      else if (error === null && written < bytes.length) this.#send(bytes.subarray(written));
      else this.#next();
    });
  }

  /**
   * Writes all waiting lines before it returns. The function is called at the end of the process, and after a
   * line that says why the process ends.
   */
  flushSync(): void {
    let bytes = this.#take();
    for (let tries = 0; bytes.length > 0 && tries < TRIES_AT_EXIT; ) {
      try {
        bytes = bytes.subarray(writeSync(this.fd, bytes));
      } catch (error) {
        if (!isBusy(error)) return;
        tries++;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
      }
    }
  }
}

/** Returns whether a write failed because the reader stalls, not because it has gone. */
function isBusy(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return code === 'EAGAIN' || code === 'EBUSY';
}
