/** Defines a kind of fault and its targets. */
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
  /** Postgres with an archived WAL. Undefined if no fault of the run restores Postgres. */
  readonly archived: ArchivedPostgres | undefined;
  readonly targets: readonly Target[];
  /** Witnesses of the public log, if a fault of the round needs them. */
  readonly witnesses?: Witnesses | undefined;
}

/** Target of a fault. Two simultaneous faults have different targets. */
type Subject = 'service' | 'redis' | 'postgres' | 'redis-cable' | 'postgres-cable' | 'witness';

export interface FaultKind {
  readonly subject: Subject;
  /**
   * True if the fault destroys the data of Redis on its disk. Spins that were acknowledged with ACK=redis and
   * are not committed may then be lost.
   */
  readonly destroys?: true;
  /**
   * Set if the fault restores stores while no spin is played: to all committed entries (`all`), or to the
   * entries committed at the backup before the round (`backup`).
   */
  readonly restores?: 'all' | 'backup';
  readonly needsDisk?: true;
  readonly needsArchive?: true;
  readonly needsWitnesses?: true;
  readonly needsCompiler?: true;
  /** Runs before the first spin of the round. */
  prepare?(arena: Arena): Promise<void>;
  /** Causes the fault, maintains it for a while, and heals it. */
  run(arena: Arena, random: Random): Promise<void>;
}
