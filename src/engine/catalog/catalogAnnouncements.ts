/**
 * Announces to other processes the catalog state that this process read, and receives their announcements, so
 * that only one process polls Postgres.
 *
 *   one process ──poll──> Postgres       the others ──hear of nothing new──> postpone their own poll
 *        └──what it found──> Redis ───────────┘  └──hear of something new, or nothing at all──> read Postgres
 *
 * A process that hears nothing, because nobody announces anything or its connection is broken, polls as if it
 * were alone and announces its results. After a broken connection is restored, the process polls once,
 * because it may have missed announcements.
 */
import { randomBytes } from 'node:crypto';
import { HEALTHY, type Health, type Service } from '../../platform/runtime/service.js';
import type { EventEmitter } from '../processEvents.js';
import type { RedisNodes } from '../redis/nodes.js';
import type { Catalog } from './catalog.js';
import type { Staleness } from './staleness.js';

const READER_BYTES = 9;

export interface AnnouncementsOptions {
  readonly catalog: Pick<Catalog, 'heard' | 'pollNow'>;
  readonly staleness: Pick<Staleness, 'heard'>;
  readonly nodes: RedisNodes;
  readonly datasetId: string;
  readonly events: EventEmitter;
  /** Called on each failure of the connection over which announcements are heard. */
  readonly onError: (error: Error) => void;
}

export class CatalogAnnouncements implements Service {
  readonly name = 'catalog announcements';
  readonly #options: AnnouncementsOptions;
  #end: (() => void) | undefined;

  constructor(options: AnnouncementsOptions) {
    this.#options = options;
  }

  /** Starts listening, without waiting for the connection. */
  async start(): Promise<void> {
    const { catalog, staleness, nodes, datasetId, events, onError } = this.#options;
    const reader = randomBytes(READER_BYTES).toString('base64url');
    events.on('CatalogRead', (state) => nodes.announceCatalog({ reader, datasetId, ...state }));
    const pollNow = (): void => catalog.pollNow();
    this.#end = nodes.listenCatalog(
      (read) => {
        if (read.datasetId !== datasetId || read.reader === reader) return;
        staleness.heard(read.newestRestriction);
        catalog.heard(read);
      },
      { onHearing: pollNow, onDeaf: pollNow, onError },
    );
  }

  async stop(): Promise<void> {
    this.#end?.();
  }

  health(): Health {
    return HEALTHY;
  }
}
