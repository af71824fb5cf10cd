/** Shows the progress of a long command: an updated bar on a terminal, otherwise an occasional line. */
import type { WriteStream } from 'node:tty';

const BAR_CHARACTERS = 30;
const TERMINAL_MS = 100;
const LINES_MS = 5000;
const CLEAR_LINE = '\r\x1b[K';

export class Progress {
  readonly #isTerminal: boolean;
  #phase = '';
  #phaseStarted = 0;
  #shownAt = performance.now();
  #isDrawn = false;

  constructor(private readonly stream: NodeJS.WritableStream & Partial<Pick<WriteStream, 'isTTY'>>) {
    this.#isTerminal = stream.isTTY === true;
  }

  /** @param total total number of items, or 0 if unknown */
  show(phase: string, done: number, total: number): void {
    const now = performance.now();
    if (phase !== this.#phase) {
      this.#phase = phase;
      this.#phaseStarted = now;
      if (this.#isTerminal) this.#shownAt = 0;
    }
    if (now - this.#shownAt < (this.#isTerminal ? TERMINAL_MS : LINES_MS)) return;
    this.#shownAt = now;
    const line = progressLine(phase, done, total, (now - this.#phaseStarted) / 1000);
    this.stream.write(this.#isTerminal ? `${CLEAR_LINE}${line}` : `${line}\n`);
    this.#isDrawn = this.#isTerminal;
  }

  end(): void {
    if (this.#isDrawn) this.stream.write(CLEAR_LINE);
    this.#isDrawn = false;
  }
}

export function progressLine(phase: string, done: number, total: number, seconds: number): string {
  const count = done.toLocaleString('en');
  const pace = seconds > 0.5 && done > 0 ? `  ${Math.round(done / seconds).toLocaleString('en')}/s` : '';
  if (total === 0) return `${phase.padEnd(14)} ${done === 0 ? '…' : count}${pace}`;
  const share = Math.min(1, done / total);
  const filled = Math.round(share * BAR_CHARACTERS);
  const bar = '█'.repeat(filled) + '░'.repeat(BAR_CHARACTERS - filled);
  const percent = `${Math.floor(share * 100)} %`.padStart(5);
  return `${phase.padEnd(14)} ${bar} ${percent}  ${count} of ${total.toLocaleString('en')}${pace}`;
}
