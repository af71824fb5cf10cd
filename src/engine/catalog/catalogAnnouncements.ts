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
 *
 * While no other process listens, the same state is announced only every {@link ALONE_EVERY_MS}. A process
 * that starts to listen hears nothing at first, so it polls and announces, and the number of its listeners
 * shows it that it is not alone.
 */
import { randomBytes } from 'node:crypto';
import { HEALTHY, type Health, type Service } from '../../platform/runtime/service.js';
import type { EventEmitter } from '../processEvents.js';
import type { RedisNodes } from '../redis/nodes.js';
import type { Catalog } from './catalog.js';
import type { CatalogState } from './catalog.store.js';
import type { Staleness } from './staleness.js';

const READER_BYTES = 9;
/** Interval of announcements that no other process has received, in ms. */
const ALONE_EVERY_MS = 5000;

export class CatalogAnnouncements implements Service {
  readonly name = 'catalog announcements';
  readonly #reader = randomBytes(READER_BYTES).toString('base64url');
  #end: (() => void) | undefined;
  /** Whether the newest announcement reached no other process. */
  #isAlone = false;
  #announced: CatalogState | undefined;
  #announcedAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly options: {
      readonly catalog: Pick<Catalog, 'heard' | 'pollNow'>;
      readonly staleness: Pick<Staleness, 'heard'>;
      readonly nodes: RedisNodes;
      readonly datasetId: string;
      readonly events: EventEmitter;
      /** Called on each failure of the connection over which announcements are heard. */
      readonly onError: (error: Error) => void;
    },
  ) {}

  /** Starts listening, without waiting for the connection. */
  async start(): Promise<void> {
    const { catalog, staleness, nodes, datasetId, events, onError } = this.options;
    events.on('CatalogRead', (state) => void this.#announce(state));
    const pollNow = (): void => catalog.pollNow();
    this.#end = nodes.listenCatalog(
      (read) => {
        if (read.datasetId !== datasetId || read.reader === this.#reader) return;
        this.#isAlone = false;
        staleness.heard(read.newestRestriction);
        catalog.heard(read);
      },
      { onHearing: pollNow, onDeaf: pollNow, onError },
    );
  }

  async stop(): Promise<void> {
    this.#end?.();
  }

  async #announce(state: CatalogState): Promise<void> {
    const { nodes, datasetId } = this.options;
    const nowMs = performance.now();
    const isRecent = nowMs - this.#announcedAtMs < ALONE_EVERY_MS;
    if (this.#isAlone && isRecent && isSame(state, this.#announced)) return;
    this.#announced = state;
    this.#announcedAtMs = nowMs;
    this.#isAlone = !(await nodes.announceCatalog({ reader: this.#reader, datasetId, ...state }));
  }

  health(): Health {
    return HEALTHY;
  }
}

const isSame = (a: CatalogState, b: CatalogState | undefined): boolean =>
  a.newest === b?.newest && a.newestRestriction === b.newestRestriction && a.digest === b.digest;
