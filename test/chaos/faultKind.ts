/** What a fault is, and what it is done to. */
import type { ArchivedPostgres } from '../backup/archivedPostgres.js';
import type { Api } from '../support/api.js';
import type { Random } from '../support/random.js';
import type { OwnStores } from '../support/stores.js';
import type { Target } from './records.js';
import type { Fleet } from './services.js';
import type { Witnesses } from './witnesses.js';

export interface Arena {
  readonly folder: string;
  readonly stores: OwnStores;
  readonly fleet: Fleet;
  readonly api: Api;
  /** Undefined where no fault restores Postgres. */
  readonly archived: ArchivedPostgres | undefined;
  readonly targets: readonly Target[];
  /** Of the public log, where a fault of the round needs them. */
  readonly witnesses?: Witnesses | undefined;
}

/** What a fault is done to: two faults at a time are done to different things. */
type Subject = 'service' | 'redis' | 'postgres' | 'redis-cable' | 'postgres-cable' | 'witness';

export interface FaultKind {
  readonly subject: Subject;
  /** It takes what Redis has on its disk: what is acknowledged with ACK=redis and not booked yet may be lost then. */
  readonly destroys?: true;
  /** It restores stores while nothing is spun: to `all` that was booked, or to what was booked at the `backup` before the round. */
  readonly restores?: 'all' | 'backup';
  /** It needs a disk that can be filled. */
  readonly needsDisk?: true;
  /** It needs a Postgres that is backed up. */
  readonly needsArchive?: true;
  /** It needs a quorum of witnesses for the public log. */
  readonly needsWitnesses?: true;
  /** It needs a C compiler. */
  readonly needsCompiler?: true;
  /** Done before the round's first spin. */
  prepare?(arena: Arena): Promise<void>;
  /** Makes the fault, keeps it up for a while, heals it. */
  run(arena: Arena, random: Random): Promise<void>;
}
