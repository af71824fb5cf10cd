/**
 * Sends spins to Redis: all that wait for a cell go in one script call, one call of a cell at a time.
 *
 *   submit ──> waiting ──(end of the loop's next turn, no call under way)──> one script call ──> settle each
 *
 * No timer delays a spin: it goes at the end of the event loop's next turn. While a call is under way the next batch
 * gathers by itself. A call whose answer did not come is made again with the same operation id, which the script answers
 * from its store, until the deadline; what is unknown then is said to be unknown (`unknown`), never that nothing happened
 * (`refused`).
 */
import { randomBytes } from 'node:crypto';
import type { Partner } from '../domain/game.js';
import type { SpinIds } from '../domain/spinId.js';
import { readId, readSafeInt64, SPIN_STATUS } from '../redis/records.js';
import { EpochError, NotSentError, RefusedError, StaleError } from '../redis/scriptErrors.js';
import type { SpinCall } from '../redis/scripts.js';
import { BatchEncoder, type BatchItem, BatchReply, KIND } from './batchCodec.js';

/** What became of one request of a batch. Money in micro-USD. */
export interface SpinResult {
  readonly status: number;
  readonly outcomeCode: number;
  readonly balanceMicros: number;
  /** Empty where nothing was dealt. */
  readonly spinId: string;
  /** Left of the window that the request counts against. */
  readonly remaining: number;
  /** The store's clock, milliseconds since the epoch. */
  readonly timeMs: number;
}

/** `refused`: nothing was done. `unknown`: it may have been done. */
export type SpinFailure = 'refused' | 'unknown';

export interface SpinJob extends BatchItem {
  /** Is answered only once the ledger has the spin. */
  readonly waitsForLedger: boolean;
  settle(result: SpinResult): void;
  fail(failure: SpinFailure): void;
}

/** Under which epoch, and by which run of the store's server, something was dealt. */
export interface Dealt {
  readonly epoch: string;
  readonly serverId: string | undefined;
}

export interface BatcherOptions {
  readonly call: (call: SpinCall) => Promise<Buffer>;
  /** What is called in there goes to the store in one write. */
  readonly pipelined: (calls: () => void) => void;
  /** The cell's store can be reached now. */
  readonly isReady: (cell: number) => boolean;
  /** Resolves once the store can be reached, or after the milliseconds. */
  readonly whenReady: (cell: number, timeoutMs: number) => Promise<void>;
  /** The epoch of a cell; undefined while the cell may not be dealt from. */
  readonly epochOf: (cell: number) => string | undefined;
  readonly spinIds: SpinIds;
  /**
   * Resolves once the ledger has every entry of a cell up to one: true; false where that did not come to be known
   * within the deadline.
   */
  readonly booked: (cell: number, dealt: Dealt, id: bigint) => Promise<boolean>;
  /** Which run of the cell's server is reached now. */
  readonly serverOf: (cell: number) => string | undefined;
  /** The ledger of a cell does not move: what would wait for it is refused. */
  readonly isStalled: (cell: number) => boolean;
  /** How long an answer of the store is waited for, all tries together. */
  readonly deadlineMs: number;
  readonly batchMax: number;
  /** Requests that may wait for one cell; more are refused. */
  readonly waitingMax: number;
  readonly onBatch: (size: number, seconds: number) => void;
  readonly onError: (error: unknown, cell: number, size: number) => void;
  /** The cell is at another epoch than this process believes. */
  readonly onEpoch: (cell: number) => void;
}

/** Requests that wait for a batch, are in one, or were dealt and wait for the ledger. */
export interface Held {
  readonly waiting: number;
  readonly underWay: number;
  readonly parked: number;
}

export class SpinBatcher {
  readonly #cells = new Map<number, CellQueue>();
  /** With something to send, since the last turn. */
  #ready: CellQueue[] = [];
  readonly #options: BatcherOptions;
  readonly #operationField = `op:${randomBytes(9).toString('base64url')}`;

  constructor(options: BatcherOptions) {
    this.#options = options;
  }

