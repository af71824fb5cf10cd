/**
 * Announces to the other processes what this one read of the catalog, and hears what they read, so that one of all polls Postgres.
 *
 *   one process ──poll──> Postgres          the others ──hear of nothing new──> put their own poll off
 *        └──what it found──> Redis ──────────────┘  └──hear of something new, or nothing at all──> read Postgres
 *
 * A process that hears nothing, because nobody announces anything or its connection is broken, polls as if it were alone, and announces to
 * others. What was announced while a connection was broken is read once it is there again.
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
  /** Called with each failure of a connection. */
  readonly onError: (error: Error) => void;
}

export class CatalogAnnouncements implements Service {
  readonly name = 'catalog announcements';
  readonly #options: AnnouncementsOptions;
  #end: (() => void) | undefined;

  constructor(options: AnnouncementsOptions) {
    this.#options = options;
  }

  /** Does not wait until something can be heard. */
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
