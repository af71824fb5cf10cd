/**
 * Checks of `spindle verify --history`. The public log must contain each block of the game once and in
 * sequence. Revealed blocks must match their commitments and the sheet's distribution. Settlement reports and
 * spins must refer to the same log.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import {
  compare,
  distributionOf,
  type LogCheckpoint,
  openCheckpoint,
  type RevealOptions,
  type VerifyOptions,
} from '../../verifier/verify.mjs';
import { recordsOf, TILE_WIDTH } from '../domain/publicLog/tiles.js';
import { goodnessP } from '../domain/rng/pValues.js';
import { lineOf } from '../platform/secretsInLogs.js';
import { UsageError } from './command.js';
import { GameHistory, type HistoryState, newState, STATE_FORMAT } from './gameHistory.js';
import { HistoryReads, HistoryRefusedError, inOrder, listIn } from './historyReads.js';
import { sampleProofs } from './historySample.js';
import { printable } from './output.js';

/** Threshold of the distribution test. A smaller p value occurs by chance once in a billion runs. */
const P_MIN = 1e-9;
const PAGE = 100;
/** Maximum number of pages of settlement reports: a century of days. */
const REPORT_PAGES_MAX = 366;

export interface HistoryOptions {
  readonly game: number;
  readonly url: string;
  readonly key: string;
  /** Trusted keys: a key of the log, or a policy. */
  readonly trust: VerifyOptions;
  /** Mathematics of the game: a PAR sheet, prize table or rules. */
  readonly math: Pick<VerifyOptions, 'sheet' | 'table' | 'rules'>;
  readonly labelKey?: string | undefined;
  readonly sample: number;
  readonly state?: string | undefined;
}

interface Listed {
  readonly number: number;
  readonly type: string;
  readonly status: string;
  readonly logIndex: number;
}

interface BlocksPage {
  readonly labelKey: string | null;
  readonly blocks: readonly Listed[];
  readonly nextCursor: number | null;
}
type Answer = { readonly number: number; readonly reveal: object | null };

export interface HistoryFindings {
  readonly faults: readonly string[];
  readonly state: HistoryState | undefined;
  /** Size of the log in records. */
  readonly size: number;
  readonly p: number | undefined;
  readonly reports: number;
  readonly spins: number;
}

const digest = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest();

export class HistoryCheck {
  readonly #options: HistoryOptions;
  readonly #reads: HistoryReads;
  readonly #faults: string[] = [];
  readonly #trust: VerifyOptions;

  constructor(options: HistoryOptions) {
    this.#options = options;
    this.#reads = new HistoryReads(options.url, options.key);
    this.#trust = { ...options.trust, readTile: this.#reads.tile };
  }

