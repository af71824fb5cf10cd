/**
 * Counts how often a copy of the ledger's progress, kept outside both stores (such as the position file),
 * vanishes while a worker runs.
 */
import type { EventEmitter } from '../../engine/processEvents.js';
import { COPY_SETTINGS } from '../../engine/recovery/outsideCopies.store.js';
import type { Metrics } from './metrics.js';

export function registerOutsideCopyMetrics(metrics: Metrics, events: EventEmitter): void {
  const vanished = new Map<string, number>(COPY_SETTINGS.map((setting) => [setting, 0]));
  events.on('OutsideCopyVanished', ({ setting }) => vanished.set(setting, (vanished.get(setting) ?? 0) + 1));
  metrics.counters(
    'spindle_outside_copies_vanished_total',
    'Times that the position file (POSITION_FILE) or the copy of the public log (LOG_COPY_DIR) disappeared while this worker ran. Alert SpindleOutsideCopyVanished at any increase',
    () => [...vanished].map(([setting, value]) => ({ labels: { setting }, value })),
  );
}
