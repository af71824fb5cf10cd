/** Notes when each API key was last used; written down from time to time, since that is not worth a wait. */
import type { Store } from '../postgres/store.js';
import { PeriodicService } from '../runtime/periodicService.js';
import { withTimeout } from '../runtime/withTimeout.js';

const WRITE_EVERY_MS = 10_000;
const WRITE_AT_STOP_MS = 500;

export class KeyUse extends PeriodicService {
  readonly name = 'API key use';
  readonly #touchKeys: Store['touchKeys'];
  /** By key: milliseconds since the epoch. */
  #used = new Map<number, number>();

  constructor(touchKeys: Store['touchKeys']) {
    super({ everyMs: WRITE_EVERY_MS, firstAfterMs: WRITE_EVERY_MS });
    this.#touchKeys = touchKeys;
  }

  note(keyId: number): void {
    this.#used.set(keyId, Date.now());
  }

  override async stop(): Promise<void> {
    void super.stop();
    await withTimeout(this.turn(), WRITE_AT_STOP_MS).catch(() => {});
  }

  protected async turn(): Promise<void> {
    const used = this.#used;
    this.#used = new Map();
    await this.#touchKeys(new Map([...used].map(([keyId, atMs]) => [keyId, new Date(atMs)])));
  }

  /** The next use of a key is noted all the same. */
  protected onTurnFailed(): void {}
}