  async run(): Promise<HistoryFindings> {
    const note = await this.#reads.checkpoint();
    const { faults, checkpoint } = await openCheckpoint(note, this.#trust);
    const untrusted = faults.find((fault) => fault.startsWith('trust: '));
    if (untrusted !== undefined) throw new UsageError(untrusted.slice('trust: '.length));
    this.#faults.push(...faults);
    const nothing = { faults: this.#faults, state: undefined, size: 0, p: undefined, reports: 0, spins: 0 };
    if (checkpoint === undefined) return nothing;
    const history = await this.#begin(checkpoint);
    const size = checkpoint.size;
    if (!(await this.#readLog(history, checkpoint))) return { ...nothing, size };
    history.state.note = note;
    await this.#readBlocks(history);
    const p = this.#judge(history);
    const reports = await this.#readReports(checkpoint);
    const spins = await sampleProofs(
      { reads: this.#reads, options: this.#options, state: history.state, note },
      this.#faults,
    );
    return { faults: this.#faults, state: history.state, size, p, reports, spins };
  }

  #page(after: number | undefined, limit: number): Promise<BlocksPage> {
    const from = after === undefined ? '' : `&after=${after}`;
    return this.#reads.ask(`partner/v1/games/${this.#options.game}/blocks?limit=${limit}${from}`);
  }

  /** Continues from the stored state of the previous run, or starts a new one. */
  async #begin({ origin }: LogCheckpoint): Promise<GameHistory> {
    const { game: gameId, state: file, labelKey: given } = this.#options;
    const text = given ?? (await this.#page(undefined, 1)).labelKey;
    if (text === null) throw new UsageError(`The public log has no records of game ${gameId}`);
    if (!/^[0-9a-f]{64}$/.test(text)) throw new UsageError('The label key must be 64 hexadecimal digits');
    const labelKey = Buffer.from(text, 'hex');
    const begun = newState({ origin, gameId, labelKey });
    const kept = file === undefined ? undefined : await readState(file);
    if (kept !== undefined) {
      const names = ['format', 'origin', 'gameId', 'labelKeyHash'] as const;
      const other = names.find((name) => kept[name] !== begun[name]);
      if (other !== undefined) throw new UsageError(`${file} belongs to another ${other}: ${kept[other]}`);
    }
    return new GameHistory(labelKey, kept ?? begun);
  }

  /**
   * Reads all records after those already read.
   * @returns false if they do not belong to the log
   */
  async #readLog(history: GameHistory, checkpoint: LogCheckpoint): Promise<boolean> {
    const { state } = history;
    const { size } = checkpoint;
    if (state.size > size) {
      this.#faults.push(`log: it has ${size} records, but it had ${state.size} records in the previous run`);
      return false;
    }
    const differs = state.note === '' ? undefined : await compare(state.note, checkpoint, this.#trust);
    if (differs !== undefined) {
      this.#faults.push(differs);
      return false;
    }
    const bundles = function* (): Generator<number> {
      for (let at = Math.floor(state.size / TILE_WIDTH); at * TILE_WIDTH < size; at++) yield at;
    };
    const read = async (index: number): Promise<{ index: number; bytes: Buffer }> => {
      const width = Math.min(TILE_WIDTH, size - index * TILE_WIDTH);
      return { index, bytes: await this.#reads.bundle(index, width) };
    };
    for await (const { index, bytes } of inOrder(bundles(), read)) {
      const from = state.size - index * TILE_WIDTH;
      const records = recordsOf(bytes)?.slice(from, Math.min(TILE_WIDTH, size - index * TILE_WIDTH)) ?? [];
      for (const record of records) history.take(record);
    }
    history.readAll(checkpoint);
    this.#faults.push(...history.faults.splice(0));
    return !this.#faults.some((fault) => fault.startsWith('log: '));
  }

  /**
   * Compares the service's list of entries with the entries found in the log, opens new entries and draws
   * revealed blocks again.
   */
  async #readBlocks(history: GameHistory): Promise<void> {
    const { state } = history;
    const told = state.told;
    const listed = await this.#listed(history);
    const wanted = [...listed.values()].filter(
      ({ number, status }) =>
        state.sealed[number] !== undefined && (number >= told || status === 'EXHAUSTED'),
    );
    const reveal: RevealOptions = { ...this.#redraw(), digest };
    for await (const { item, answer } of inOrder(wanted, (each) => this.#block(each))) {
      if (answer === undefined) history.notOpened(item.number);
      else if (answer.number !== item.number)
        this.#faults.push(`number ${item.number}: the service returned another number`);
      else {
        if (item.number >= told) await history.open(answer);
        if (answer.reveal !== null) await history.reveal(answer, reveal);
      }
    }
    for (const [number, place] of state.places.entries()) {
      if (number < told || place === null || listed.has(number)) continue;
      if (history.isLost(number)) history.notOpened(number);
      else this.#faults.push(`number ${number} is logged at ${place}, but the service does not show it`);
    }
    history.allTold();
    this.#faults.push(...new Set(history.faults.splice(0)));
  }

  /** Returns the service's list of entries that are new or not yet revealed. */
  async #listed(history: GameHistory): Promise<Map<number, Listed>> {
    const { state } = history;
    const first = Math.min(state.told, ...Object.keys(state.sealed).map(Number));
    const listed = new Map<number, Listed>();
    let after: number | null = first - 1;
    while (after !== null) {
      const page: BlocksPage = await this.#page(after < 0 ? undefined : after, PAGE);
      listIn(page, 'blocks');
      for (const item of page.blocks) {
        if (!(item.number > after))
          throw new Error('The service does not list the blocks in the order of their numbers');
        after = item.number;
        if (history.compareListed(item)) listed.set(item.number, item);
      }
      const isMore = page.nextCursor !== null && page.blocks.length > 0;
      if (!isMore || after >= state.places.length) break;
    }
    return listed;
  }

  /**
   * @returns the listed block and the service's answer; the answer is undefined if the service has lost the
   * opening and can't open the block
   */
  async #block(item: Listed): Promise<{ item: Listed; answer: Answer | undefined }> {
    const { sheet, table } = this.#options.math;
    const isDrawn = sheet !== undefined || table !== undefined || item.type === 'shoes';
    const more = item.status === 'EXHAUSTED' && !isDrawn ? '?outcomes=true' : '';
    const path = `partner/v1/games/${this.#options.game}/blocks/${item.number}${more}`;
    try {
      return { item, answer: await this.#reads.ask<Answer>(path) };
    } catch (error) {
      if (!(error instanceof HistoryRefusedError) || item.status !== 'LOST') throw error;
      return { item, answer: undefined };
    }
  }

  /** Returns the options for drawing revealed blocks again. */
  #redraw(): RevealOptions {
    const { sheet, table } = this.#options.math;
    if (sheet === undefined) return table === undefined ? {} : { table };
    try {
      return { sheet, ends: distributionOf(sheet) };
    } catch (error) {
      throw new UsageError(`Cannot read the PAR sheet: ${lineOf(error)}`);
    }
  }

  /**
   * Returns the probability that draws by the sheet deviate at least as much as the revealed outcomes;
   * undefined if there are too few.
   */
  #judge({ state }: GameHistory): number | undefined {
    const { ends } = this.#redraw();
    const counts = Object.values(state.counts)[0];
    if (ends === undefined || counts === undefined) return undefined;
    const total = ends.at(-1)!;
    const scale = 2n ** 60n;
    const shares = ends.map((end, at) => Number(((end - (ends[at - 1] ?? 0n)) * scale) / total) / 2 ** 60);
    const p = goodnessP(
      shares.map((_, at) => counts[at] ?? 0),
      shares,
    );
    if (p !== undefined && p < P_MIN)
      this.#faults.push(
        `reveals: the revealed outcomes do not fit the distribution of the sheet (p = ${p.toExponential(1)})`,
      );
    return p;
  }

  /**
   * Checks that the checkpoints in the partner's settlement reports belong to this log.
   * @returns the number of reports with a checkpoint
   */
  async #readReports(newest: LogCheckpoint): Promise<number> {
    let named = 0;
    for (let page = 1; page <= REPORT_PAGES_MAX; page++) {
      const reports = listIn<{ reportDate: string; logCheckpoint?: string | null }>(
        await this.#reads.ask(`partner/v1/settlements?page=${page}&limit=${PAGE}`),
        'reports',
      );
      for (const { reportDate, logCheckpoint = null } of reports) {
        if (logCheckpoint === null) continue;
        named++;
        const differs = await compare(logCheckpoint, newest, this.#trust);
        if (differs !== undefined)
          this.#faults.push(
            `report ${printable(reportDate)}: the checkpoint of the report is wrong: ${differs}`,
          );
      }
      if (reports.length < PAGE) break;
    }
    return named;
  }
}

async function readState(file: string): Promise<HistoryState | undefined> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new UsageError(`Cannot read ${file}: ${lineOf(error)}`);
  }
  try {
    const state = JSON.parse(text) as HistoryState;
    if (state.format !== STATE_FORMAT) throw new Error(`it is not in the format «${STATE_FORMAT}»`);
    return state;
  } catch (error) {
    throw new UsageError(`Cannot read ${file}: ${lineOf(error)}`);
  }
}
