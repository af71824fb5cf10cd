/**
 * The one list of what is wrong in this process and its stores. Each part reports its findings to the list.
 * GET /readyz, GET /statusz, the overview, the console's banner and spindle_problem are views of it.
 *
 * A new problem is a line in PROBLEMS, and a line where a part reports it: `problems.add(() => …)`.
 */

import { ERRORS } from '../domain/errors.js';
import { PeriodicService } from '../platform/runtime/periodicService.js';
import { lineOf } from '../platform/secretsInLogs.js';

/**
 * What a problem does to spins: none is dealt, those of some cells or games are not, all are dealt but other
 * work waits, or spins and their ledger are not affected.
 */
const EFFECTS = ['SPINS_REFUSED', 'SOME_REFUSED', 'WORK_WAITS', 'ATTENTION'] as const;
export type Effect = (typeof EFFECTS)[number];

interface Kind {
  readonly effect: Effect;
  /** What the problem means for spins. */
  readonly spins: string;
  readonly help: string;
}

const { code } = ERRORS.unavailable;
const ALL_REFUSED = `All spins are refused (${code})`;
const CELLS_REFUSED = `Spins for partners of these cells are refused (${code})`;
const NOT_AFFECTED = 'Spins are dealt as usual';
const refused = (help: string, spins = ALL_REFUSED): Kind => ({ effect: 'SPINS_REFUSED', spins, help });
const cellsRefused = (help: string, spins = CELLS_REFUSED): Kind => ({
  effect: 'SOME_REFUSED',
  spins,
  help,
});
const waits = (spins: string, help: string): Kind => ({ effect: 'WORK_WAITS', spins, help });

const NO_BLOCKS = 'Loaded outcomes are dealt; no new blocks are loaded, so games run dry';
/** A problem with an alert of nearly the same name: `log-stalled` has the alert SpindleLogStalled. */
const alerted = (spins = NOT_AFFECTED, effect: Effect = 'ATTENTION'): Kind => ({
  effect,
  spins,
  help: 'Follow the section of its alert in runbook.md',
});

/** All problems that a process can have. */
const PROBLEMS = {
  'format-unreadable': refused(
    'Run the version that finished the upgrade: production.md, section "Upgrades"',
  ),
  'program-changed': refused('Install the build again, or find out who changed its files'),
  'stores-restored': refused('Run `spindle recover`, which says what each way costs: backup.md'),
  'copy-missing': refused('Put the copy back, or run the command that the message names: backup.md'),
  'copy-unreadable': refused('Run the command that the message names: backup.md'),
  'copy-unwritable': waits(
    NO_BLOCKS,
    'Give the folder space, or the right to write there. No command is needed afterwards',
  ),
  'redis-volatile': refused('Restore the settings of Redis that the message names: settings.md'),
  'postgres-volatile': refused('Restore the settings of Postgres that the message names: settings.md'),
  'redis-away': cellsRefused(
    'Start Redis, or repair the connection to it. If its disk is full, give it disk first, because it ends at each write. No command is needed afterwards',
  ),
  'redis-refuses-writes': cellsRefused(
    'Repair what the message names: free memory, replicas, the disk, or the rights of the Redis user. If the server is a replica, let the address lead to its primary',
  ),
  'cell-unprepared': cellsRefused('Start a worker, and read its log if it does not prepare the cell'),
  'cell-halted': cellsRefused('Read the reason, then follow runbook.md, SpindleCellHalted'),
  'cell-rebuilding': cellsRefused('None. The cell is served again when the rebuild ends'),
  'cell-lacks-entries': cellsRefused('None. A worker rebuilds the cell'),
  'clocks-differ': cellsRefused('Repair time synchronization (NTP) on the machine whose clock is wrong'),
  'game-dry': {
    effect: 'SOME_REFUSED',
    spins: `Spins of these games are refused (${ERRORS.queueExhausted.code})`,
    help: 'None after a rebuild, when blocks are made. Otherwise follow runbook.md, SpindleGameDry',
  },
  'postgres-short': waits(
    'Loaded outcomes are dealt until they or the outbox run out; nothing is committed to the ledger',
    'Give Postgres disk, memory or connections. No command is needed afterwards',
  ),
  'postgres-away': waits(
    'Loaded outcomes are dealt; new blocks, the ledger and reads of it wait',
    'Start Postgres, or repair the connection to it. No command is needed afterwards',
  ),
  'cells-not-served': waits(
    'Loaded outcomes are dealt until they or the outbox run out; nothing is committed to the ledger',
    'Start a worker (ROLES=worker), and read its log if it does not take the cells',
  ),
  'front-end-down': waits(
    'The other front ends deal; connections to this one are refused or time out',
    'None if it starts again. Otherwise read its last lines in the log',
  ),
  'outbox-lag': alerted('Spins are dealt until the outbox is full', 'WORK_WAITS'),
  'outbox-near-bound': alerted('Spins are dealt until the outbox is full', 'WORK_WAITS'),
  'position-file-stale': alerted(NO_BLOCKS, 'WORK_WAITS'),
  'partition-missing': alerted('Nothing can be committed to the ledger from midnight UTC on', 'WORK_WAITS'),
  'log-stalled': alerted(NO_BLOCKS, 'WORK_WAITS'),
  'log-halted': alerted(NO_BLOCKS, 'WORK_WAITS'),
  'log-copy-stale': alerted(),
  'log-witness-away': alerted(),
  'log-witness-refuses': alerted(),
  'redis-memory-low': alerted(),
  'request-filters-large': alerted(),
  'clock-offset': alerted('Spins are dealt until the clocks differ by CLOCK_SKEW_MAX_S'),
  'queue-low': alerted('Spins are dealt until the game has no outcomes'),
  'rtp-outside-band': alerted(),
  'rtp-rolling-outside-band': alerted(),
  'rtp-review-overdue': alerted(),
  'communal-budget-low': alerted(),
  'communal-budget-exhausted': alerted('Spins are dealt without bonus events'),
  'settlement-overdue': alerted(),
  'settlement-faults': alerted(),
  'webhooks-late': alerted(),
  'check-failed': waits('Not known', 'Read the log, and report the error as a defect'),
} satisfies Record<string, Kind>;

