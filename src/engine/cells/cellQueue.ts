/**
 * The commands of one operation for one cell: those that wait, and the calls under way.
 *
 *   submit ──> waiting ──(when its group sends, and a slot is free)──> one script call ──> resolve or fail each
 *                                                                                └──> parked until the ledger has it
 *
 * A slot holds one call at a time, tries included. Each has an operation field of its own in the cell, ids in it that only
 * grow, and a codec of its own. So a repeated call finds its stored reply whatever other slots did meanwhile, a late copy of a
 * call that was given up is STALE once the slot has been used again, and no call's bytes are overwritten while it is on its
 * way. Calls of several slots may run in any order: commands that are under way together have no order of their own.
 *
 * A call without an answer is made again with the same operation id until the deadline. What may have run by then is
 * `unknown`, never `refused`.
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
/** The errors that say of a try that it did nothing. */
const SAYS_NOT_DONE = [NotSentError, RefusedError, EpochError, BehindError];

interface Slot<Request, Reply> {
  readonly operationField: string;
  operations: bigint;
  codec: CellCodec<Request, Reply>;
}

/** Commands by where they are: for a call, in one, or done and waiting for the ledger. */
export interface Held {
  waiting: number;
  underWay: number;
  parked: number;
}

const isGone = (command: CellRequest): boolean => command.isGone === true;

