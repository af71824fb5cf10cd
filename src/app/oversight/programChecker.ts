/**
 * Checks that the program which runs is the one that was built: its files against `manifest.sha256`, and the scripts that Redis runs
 * for it against the files of lua/. The program itself before anything is dealt, the packages beside it within a minute, and all of it
 * every day at 03:30 UTC (PROGRAM_CHECK_CRON; docs/operations.md, "The program check").
 */
import { setImmediate } from 'node:timers/promises';
import { MANIFEST, type ProgramFound, type ProgramPart } from '../../../workers/checkProgram.js';
import { type ProgramIdentity, recordProgramCheck } from '../../api/programChecks/programChecks.store.js';
import type { ProgramDifference } from '../../domain/programCheck.js';
import type { EventEmitter } from '../../engine/processEvents.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';
import { nextMoment } from '../../platform/runtime/cron.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';

const LOOK_EVERY_MS = 5000;
const DIFFERENCES_MAX = 100;
/** Paths in a line for people. */
const NAMED = 5;
const LUA = 'lua/';
type Part = 'program' | 'packages';

/** The files differ, and the operator wants a process to end then, before it deals anything. */
export class ProgramChangedError extends Error {}

export interface ProgramCheckerOptions {
  readonly sql: Sql;
  readonly nodes: Pick<RedisNodes, 'all'>;
  readonly checkFiles: (part: ProgramPart) => Promise<ProgramFound>;
  readonly host: string;
  readonly version: string;
  /** Such as `http,worker`. */
  readonly roles: string;
  /** Five fields, UTC. */
  readonly cron: string;
  /** From the start to the check of the packages, at most a minute. */
  readonly packagesAfterMs: number;
  /** `stop`: what differs deals nothing. */
  readonly onChanged: 'alert' | 'stop';
  readonly operatorEmail: string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly events: EventEmitter;
}

export class ProgramChecker extends PeriodicService {
  readonly name = 'program check';
  readonly #options: ProgramCheckerOptions;
  /** What differs as of the newest check of a part; a part in which nothing does is not there. */
  readonly #differing = new Map<Part, readonly ProgramDifference[]>();
  readonly #first: Promise<ProgramFound>;
  #manifest: string | null = null;
  /** The packages were checked once, or there is nothing to compare them with. */
  #hasPackages = false;
  #dueMs: number;

  /** @param first what was found of the program's own files, begun while the stores were opened */
  constructor(options: ProgramCheckerOptions, first: Promise<ProgramFound>) {
    super({ everyMs: LOOK_EVERY_MS, firstAfterMs: options.packagesAfterMs });
    this.#options = options;
    this.#first = first;
    this.#dueMs = nextMoment(options.cron, options.now());
  }

  /** @throws ProgramChangedError where a program that differs must not run */
  override async start(): Promise<void> {
    const found = await this.#first;
    this.#manifest = found.manifest;
    this.#hasPackages = found.manifest === null;
    await this.#note('program', found, true);
    if (this.problem !== undefined) throw new ProgramChangedError(this.problem);
    await super.start();
  }

  /** What names the build; null: nothing says which files it has. */
  get identity(): ProgramIdentity {
    return { version: this.#options.version, manifest: this.#manifest };
  }

  /** 1: all is as the build listed it, 0: something differs, -1: there is no list. */
  get verified(): 1 | 0 | -1 {
    if (this.#differing.size > 0) return 0;
    return this.#manifest === null ? -1 : 1;
  }

  /** Why nothing may be dealt, for people; undefined: it may, or an alert is enough. */
  get problem(): string | undefined {
    if (this.#options.onChanged !== 'stop' || this.verified !== 0) return undefined;
    const differences = [...this.#differing.values()].flat();
    const more = differences.length > NAMED ? ` and ${differences.length - NAMED} more` : '';
    const paths = differences.slice(0, NAMED).map(({ path }) => path);
    return `The program is not as it was built, and PROGRAM_CHANGED is stop: ${paths.join(', ')}${more}`;
  }

  protected async turn(): Promise<void> {
    const { checkFiles, cron, now } = this.#options;
    const nowMs = now();
    const isDue = nowMs >= this.#dueMs;
    if (isDue) await this.#note('program', await checkFiles('program'), false);
    if (isDue || !this.#hasPackages) await this.#note('packages', await checkFiles('packages'), false);
    this.#hasPackages = true;
    if (isDue) this.#dueMs = nextMoment(cron, nowMs);
  }

  protected onTurnFailed(error: unknown): void {
    this.#options.events.emit('TaskFailed', { task: 'program check', error });
  }

  /** The state first: what differs is known here even where it can't be written down. */
  async #note(part: Part, found: ProgramFound, isStart: boolean): Promise<void> {
    const { sql, host, roles, version, operatorEmail, events } = this.#options;
    const { manifest, files } = found;
    const differences: ProgramDifference[] = [...found.differences];
    let { differing } = found;
    const add = (path: string, what: ProgramDifference['what']): void => {
      if (differences.length < DIFFERENCES_MAX) differences.push({ path, what });
      differing++;
    };
    // Whoever changes files may write a list that fits them.
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

  /** Whether the files of lua/ give what was loaded of them, by script. One at a time: a process that deals is held up by none for long. */
  async #scriptsRead(): Promise<Map<string, boolean>> {
    const same = new Map<string, boolean>();
    for (const node of this.#options.nodes.all) {
      for (const { name, isSame } of node.scriptsRead()) {
        same.set(name, isSame && same.get(name) !== false);
        await setImmediate();
      }
    }
    return same;
  }
}
