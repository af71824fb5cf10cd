/**
 * Checks that the running program is the built program. Its files are compared with `manifest.sha256`, and
 * the scripts loaded into Redis with the files of lua/. The program itself is checked before anything is
 * dealt, and the installed packages within a minute. Both are checked again daily at 03:30 UTC
 * (PROGRAM_CHECK_CRON; docs/operations.md, "The program check").
 */
import { setImmediate } from 'node:timers/promises';
import { MANIFEST, type ProgramFound, type ProgramPart } from '../../../workers/checkProgram.js';
import { type ProgramIdentity, recordProgramCheck } from '../../api/programChecks/programChecks.store.js';
import type { ProgramDifference } from '../../domain/programCheck.js';
import { type EventEmitter, taskFailed } from '../../engine/processEvents.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';
import { nextMoment } from '../../platform/runtime/cron.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';

const LOOK_EVERY_MS = 5000;
const DIFFERENCES_MAX = 100;
/** Maximum number of paths named in a message for people. */
const NAMED = 5;
const LUA = 'lua/';
type Part = 'program' | 'packages';

/**
 * Thrown if program files differ from the build's list and the setting PROGRAM_CHANGED is `stop`, so the
 * process must end before it deals anything.
 */
export class ProgramChangedError extends Error {}

/** Compares files of the program with their manifest. */
export type CheckFiles = (part: ProgramPart) => Promise<ProgramFound>;

export class ProgramChecker extends PeriodicService {
  readonly name = 'program check';
  /** Differences found by the newest check of each part. A part without differences is absent. */
  readonly #differing = new Map<Part, readonly ProgramDifference[]>();
  #manifest: string | null = null;
  /** True if the packages have been checked once, or if there is no list to compare them with. */
  #hasPackages = false;
  #dueMs: number;

  /**
   * @param first result of the check of the program's own files, which was started while the stores were
   * opened
   */
  constructor(
    private readonly options: {
      readonly sql: Sql;
      readonly nodes: Pick<RedisNodes, 'all'>;
      readonly checkFiles: CheckFiles;
      readonly host: string;
      readonly version: string;
      /** Roles of the process, such as `http,worker`. */
      readonly roles: string;
      /** Time of the daily check: a cron expression with five fields, UTC. */
      readonly cron: string;
      /** Delay between the start and the check of the packages, in ms: at most a minute. */
      readonly packagesAfterMs: number;
      /** Reaction to differing files: with `stop` the process deals no outcomes. */
      readonly onChanged: 'alert' | 'stop';
      readonly operatorEmail: string | undefined;
      /** Returns the current time in ms since the epoch. */
      readonly now: () => number;
      readonly events: EventEmitter;
    },
    private readonly first: Promise<ProgramFound>,
  ) {
    super(
      { everyMs: LOOK_EVERY_MS, firstAfterMs: options.packagesAfterMs },
      taskFailed(options.events, 'program check'),
    );
    this.#dueMs = nextMoment(options.cron, options.now());
  }

  /** @throws ProgramChangedError if the program differs and must not run */
  override async start(): Promise<void> {
    const found = await this.first;
    this.#manifest = found.manifest;
    this.#hasPackages = found.manifest === null;
    await this.#note('program', found, true);
    if (this.problem !== undefined) throw new ProgramChangedError(this.problem);
    await super.start();
  }

  /** Version of the build and hash of its file list; the hash is null if there is no list. */
  get identity(): ProgramIdentity {
    return { version: this.options.version, manifest: this.#manifest };
  }

  /**
   * Result of the newest checks: 1 if all files match the build's list, 0 if some differ, -1 if there is no
   * list.
   */
  get verified(): 1 | 0 | -1 {
    if (this.#differing.size > 0) return 0;
    return this.#manifest === null ? -1 : 1;
  }

  /**
   * Reason, as text for people, why nothing may be dealt. Undefined if dealing is allowed, also if
   * differences only cause an alert.
   */
  get problem(): string | undefined {
    if (this.options.onChanged !== 'stop' || this.verified !== 0) return undefined;
    const differences = [...this.#differing.values()].flat();
    const more = differences.length > NAMED ? ` and ${differences.length - NAMED} more` : '';
    const paths = differences.slice(0, NAMED).map(({ path }) => path);
    return `Files of the program differ from its build, and PROGRAM_CHANGED is stop: ${paths.join(', ')}${more}`;
  }

  protected async turn(): Promise<void> {
    const { checkFiles, cron, now } = this.options;
    const nowMs = now();
    const isDue = nowMs >= this.#dueMs;
    if (isDue) await this.#note('program', await checkFiles('program'), false);
    if (isDue || !this.#hasPackages) await this.#note('packages', await checkFiles('packages'), false);
    this.#hasPackages = true;
    if (isDue) this.#dueMs = nextMoment(cron, nowMs);
  }

  /**
   * The state in memory is updated first, so that differences are known even if writing to Postgres fails.
   */
  async #note(part: Part, found: ProgramFound, isStart: boolean): Promise<void> {
    const { sql, host, roles, version, operatorEmail, events } = this.options;
    const { manifest, files } = found;
    const differences: ProgramDifference[] = [...found.differences];
    let { differing } = found;
    const add = (path: string, what: ProgramDifference['what']): void => {
      if (differences.length < DIFFERENCES_MAX) differences.push({ path, what });
      differing++;
    };
    // Someone who changes files may also replace the list, so a changed list is reported as a difference.
    if (manifest !== this.#manifest) add(MANIFEST, manifest === null ? 'MISSING' : 'CHANGED');
    const scripts = part === 'program' ? await this.#scriptsRead() : new Map<string, boolean>();
    const isLuaListed = !differences.some(({ path }) => path.startsWith(LUA));
    for (const [name, isSame] of scripts) if (isLuaListed && !isSame) add(`${LUA}${name}.lua`, 'LOADED');
    if (differing > 0) this.#differing.set(part, differences);
    else this.#differing.delete(part);
    events.emit('ProgramChecked', { part, manifest: this.#manifest, files, differing, differences });
    await recordProgramCheck(
      sql,
      {
        host,
        roles,
        part,
        isStart,
        version,
        manifest: this.#manifest,
        files,
        scripts: scripts.size,
        differing,
        differences,
      },
      operatorEmail,
    );
  }

  /**
   * Returns, by script, whether the files of lua/ match the loaded scripts. The scripts are compared one at a
   * time, so that a dealing process is not blocked for long.
   */
  async #scriptsRead(): Promise<Map<string, boolean>> {
    const same = new Map<string, boolean>();
    for (const node of this.options.nodes.all) {
      for (const { name, isSame } of node.scriptsRead()) {
        same.set(name, isSame && same.get(name) !== false);
        await setImmediate();
      }
    }
    return same;
  }
}
