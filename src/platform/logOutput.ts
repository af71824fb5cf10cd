/**
 * Where the log goes: a file descriptor, written by the thread pool, so that a reader that stalls holds up nothing.
 * pino's own destination tries for ever, and lets nothing else run, where the last write fails for good: a closed terminal.
 */
import { write, writeSync } from 'node:fs';

/** Bytes that may wait for a reader that stalls; lines beyond them are lost. */
const WAITING_MAX = 4 * 1024 * 1024;
const RETRY_MS = 100;
/** How often the end of the process waits for a reader that stalls. */
const TRIES_AT_EXIT = 10;

export class LogOutput {
  readonly #fd: number;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #isWriting = false;

  /** @param fd stays open as long as the process runs */
  constructor(fd: number) {
    this.#fd = fd;
    process.on('exit', () => this.flushSync());
  }

  /** Writes a line soon. One that can't be written is lost: no terminal, no room on the disk. */
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
    write(this.#fd, bytes, (error, written) => {
      if (isBusy(error)) setTimeout(() => this.#send(bytes), RETRY_MS).unref();
      else if (error === null && written < bytes.length) this.#send(bytes.subarray(written));
      else this.#next();
    });
  }

  /** Writes what waits before it returns: at the end of the process, and after a line that says why it ends. */
  flushSync(): void {
    let bytes = this.#take();
    for (let tries = 0; bytes.length > 0 && tries < TRIES_AT_EXIT; ) {
      try {
        bytes = bytes.subarray(writeSync(this.#fd, bytes));
      } catch (error) {
        if (!isBusy(error)) return;
        tries++;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
      }
    }
  }
}

/** A reader that stalls, not one that is gone. */
function isBusy(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return code === 'EAGAIN' || code === 'EBUSY';
}
