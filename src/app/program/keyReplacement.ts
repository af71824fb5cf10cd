/**
 * Ensures that nothing in Postgres stays sealed with a replaced key. A start reseals everything with the
 * newest key, but a process that still runs with another key continues to seal with it. So everything is
 * resealed again once no such process is left.
 *
 *   start: keys recorded ──> all resealed ──> do others seal with another key? ──no──> nothing to do
 *                                                │ yes: logged
 *                                                └─> they have ended ──> all resealed, logged
 */
import type { SecretBox } from '../../domain/secretBox.js';
import { type EventEmitter, taskFailed } from '../../engine/processEvents.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import { SetupError } from '../embedded/index.js';
import { noteSealingKeys, type OtherSealer, type SealingKeys } from './sealingKeys.store.js';

/**
 * Interval of the checks, in ms: the interval at which processes report that they run. Only the time until
 * everything is resealed after the end of a process depends on it.
 */
const EVERY_MS = 5000;

export interface KeyReplacementOptions {
  readonly processId: string;
  /** Keys that seal blocks. */
  readonly seeds: SecretBox;
  /** Keys for webhook secrets, and for the log's signing key if it is in Postgres. */
  readonly secrets: SecretBox;
  /** Reseals everything with the newest keys. */
  readonly sealAll: () => Promise<void>;
  readonly events: EventEmitter;
}

export class KeyReplacement extends PeriodicService {
  readonly name = 'key replacement';
  readonly #sql: Sql;
  readonly #options: KeyReplacementOptions;
  readonly #keys: SealingKeys;
  /**
   * Running processes that seal with another key, as last reported. Undefined if nothing that they sealed is
   * left.
   */
  #others: string | undefined;

  constructor(sql: Sql, options: KeyReplacementOptions) {
    super({ everyMs: EVERY_MS }, taskFailed(options.events, 'key replacement'));
    this.#sql = sql;
    this.#options = options;
    this.#keys = { seeds: options.seeds.keyId, secrets: options.secrets.keyId };
  }

  /**
   * Records the keys and reseals everything.
   * @throws SetupError if a key is missing that was used in this database or is used by a running process
   */
  override async start(): Promise<void> {
    const { seeds, secrets, sealAll } = this.#options;
    const others = await this.#look();
    for (const { name, ...keys } of others) {
      assertOpens(seeds, keys.seeds, `SEEDS_KEY`, name);
      assertOpens(secrets, keys.secrets, 'WEBHOOK_SECRETS_KEY', name);
    }
    await sealAll();
    await super.start();
  }

  protected async turn(): Promise<void> {
    const before = this.#others;
    const others = await this.#look();
    if (before === undefined || others.length > 0) return;
    await this.#options.sealAll();
    this.#others = undefined;
    this.#options.events.emit('KeysReplaced', {});
  }

  /** Records the keys of this process and reports running processes that seal with another key. */
  async #look(): Promise<OtherSealer[]> {
    const others = await noteSealingKeys(this.#sql, this.#options.processId, this.#keys);
    const names = others.map(({ name }) => name).join('; ');
    if (others.length > 0 && names !== this.#others) {
      this.#others = names;
      this.#options.events.emit('KeysDiffer', { processes: names });
    }
    return others;
  }
}

function assertOpens(box: SecretBox, keyId: string | undefined, setting: string, process: string): void {
  if (keyId === undefined || box.opens(keyId)) return;
  throw new SetupError(
    `${setting} does not contain the key ${keyId}, which a running process uses to encrypt (${process}). Restart that process with the new key first.`,
  );
}
