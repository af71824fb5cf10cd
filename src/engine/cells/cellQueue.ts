/**
 * The queue of one operation for one cell: its waiting commands and the script calls under way.
 *
 *   submit ──> waiting ──(its group sends, and a slot is free)──> script call ──> resolve or fail each
 *                                                                      └──> parked until the commit
 *
 * A slot holds one call at a time, including its retries. Each slot has its own operation field in the cell,
 * in which operation ids only grow, and its own codec. This has three effects:
 * - A repeated call finds its stored reply, whatever other slots have done in the meantime.
 * - A late copy of an abandoned call is rejected as STALE once the slot has been used again.
 * - The bytes of a call are never overwritten while it is being sent.
 *
 * Calls of different slots may run in any order, so the order of commands that are under way at the same time
 * is undefined.
 *
 * A call without a reply is repeated with the same operation id until the deadline. If an attempt may have
 * been executed by then, the result is `unknown`, never `refused`.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { entryCell } from '../../domain/entryId.js';
import { withTimeout } from '../../platform/runtime/withTimeout.js';
import type { ReplicatedReply } from '../redis/replicatedCalls.js';
import { BehindError, EpochError, NotSentError, RefusedError, StaleError } from '../redis/scriptErrors.js';
import type { CellCall } from '../redis/scripts.js';
import type {
  CellArgument,
  CellCodec,
  CellCommand,
  CellFailure,
  CellOperation,
  CellReplies,
  CellRequest,
  Origin,
} from './operation.js';
import type { GroupedQueue, QueueGroup } from './queueGroup.js';
import type { CellStations } from './spinPath.js';
import { WaitingList } from './waitingList.js';

const RETRY_MS = 20;
const REFUSED: CellFailure = { kind: 'refused', mayHaveRun: false };
const UNKNOWN: CellFailure = { kind: 'unknown', mayHaveRun: true };
/** Errors which prove that an attempt has had no effect. */
const SAYS_NOT_DONE = [NotSentError, RefusedError, EpochError, BehindError];

interface Slot<Request, Reply> {
  readonly operationField: string;
  operations: bigint;
  codec: CellCodec<Request, Reply>;
}

/**
 * Number of commands by state: waiting for a call, in a call under way, or executed and parked until the
 * ledger has their entries.
 */
export interface Held {
  waiting: number;
  underWay: number;
  parked: number;
}

const isGone = (command: CellRequest): boolean => command.isGone?.() === true;

/**
 * Share of the time from arrival to deadline that must be left when a command is sent. A command with less is
 * refused, because its caller is better off with a certain refusal than with an unknown result.
 */
const SHARE_LEFT_MIN = 0.1;

/**
 * Refuses the commands that must not be sent any more, or that have waited too long to be answered in time.
 */
function withoutGone<Command extends CellCommand<never>>(commands: Command[], leftMinMs: number): Command[] {
  const earliest = performance.now() + leftMinMs;
  const isOver = (command: Command): boolean =>
    (command.deadline !== undefined && command.deadline <= earliest) || isGone(command);
  if (!commands.some(isOver)) return commands;
  return commands.filter((command) => {
    if (!isOver(command)) return true;
    command.fail(REFUSED);
    return false;
  });
}

/** Commands of a call whose deadlines are closer together than this, in ms, share the latest of them. */
const SHARED_DEADLINE_MS = 100;

/**
 * The deadlines of a call's commands. The call goes on until the latest of them. Commands with earlier
 * deadlines are failed at their own, and the call's reply no longer answers them.
 */
class Deadlines<Command extends CellCommand<never>> {
  readonly latest: number;
  /** True while an attempt is under way, or if an earlier one may have been executed. */
  mayHaveRun = false;
  readonly #commands: readonly Command[];
  #failed: Set<Command> | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @param latest deadline of commands that have none of their own */
  constructor(commands: readonly Command[], latest: number) {
    this.#commands = commands;
    let earliest = Number.POSITIVE_INFINITY;
    let last = 0;
    for (const { deadline = latest } of commands) {
      earliest = Math.min(earliest, deadline);
      last = Math.max(last, deadline);
    }
    this.latest = last;
    if (last - earliest > SHARED_DEADLINE_MS) this.#wait(earliest);
  }