export type ProblemName = keyof typeof PROBLEMS;
export const PROBLEM_NAMES = Object.keys(PROBLEMS) as ProblemName[];

export interface Finding {
  readonly name: ProblemName;
  /** What is wrong, in one line. */
  readonly message: string;
  /** Start of the problem; by default the time when the list heard of it first. */
  readonly since?: Date;
  /** Cells whose spins are refused because of the problem. */
  readonly cells?: readonly number[];
  /** Distinguishes several problems of one name, such as the id of a node. */
  readonly subject?: string | number;
  /** Replaces the usual effect of the problem. */
  readonly effect?: Effect;
}

export interface Problem extends Kind {
  readonly name: ProblemName;
  readonly message: string;
  readonly since: Date;
}

/** Time after which the list answers with what a part reported last, in ms. */
const ANSWERS_WITHIN_MS = 300;
/** Interval of the checks while nobody asks, in ms. So an answer with the last state is not old. */
const LOOK_EVERY_MS = 2000;

/** The newest result of a look at stores. Looks are shared, and one that takes long is not waited for. */
class Look {
  readonly #look: () => Promise<readonly Finding[]>;
  #last: { readonly findings: readonly Finding[]; readonly known: unknown } | undefined;

  constructor(
    look: () => Promise<readonly Finding[]>,
    private readonly known: () => unknown,
  ) {
    this.#look = sharedLook(async () => {
      const atFirst = known();
      let findings: readonly Finding[];
      try {
        findings = await look();
      } catch (error) {
        findings = [{ name: 'check-failed', message: `A check of the state failed: ${lineOf(error)}` }];
      }
      this.#last = { findings, known: atFirst };
      return findings;
    }, known);
  }

  async findings(): Promise<readonly Finding[]> {
    const look = this.#look();
    if (this.#last === undefined || this.#last.known !== this.known()) return look;
    const { findings } = this.#last;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<readonly Finding[]>((resolve) => {
      timer = setTimeout(() => resolve(findings), ANSWERS_WITHIN_MS);
    });
    return Promise.race([look, late]).finally(() => clearTimeout(timer));
  }
}

export class Problems extends PeriodicService {
  readonly name = 'problems';
  readonly #parts: (() => readonly Finding[])[] = [];
  readonly #looks: Look[] = [];
  /**
   * Problems of the process that has started this one. Whatever that process can't do, this one deals as long
   * as its own checks let it.
   */
  elsewhere: readonly Finding[] = [];
  /** Time at which each present problem was first found. */
  #since = new Map<string, Date>();

  /** @param now returns the time in ms since the epoch */
  constructor(
    private readonly cells: () => Iterable<number>,
    private readonly now: () => number,
  ) {
    super({ everyMs: LOOK_EVERY_MS });
  }