  /** Queues a request; exactly one of its `settle` and `fail` is called, later. */
  submit(job: SpinJob): void {
    const number = job.partner.cell;
    let cell = this.#cells.get(number);
    if (cell === undefined) {
      cell = new CellQueue(number, this.#operationField, this.#options, this.#schedule);
      this.#cells.set(number, cell);
    }
    cell.submit(job);
  }

  readonly #schedule = (cell: CellQueue): void => {
    this.#ready.push(cell);
    // One turn more than it takes: what the sockets bring meanwhile comes along. Measured, it makes batches a tenth
    // larger and a spin 4 % cheaper; further turns bring nothing.
    if (this.#ready.length === 1) setImmediate(() => setImmediate(this.#flush));
  };

  /** All cells' calls leave in one write: the store then syncs once for all of them, and answers in one write. */
  readonly #flush = (): void => {
    const cells = this.#ready;
    this.#ready = [];
    this.#options.pipelined(() => {
      for (const cell of cells) cell.flush();
    });
  };

  /** Requests that are not answered, by where they are. */
  get held(): Held {
    const sum = { waiting: 0, underWay: 0, parked: 0 };
    for (const { held } of this.#cells.values()) {
      sum.waiting += held.waiting;
      sum.underWay += held.underWay;
      sum.parked += held.parked;
    }
    return sum;
  }

  /** How many these are together. */
  get pending(): number {
    const { waiting, underWay, parked } = this.held;
    return waiting + underWay + parked;
  }
}

class CellQueue {
  readonly #cell: number;
  readonly #operationField: string;
  readonly #options: BatcherOptions;
  #encoder = new BatchEncoder();
  #waiting: SpinJob[] = [];
  #underWay: SpinJob[] = [];
  /** Dealt; the ledger has them not yet. */
  #parked = 0;
  #isScheduled = false;
  readonly #onReady: (cell: CellQueue) => void;
  #operations = 0n;
  #idBlocks = Buffer.alloc(4096);

  /** @param onReady told when there is something to send; it calls `flush` soon. */
  constructor(
    cell: number,
    operationField: string,
    options: BatcherOptions,
    onReady: (cell: CellQueue) => void,
  ) {
    this.#cell = cell;
    this.#operationField = operationField;
    this.#options = options;
    this.#onReady = onReady;
  }

