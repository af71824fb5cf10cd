/**
 * Whether a server keeps what it has committed. Each session sets `synchronous_commit` for itself (sessionSettings.ts), unless a pooler shares
 * it; `fsync` and `full_page_writes` are the server's, and can be changed while it runs (postgresDurabilityWatch.ts).
 */

const WEAK_COMMITS = ['off', 'local'];

/** `on` in place of what doesn't wait for the disk, or not for the standbys; what waits for more stays. */
export const ownCommit = `CASE WHEN current_setting('synchronous_commit') IN ('${WEAK_COMMITS.join("', '")}')
  THEN 'on' ELSE current_setting('synchronous_commit') END`;

/** The settings as they are, `synchronous_commit` by an expression. */
export const settingsSql = (commit: string): string =>
  `SELECT ${commit} AS synchronous_commit, current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes`;

export const SETTINGS_SQL = settingsSql("current_setting('synchronous_commit')");

/** A row of the statements above. */
export interface DurableSettings {
  readonly synchronous_commit: string;
  readonly fsync: string;
  readonly full_page_writes: string;
}

/** The settings that let a server lose what it has committed; none: it keeps everything. */
const volatileOf = (settings: DurableSettings): string[] =>
  (['fsync', 'full_page_writes', 'synchronous_commit'] as const).flatMap((name) => {
    const value = settings[name];
    return value === 'off' || WEAK_COMMITS.includes(value) ? [`${name} ${value}`] : [];
  });

/** What the connections of a process have found. */
export class PostgresDurability {
  readonly #onChanged: (volatile: readonly string[]) => void;
  #volatile: readonly string[] = [];

  constructor(onChanged: (volatile: readonly string[]) => void) {
    this.#onChanged = onChanged;
  }

  /** While the server does not answer, what was found last holds. */
  get volatile(): readonly string[] {
    return this.#volatile;
  }

  /** Each new connection tells what it finds: a server that was started again with other settings is known before it is written to. */
  note(settings: DurableSettings): void {
    const found = volatileOf(settings);
    if (found.join() === this.#volatile.join()) return;
    this.#volatile = found;
    this.#onChanged(found);
  }
}

/** The server may lose what is committed: nothing is written that would be acknowledged for it. */
export class VolatilePostgresError extends Error {
  constructor(volatile: readonly string[]) {
    super(`Postgres may lose what it commits: ${volatile.join('; ')}`);
  }
}