  /** Adds a part that knows its problems without waiting. */
  add(part: () => readonly Finding[]): void {
    this.#parts.push(part);
  }

  /**
   * Adds a look at stores.
   * @param known state that is known without waiting; after its change, no earlier result is used
   */
  addLook(look: () => Promise<readonly Finding[]>, known: () => unknown): void {
    this.#looks.push(new Look(look, known));
  }

  /** What the parts of this process report, without what it finds in the stores. */
  get own(): readonly Finding[] {
    return this.#parts.flatMap((part) => part());
  }

  /**
   * Returns all problems, the worst first. If a store does not answer within 300 ms, the list has the last
   * known state of what is read from it.
   */
  async list(): Promise<readonly Problem[]> {
    const looks = await Promise.all(this.#looks.map((each) => each.findings()));
    const here = [...looks.flat(), ...this.own];
    const elsewhere = this.elsewhere
      .filter(({ message }) => !here.some((each) => each.message === message))
      .map((each): Finding => {
        const isMild = (each.effect ?? PROBLEMS[each.name].effect) === 'ATTENTION';
        return { ...each, cells: [], effect: isMild ? 'ATTENTION' : 'WORK_WAITS' };
      });
    const found = [...here, ...elsewhere];
    const since = new Map<string, Date>();
    const refusedCells = new Set(found.flatMap(({ cells = [] }) => cells));
    const isAny = [...this.cells()].some((cell) => !refusedCells.has(cell));
    const problems = found.map(({ name, message, subject = '', ...finding }): Problem => {
      const key = `${name} ${subject}`;
      const begun = finding.since ?? this.#since.get(key) ?? new Date(this.now());
      since.set(key, begun);
      const { spins, help, effect } = PROBLEMS[name] as Kind;
      const wanted = finding.effect ?? effect;
      const own = wanted === 'SOME_REFUSED' && !isAny ? 'SPINS_REFUSED' : wanted;
      return {
        name,
        effect: own,
        message,
        since: begun,
        spins:
          own === 'SPINS_REFUSED' && own !== effect
            ? ALL_REFUSED
            : own === 'ATTENTION'
              ? NOT_AFFECTED
              : spins,
        help,
      };
    });
    this.#since = since;
    const worst = (problem: Problem): number => EFFECTS.indexOf(problem.effect);
    return problems.sort((a, b) => worst(a) - worst(b));
  }

  protected async turn(): Promise<void> {
    await this.list();
  }
}

const messagesOf = (problems: readonly Problem[], effect: Effect): string[] =>
  problems.filter((problem) => problem.effect === effect).map(({ message }) => message);

export interface HealthAnswer {
  readonly status: number;
  readonly body: string;
}

/** Returns the answer to GET /readyz: 503 takes the process out of a load balancer. */
export function readyAnswer(problems: readonly Problem[]): HealthAnswer {
  const missing = messagesOf(problems, 'SPINS_REFUSED');
  const isReady = missing.length === 0;
  const body = JSON.stringify({ status: isReady ? 'ready' : 'not ready', missing });
  return { status: isReady ? 200 : 503, body };
}

/** Returns the answer to GET /statusz: 503 if any problem stops spins or lets other work wait. */
export function statusAnswer(problems: readonly Problem[]): HealthAnswer {
  const missing = messagesOf(problems, 'SPINS_REFUSED');
  const unserved = messagesOf(problems, 'SOME_REFUSED');
  const waiting = messagesOf(problems, 'WORK_WAITS');
  const isWell = missing.length + unserved.length + waiting.length === 0;
  const status = isWell ? 'well' : missing.length === 0 ? 'degraded' : 'not ready';
  const body = JSON.stringify({ status, missing, unserved, waiting, problems });
  return { status: isWell ? 200 : 503, body };
}

const SHARED_FOR_MS = 250;

/**
 * Returns a function that shares one check among all callers during the check and for 250 ms after it.
 * @param known state that this process has without waiting; after a change of this state, an earlier result
 * is no longer shared
 */
export function sharedLook<T>(look: () => Promise<T>, known: () => unknown): () => Promise<T> {
  let shared: { readonly result: Promise<T>; readonly known: unknown; endedAt: number } | undefined;
  return () => {
    const now = known();
    if (shared === undefined || shared.known !== now || performance.now() - shared.endedAt > SHARED_FOR_MS) {
      const result = look();
      const own = { result, known: now, endedAt: Number.POSITIVE_INFINITY };
      shared = own;
      const ended = (): void => {
        own.endedAt = performance.now();
      };
      result.then(ended, ended);
    }
    return shared.result;
  };
}