  get held(): Held {
    return { waiting: this.#waiting.length, underWay: this.#underWay.length, parked: this.#parked };
  }

  submit(job: SpinJob): void {
    const { waitingMax, isStalled } = this.#options;
    if (this.#waiting.length >= waitingMax || (job.waitsForLedger && isStalled(this.#cell))) {
      job.fail('refused');
      return;
    }
    this.#waiting.push(job);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#underWay.length > 0 || this.#waiting.length === 0) return;
    this.#isScheduled = true;
    this.#onReady(this);
  }

  /** Sends what waits. The call is written before this returns. */
  flush(): void {
    this.#isScheduled = false;
    const { batchMax } = this.#options;
    const jobs = this.#waiting.length <= batchMax ? this.#waiting : this.#waiting.slice(0, batchMax);
    this.#waiting = this.#waiting.length <= batchMax ? [] : this.#waiting.slice(batchMax);
    this.#underWay = jobs;
    this.#send(jobs)
      .catch((error: unknown) => {
        // A defect of ours, in writing the batch or reading its reply: it may have been dealt.
        this.#options.onError(error, this.#cell, jobs.length);
        for (const job of jobs) job.fail('unknown');
      })
      .finally(() => {
        this.#underWay = [];
        this.#schedule();
      });
  }

  async #send(jobs: SpinJob[]): Promise<void> {
    const { call, isReady, whenReady, epochOf, deadlineMs, onBatch, onError, onEpoch, serverOf } =
      this.#options;
    const epoch = epochOf(this.#cell);
    if (epoch === undefined || !isReady(this.#cell)) {
      for (const job of jobs) job.fail('refused');
      return;
    }
    const started = performance.now();
    const serverId = serverOf(this.#cell);
    const partners: Partner[] = [];
    const operationId = Buffer.allocUnsafe(8);
    this.#operations += 1n;
    operationId.writeBigUInt64LE(this.#operations);
    const request: SpinCall = {
      cell: this.#cell,
      epoch,
      operationField: this.#operationField,
      operationId,
      batch: this.#encoder.encode(jobs, partners),
    };
    let mayHaveRun = false;
    let answer: Buffer | undefined;
    while (answer === undefined) {
      const leftMs = deadlineMs - (performance.now() - started);
      if (leftMs <= 0) break;
      try {
        if (isReady(this.#cell)) answer = await within(call(request), leftMs);
        else await whenReady(this.#cell, leftMs);
      } catch (error) {
        onError(error, this.#cell, jobs.length);
        if (error instanceof EpochError) onEpoch(this.#cell);
        // These say that this try did nothing; of an earlier try they say nothing.
        if (!mayHaveRun && (error instanceof RefusedError || error instanceof EpochError)) break;
        // What was begun under an epoch that has ended is not told any more.
        if (error instanceof EpochError && epochOf(this.#cell) !== epoch) break;
        if (!SAYS_NOT_DONE.some((type) => error instanceof type)) mayHaveRun = true;
        // A later batch of ours is known to the store: whether this one ran before it can't be told any more.
        if (error instanceof StaleError) break;
        // The loop lets the rest of the process run: a connection that is closing is found closed in a later turn.
        await pause(RETRY_MS);
      }
    }
    if (answer === undefined) {
      // A call that was given up may still be under way, and send what its buffer holds.
      this.#encoder = new BatchEncoder();
      for (const job of jobs) job.fail(mayHaveRun ? 'unknown' : 'refused');
      return;
    }
    onBatch(jobs.length, (performance.now() - started) / 1000);
    const dealt = { epoch, serverId };
    this.#settle(jobs, partners, dealt, new BatchReply(answer, partners.length, jobs.length));
  }

  #settle(jobs: SpinJob[], partners: Partner[], dealt: Dealt, reply: BatchReply): void {
    const { buffer, timeMs } = reply;
    const spinsUsed = partners.map((_, place) => reply.spinsUsed(place));
    const apiUsed = partners.map((_, place) => reply.apiUsed(place));
    const ids = this.#spinIds(jobs, reply);
    const parked: { job: SpinJob; result: SpinResult }[] = [];
    let newestId = 0n;
    for (let i = 0; i < jobs.length; i++) {
      const job = jobs[i]!;
      const status = reply.status(i);
      const place = job.partnerPlace;
      const isApi = job.kind === KIND.countApi;
      const used = isApi ? apiUsed : spinsUsed;
      if (status !== SPIN_STATUS.limited && job.kind !== KIND.dealCounted) used[place]!++;
      const limit = isApi ? job.partner.apiRateLimit : job.partner.spinRateLimit;
      const hasCore = status === SPIN_STATUS.dealt || status === SPIN_STATUS.replay;
      const at = reply.coreAt(i);
      const result: SpinResult = {
        status,
        outcomeCode: hasCore ? buffer.readUInt16LE(at + 8) : 0,
        balanceMicros: hasCore ? readSafeInt64(buffer, at + 10) : 0,
        spinId: hasCore ? ids.slice(i * 32, i * 32 + 32) : '',
        remaining: Math.max(0, limit - used[place]!),
        timeMs,
      };
      if (hasCore && job.waitsForLedger) {
        parked.push({ job, result });
        const id = readId(buffer, at);
        if (id > newestId) newestId = id;
      } else {
        this.#answer(job, result);
      }
    }
    if (parked.length > 0) this.#park(parked, dealt, newestId);
  }

  #answer(job: SpinJob, result: SpinResult): void {
    try {
      job.settle(result);
    } catch (error) {
      // A defect in answering one request must not leave the rest of the batch without answers.
      this.#options.onError(error, this.#cell, 1);
      job.fail('unknown');
    }
  }

  /** Answers these once the ledger has the newest of them, and so all; the next batch goes out meanwhile. */
  #park(parked: { job: SpinJob; result: SpinResult }[], dealt: Dealt, newestId: bigint): void {
    this.#parked += parked.length;
    this.#options
      .booked(this.#cell, dealt, newestId)
      .catch(() => false)
      .then((isBooked) => {
        this.#parked -= parked.length;
        for (const { job, result } of parked) {
          if (isBooked) this.#answer(job, result);
          else job.fail('unknown');
        }
      });
  }

  /** The spin ids of the whole batch, enciphered in one call. */
  #spinIds(jobs: SpinJob[], reply: BatchReply): string {
    const bytes = jobs.length * 16;
    if (this.#idBlocks.length < bytes) this.#idBlocks = Buffer.alloc(bytes);
    const blocks = this.#idBlocks;
    for (let i = 0; i < jobs.length; i++) {
      const at = reply.coreAt(i);
      reply.buffer.copy(blocks, i * 16, at, at + 8);
      blocks.writeUInt32LE(jobs[i]!.partner.partnerId, i * 16 + 8);
    }
    return this.#options.spinIds.encode(blocks.subarray(0, bytes));
  }
}

const RETRY_MS = 20;
const SAYS_NOT_DONE = [NotSentError, RefusedError, EpochError];

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export class DeadlineError extends Error {}

/** The promise's value, or a DeadlineError after the milliseconds; a late answer is let go. */
export function within<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new DeadlineError('No answer within the deadline')), timeoutMs);
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