  #wait(until: number): void {
    this.#timer = setTimeout(this.#pass, Math.max(0, until - performance.now()));
  }

  readonly #pass = (): void => {
    const nowMs = performance.now();
    let next = Number.POSITIVE_INFINITY;
    for (const command of this.#commands) {
      const { deadline = this.latest } = command;
      if (this.hasFailed(command)) continue;
      if (deadline > nowMs) {
        next = Math.min(next, deadline);
        continue;
      }
      this.#failed ??= new Set();
      this.#failed.add(command);
      command.fail(this.mayHaveRun ? UNKNOWN : REFUSED);
    }
    if (next < this.latest) this.#wait(next);
  };

  /** Returns whether the command was failed at its deadline, so that nobody waits for its reply. */
  hasFailed(command: Command): boolean {
    return this.#failed?.has(command) === true;
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

export class CellQueue<Command extends CellCommand<Reply>, Reply> implements GroupedQueue {
  readonly #cell: number;
  readonly #operation: CellOperation<Command, Reply>;
  readonly #stations: CellStations;
  #group: QueueGroup;
  readonly #waiting: WaitingList<Command>;
  readonly #free: Slot<Command, Reply>[];
  #underWay = 0;
  #parked = 0;
  /** Length of {@link #waiting} that was last reported to the group. */
  #counted = 0;

  /**
   * @param clientName unique name of this process, never used before
   * @param group decides when this queue is sent
   */
  constructor(
    cell: number,
    operation: CellOperation<Command, Reply>,
    stations: CellStations,
    clientName: string,
    group: QueueGroup,
  ) {
    this.#cell = cell;
    this.#operation = operation;
    this.#stations = stations;
    this.#group = group;
    group.add(this);
    this.#waiting = new WaitingList(stations.limits.waitingMax, operation.partnerOf);
    this.#free = Array.from({ length: operation.slots }, (_, i) => ({
      operationField: operation.isStored ? `op:${clientName}.${operation.name}${i === 0 ? '' : `.${i}`}` : '',
      operations: 0n,
      codec: operation.codec(),
    }));
  }

  get held(): Held {
    return { waiting: this.#waiting.length, underWay: this.#underWay, parked: this.#parked };
  }

  moveTo(group: QueueGroup): void {
    if (group === this.#group) return;
    this.#group.changed(this.#counted, 0);
    this.#group.remove(this);
    this.#group = group;
    group.add(this);
    group.changed(0, this.#counted);
    group.schedule();
  }

  submit(command: Command): void {
    const { confirmations, replication } = this.#stations;
    const mayWait = command.waitsForLedger || replication?.isCurrent(this.#cell) === false;
    const isStalled = mayWait && confirmations.isStalled(this.#cell);
    const refused = isStalled ? command : this.#waiting.add(command);
    refused?.fail(REFUSED);
    if (refused !== command) this.#schedule();
  }

  #schedule(): void {
    this.#count();
    this.#group.schedule();
  }

  #count(): void {
    const { length } = this.#waiting;
    if (length !== this.#counted) this.#group.changed(this.#counted, length);
    this.#counted = length;
  }

  /** Sends waiting commands while slots are free. The calls have been written when this function returns. */
  send(isMuch: boolean): void {
    const leftMinMs = this.#stations.limits.deadlineMs * SHARE_LEFT_MIN;
    let leastWaiting = isMuch || this.#underWay === 0 ? 1 : this.#operation.overlapMin;
    while (this.#free.length > 0 && this.#waiting.length >= leastWaiting) {
      const slot = this.#free.pop()!;
      const commands = withoutGone(this.#waiting.take(this.#operation.batchMax), leftMinMs);
      if (commands.length === 0) {
        this.#free.push(slot);
        continue;
      }
      this.#underWay += commands.length;
      const started = performance.now();
      const deadlines = new Deadlines(commands, started + this.#stations.limits.deadlineMs);
      this.#run(slot, commands, started, deadlines)
        .catch((error: unknown) => {
          // Encoding the call or decoding its reply failed, which is a defect of this service. The command
          // may have been executed.
          this.#stations.observer.onError(error, this.#cell, commands.length);
          for (const command of commands) if (!deadlines.hasFailed(command)) command.fail(UNKNOWN);
          deadlines.end();
        })
        .finally(() => {
          this.#underWay -= commands.length;
          this.#free.push(slot);
          this.#schedule();
        });
      leastWaiting = this.#operation.overlapMin;
    }
    this.#count();
  }

  async #run(
    slot: Slot<Command, Reply>,
    commands: Command[],
    started: number,
    deadlines: Deadlines<Command>,
  ): Promise<void> {
    const { epochs, servers, permission, observer } = this.#stations;
    const epoch = commands[0]!.epoch ?? epochs.epochOf(this.#cell);
    const server = servers.of(this.#cell);
    if (
      epoch === undefined ||
      !permission.maySend(this.#cell) ||
      (!server.isReady && !this.#operation.waitsForStore)
    ) {
      deadlines.end();
      for (const command of commands) command.fail(REFUSED);
      return;
    }
    const origin = { epoch, serverId: server.serverId };
    const answer = await this.#call(slot, commands, epoch, deadlines);
    if (!('reply' in answer)) {
      // The socket may still be sending the buffer of an abandoned call, so the slot needs a new codec.
      slot.codec = this.#operation.codec();
      deadlines.end();
      for (const command of commands) if (!deadlines.hasFailed(command)) command.fail(answer);
      return;
    }
    observer.onCall(this.#operation.name, commands.length, (performance.now() - started) / 1000);
    this.#resolve(
      commands,
      slot.codec.decode(answer.reply, commands),
      origin,
      answer.isReplicated,
      deadlines,
    );
  }

  /** Makes a call, with retries, and returns its reply or the reason why there is none. */
  async #call(
    slot: Slot<Command, Reply>,
    commands: Command[],
    epoch: string,
    deadlines: Deadlines<Command>,
  ): Promise<ReplicatedReply | CellFailure> {
    const { servers, permission, epochs, observer } = this.#stations;
    const [first] = commands as [Command];
    const head = {
      cell: this.#cell,
      epoch,
      operationField: slot.operationField,
      operationId: this.#nextId(slot),
      newestMove: first.newestMove,
      ...this.#answered(epoch),
    };
    let request = { ...head, ...this.#encode(slot, commands) };
    let mayHaveRun = false;
    for (let tries = 0; ; tries++) {
      const leftMs = deadlines.latest - performance.now();
      if (leftMs <= 0 || !permission.maySend(this.#cell)) return mayHaveRun ? UNKNOWN : REFUSED;
      try {
        // Evaluate again whether each spin may be dealt, because Redis may have been unreachable for as long
        // as a call's deadline.
        if (tries > 0) {
          if (!mayHaveRun && commands.every(isGone)) return REFUSED;
          request = this.#encodeAgain(slot, commands, head);
        }
        if (servers.of(this.#cell).isReady) {
          deadlines.mayHaveRun = true;
          return await this.#try(request, leftMs, tries === 0);
        }
        await servers.whenReady(this.#cell, leftMs);
      } catch (error) {
        observer.onError(error, this.#cell, commands.length);
        // RefusedError proves that this attempt had no effect. An earlier attempt may have had one.
        if (error instanceof RefusedError && !mayHaveRun) return REFUSED;
        if (error instanceof EpochError) {
          // A rebuilt cell has a new epoch. If the epoch is read immediately, this process can deal from the
          // cell again sooner.
          void epochs.refresh().catch(() => {});
          // If an attempt may have been executed, a restarted server may come back with this epoch and the
          // stored reply. The call is then repeated.
          const isOver = !mayHaveRun || first.epoch !== undefined || epochs.epochOf(this.#cell) !== epoch;
          if (isOver) return { kind: 'epochMoved', mayHaveRun };
        }
        if (!SAYS_NOT_DONE.some((type) => error instanceof type)) mayHaveRun = true;
        deadlines.mayHaveRun = mayHaveRun;
        if (error instanceof BehindError) {
          if (first.runsReachId !== undefined) return { kind: 'epochMoved', mayHaveRun };
          await this.#catchUp(leftMs);
          // The next attempt checks the request ids against the filters again.
        }
        // The server has already seen a later call of this slot, so nobody can find out any more whether this
        // call was executed before.
        if (error instanceof StaleError) return UNKNOWN;
        // The pause lets the event loop run, because only a later turn of the loop recognizes a closing
        // connection as closed.
        await pause(RETRY_MS);
      }
    }
  }

  /**
   * Encodes the call's arguments and reads the watermark of the request-id filters in the same turn of the
   * event loop, so that the watermark fits the filters that the ids were checked against.
   */
  #encode(slot: Slot<Command, Reply>, commands: Command[]): { args: CellArgument[]; reach: Buffer } {
    const [{ runsReachId }] = commands as [Command];
    let reach = this.#stations.requestIds?.reachOf(this.#cell) ?? NO_ID;
    if (runsReachId !== undefined) {
      reach = Buffer.alloc(8);
      reach.writeBigUInt64LE(runsReachId);
    }
    return { reach, args: slot.codec.encode(commands) };
  }

  /**
   * Encodes the call again. Positions in the batch and in the reply stay the same, so a reply to an earlier
   * attempt can still be decoded.
   */
  #encodeAgain<Head>(slot: Slot<Command, Reply>, commands: Command[], head: Head) {
    // The socket may still be sending the buffer of the call's last attempt.
    slot.codec = this.#operation.codec();
    return { ...head, ...this.#encode(slot, commands) };
  }

  /**
   * Loads the filters of recently released request ids. A failure is logged, and the load is repeated with
   * the next attempt of the call.
   */
  async #catchUp(timeoutMs: number): Promise<void> {
    const { requestIds, observer } = this.#stations;
    if (requestIds === undefined) return;
    await withTimeout(requestIds.refresh(), timeoutMs).catch((error: unknown) =>
      observer.onError(error, this.#cell, 1),
    );
  }

  async #try(request: CellCall, timeoutMs: number, isFirst: boolean): Promise<ReplicatedReply> {
    const { scripts, replication } = this.#stations;
    const { name } = this.#operation;
    // The group is kept in a variable, because the cell may move to another node during the call.
    const group = this.#group;
    if (isFirst) group.firstTries++;
    try {
      if (replication !== undefined)
        return await withTimeout(replication.replicated(name, request), timeoutMs);
      return { reply: await withTimeout(scripts.command(name, request), timeoutMs), isReplicated: true };
    } finally {
      if (isFirst) {
        group.firstTries--;
        group.schedule();
      }
    }
  }

  #answered(epoch: string): { readonly answered?: Buffer } {
    const answered = this.#stations.answered?.newest(this.#cell, epoch);
    return answered === undefined ? {} : { answered };
  }

  /**
   * Returns the next operation id of the slot as u64, or an empty buffer if the operation's reply is not
   * stored.
   */
  #nextId(slot: Slot<Command, Reply>): Buffer {
    if (!this.#operation.isStored) return NO_ID;
    const id = Buffer.allocUnsafe(8);
    slot.operations += 1n;
    id.writeBigUInt64LE(slot.operations);
    return id;
  }

  /**
   * Answers the commands of a call, or parks them until the ledger has their entries.
   * @param isReplicated true if the call's writes are on the replicas, so that they are safe without the
   * ledger
   */
  #resolve(
    commands: Command[],
    answer: CellReplies<Reply>,
    origin: Origin,
    isReplicated: boolean,
    deadlines: Deadlines<Command>,
  ): void {
    const { replies } = answer;
    if (isReplicated) this.#operation.onReplies?.(this.#cell, origin.epoch, commands, answer);
    const parked: number[] = [];
    let newestId = 0n;
    let newestPlace = 0;
    const undone = replies.includes(undefined)
      ? commands.filter((command, i) => replies[i] === undefined && !deadlines.hasFailed(command))
      : [];
    if (undone.length > 0) this.#waiting.putBack(undone);
    for (let i = 0; i < commands.length; i++) {
      const command = commands[i]!;
      if (replies[i] === undefined) continue;
      const id = command.waitsForLedger || !isReplicated ? answer.entryId(i) : 0n;
      if (id === 0n) {
        if (!deadlines.hasFailed(command)) this.#answer(command, replies[i]!);
        continue;
      }
      parked.push(i);
      if (id > newestId) [newestId, newestPlace] = [id, i];
    }
    this.#noteAnswered(answer, origin, parked);
    if (parked.length === 0) {
      deadlines.end();
      return;
    }
    this.#parked += parked.length;
    this.#stations.confirmations
      .confirmed(
        this.#cell,
        origin,
        newestId,
        deadlines.latest,
        (row) => answer.isEntry?.(newestPlace, row) ?? true,
      )
      .catch(() => false)
      .then((isConfirmed) => {
        this.#parked -= parked.length;
        deadlines.end();
        for (const i of parked) {
          if (deadlines.hasFailed(commands[i]!)) continue;
          if (isConfirmed) this.#answer(commands[i]!, replies[i]!);
          else commands[i]!.fail(UNKNOWN);
        }
      });
  }

  /**
   * Records the newest entry that is answered now. The next call contains its id, and a server that lacks the
   * entry must refuse the call.
   */
  #noteAnswered(
    { replies, newestPlace, entryId }: CellReplies<Reply>,
    origin: Origin,
    parked: number[],
  ): void {
    const place = newestPlace ?? replies.length - 1;
    const { answered } = this.#stations;
    if (answered === undefined || parked.includes(place) || replies[place] === undefined) return;
    const id = entryId(place);
    // If the newest entry is from the cell from which the partner moved to this cell, that entry says nothing
    // about the state of this cell.
    if (id !== 0n && entryCell(id) === this.#cell) answered.note(this.#cell, origin.epoch, id);
  }

  #answer(command: Command, reply: Reply): void {
    try {
      command.resolve(reply);
    } catch (error) {
      // A defect that prevents one command from being answered must not leave the other commands of the batch
      // without an answer.
      this.#stations.observer.onError(error, this.#cell, 1);
      command.fail(UNKNOWN);
    }
  }
}

const NO_ID = Buffer.alloc(0);
