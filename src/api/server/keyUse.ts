/**
 * Periodically writes the last use and the number of uses of each API key to the database. Requests do not
 * wait for these writes.
 */

import { PeriodicService } from '../../platform/runtime/periodicService.js';
import { withTimeout } from '../../platform/runtime/withTimeout.js';
import type { Store } from '../api.store.js';
import type { ServedVersion } from './servedVersion.js';

const WRITE_EVERY_MS = 10_000;
const WRITE_AT_STOP_MS = 500;

export class KeyUse extends PeriodicService {
  readonly name = 'API key use';

  constructor(
    private readonly versions: readonly ServedVersion[],
    private readonly noteKeyUses: Store['apiVersions']['noteUses'],
  ) {
    super({ everyMs: WRITE_EVERY_MS });
  }

  override async stop(): Promise<void> {
    void super.stop();
    await withTimeout(this.turn(), WRITE_AT_STOP_MS).catch(() => {});
  }

  protected async turn(): Promise<void> {
    const uses = this.versions.flatMap((version) => version.takeUses());
    try {
      await this.noteKeyUses(uses);
    } catch (error) {
      for (const version of this.versions) version.putBack(uses);
      throw error;
    }
  }
}