/** Refuses the commands that nobody waits for. @returns the others */
function withoutGone<Command extends CellCommand<never>>(commands: Command[]): Command[] {
  if (!commands.some(isGone)) return commands;
  for (const command of commands) if (isGone(command)) command.fail(REFUSED);
  return commands.filter((command) => !isGone(command));
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
  /** Of {@link #waiting}, as the group counts. */
  #counted = 0;

  /**
   * @param clientName no other process has the same one, nor this one before
   * @param group it says when this queue sends
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

  /** The cell has come to a node whose group this is. */
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

  /** Sends what waits, as far as slots are free. The calls are written before this returns. */
  send(isMuch: boolean): void {
    let leastWaiting = isMuch || this.#underWay === 0 ? 1 : this.#operation.overlapMin;
    while (this.#free.length > 0 && this.#waiting.length >= leastWaiting) {
      const slot = this.#free.pop()!;
      const commands = withoutGone(this.#waiting.take(this.#operation.batchMax));
      if (commands.length === 0) {
        this.#free.push(slot);
        continue;
      }
      this.#underWay += commands.length;
      this.#run(slot, commands)
        .catch((error: unknown) => {
          // A defect of ours, in writing the call or reading its reply: it may have been done.
          this.#stations.observer.onError(error, this.#cell, commands.length);
          for (const command of commands) command.fail(UNKNOWN);
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

  async #run(slot: Slot<Command, Reply>, commands: Command[]): Promise<void> {
    const { epochs, servers, permission, observer } = this.#stations;
    const started = performance.now();
    const epoch = commands[0]!.epoch ?? epochs.epochOf(this.#cell);
    const server = servers.of(this.#cell);
    if (
      epoch === undefined ||
      !permission.maySend(this.#cell) ||
      (!server.isReady && !this.#operation.waitsForStore)
    ) {
      for (const command of commands) command.fail(REFUSED);
      return;
    }
    const origin = { epoch, serverId: server.serverId };
    const answer = await this.#call(slot, commands, epoch, started);
    if (!('reply' in answer)) {
      // A call that was given up may still be under way, and send what its buffer holds.
      slot.codec = this.#operation.codec();
      for (const command of commands) command.fail(answer);
      return;
    }
    observer.onCall(this.#operation.name, commands.length, (performance.now() - started) / 1000);
    this.#resolve(commands, slot.codec.decode(answer.reply, commands), origin, answer.isReplicated);
  }

  /** The reply, however many tries it takes, or why there is none. */
  async #call(
    slot: Slot<Command, Reply>,
    commands: Command[],
    epoch: string,
    started: number,
  ): Promise<ReplicatedReply | CellFailure> {
    const { servers, permission, epochs, limits, observer } = this.#stations;
    const [first] = commands as [Command];
    const deadline = first.deadline ?? started + limits.deadlineMs;
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
      const leftMs = deadline - performance.now();
      if (leftMs <= 0 || !permission.maySend(this.#cell)) return mayHaveRun ? UNKNOWN : REFUSED;
      try {
        // What may be dealt is judged anew: the store may have been away for as long as a call is waited for.
        if (tries > 0) request = this.#encodeAgain(slot, commands, head);
        if (servers.of(this.#cell).isReady) return await this.#try(request, leftMs, tries === 0);
        await servers.whenReady(this.#cell, leftMs);
      } catch (error) {
        observer.onError(error, this.#cell, commands.length);
        // These say that this try did nothing; of an earlier try they say nothing.
        if (error instanceof RefusedError && !mayHaveRun) return REFUSED;
        if (error instanceof EpochError) {
          // A rebuilt cell has another epoch: the sooner it is known here, the sooner the cell deals again.
          void epochs.refresh().catch(() => {});
          // Where a try may have run the cell may come back to this epoch, with the reply: a server that was started again.
          const isOver = !mayHaveRun || first.epoch !== undefined || epochs.epochOf(this.#cell) !== epoch;
          if (isOver) return { kind: 'epochMoved', mayHaveRun };
        }
        if (!SAYS_NOT_DONE.some((type) => error instanceof type)) mayHaveRun = true;
        if (error instanceof BehindError) {
          if (first.runsReachId !== undefined) return { kind: 'epochMoved', mayHaveRun };
          await this.#catchUp(leftMs);
          // The ids are asked anew with the next try.
        }
        // A later call of this slot is known to the store: whether this one ran before it can't be known any more.
        if (error instanceof StaleError) return UNKNOWN;
        // The loop lets the rest of the process run: a connection that is closing is found closed in a later turn.
        await pause(RETRY_MS);
      }
    }
  }

  /** The arguments, and how far the filters reach that they were asked of: in one turn of the loop. */
  #encode(slot: Slot<Command, Reply>, commands: Command[]): { args: CellArgument[]; reach: Buffer } {
    const [{ runsReachId }] = commands as [Command];
    let reach = this.#stations.requestIds?.reachOf(this.#cell) ?? NO_ID;
    if (runsReachId !== undefined) {
      reach = Buffer.alloc(8);
      reach.writeBigUInt64LE(runsReachId);
    }
    return { reach, args: slot.codec.encode(commands) };
  }

  /** The places in batch and reply stay the same: a reply to an earlier try can be read, too. */
  #encodeAgain<Head>(slot: Slot<Command, Reply>, commands: Command[], head: Head) {
    // The try before may still be under way, and send what its buffer holds.
    slot.codec = this.#operation.codec();
    return { ...head, ...this.#encode(slot, commands) };
  }

  /** Reads the filters of the request ids that were released since. What fails is tried again with the call. */
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
    // The cell may come to another node meanwhile.
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

  /** The next operation id of the slot, u64; empty where the operation's reply is not stored. */
  #nextId(slot: Slot<Command, Reply>): Buffer {
    if (!this.#operation.isStored) return NO_ID;
    const id = Buffer.allocUnsafe(8);
    slot.operations += 1n;
    id.writeBigUInt64LE(slot.operations);
    return id;
  }

  /** @param isReplicated what the call wrote needs no ledger to last */
  #resolve(commands: Command[], answer: CellReplies<Reply>, origin: Origin, isReplicated: boolean): void {
    const { replies } = answer;
    if (isReplicated) this.#operation.onReplies?.(this.#cell, origin.epoch, commands, answer);
    const parked: number[] = [];
    let newestId = 0n;
    let newestPlace = 0;
    const undone = replies.includes(undefined) ? commands.filter((_, i) => replies[i] === undefined) : [];
    if (undone.length > 0) this.#waiting.putBack(undone);
    for (let i = 0; i < commands.length; i++) {
      const command = commands[i]!;
      if (replies[i] === undefined) continue;
      const id = command.waitsForLedger || !isReplicated ? answer.entryId(i) : 0n;
      if (id === 0n) {
        this.#answer(command, replies[i]!);
        continue;
      }
      parked.push(i);
      if (id > newestId) [newestId, newestPlace] = [id, i];
    }
    this.#noteAnswered(answer, origin, parked);
    if (parked.length === 0) return;
    // The next call goes out meanwhile.
    this.#parked += parked.length;
    this.#stations.confirmations
      .confirmed(this.#cell, origin, newestId, (row) => answer.isEntry?.(newestPlace, row) ?? true)
      .catch(() => false)
      .then((isConfirmed) => {
        this.#parked -= parked.length;
        for (const i of parked) {
          if (isConfirmed) this.#answer(commands[i]!, replies[i]!);
          else commands[i]!.fail(UNKNOWN);
        }
      });
  }

  /** The next call tells the store what is answered now: it must have that. */
  #noteAnswered(
    { replies, newestPlace, entryId }: CellReplies<Reply>,
    origin: Origin,
    parked: number[],
  ): void {
    const place = newestPlace ?? replies.length - 1;
    const { answered } = this.#stations;
    if (answered === undefined || parked.includes(place) || replies[place] === undefined) return;
    const id = entryId(place);
    // What a partner brought from another cell says nothing of this one.
    if (id !== 0n && entryCell(id) === this.#cell) answered.note(this.#cell, origin.epoch, id);
  }

  #answer(command: Command, reply: Reply): void {
    try {
      command.resolve(reply);
    } catch (error) {
      // A defect in answering one command must not leave the rest of the batch without answers.
      this.#stations.observer.onError(error, this.#cell, 1);
      command.fail(UNKNOWN);
    }
  }
}

const NO_ID = Buffer.alloc(0);
