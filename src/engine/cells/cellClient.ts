/**
 * Runs commands on the cells in Redis. Batching, retries, deadlines, the difference between refused and
 * unknown results, and the wait for the ledger are all handled here and in cellQueue.ts.
 *
 * No timer delays a command. Commands are sent at the end of the event loop's next turn, and the calls for
 * all cells leave in one write.
 */
import { randomBytes } from 'node:crypto';
import { CellQueue, type Held } from './cellQueue.js';
import type { CellCommand, CellFailure, CellOperation, CellRequest } from './operation.js';
import { QueueGroup } from './queueGroup.js';
import type { CellStations } from './spinPath.js';

export type CommandResult<Reply> = { readonly kind: 'reply'; readonly reply: Reply } | CellFailure;

interface AnyQueue {
  readonly held: Held;
  moveTo(group: QueueGroup): void;
}
type AnyOperation = CellOperation<never, unknown>;

export class CellClient {
  readonly #clientName = randomBytes(9).toString('base64url');
  readonly #queues = new Map<AnyOperation, Map<number, AnyQueue>>();
  readonly #groups = new Map<AnyOperation, Map<object, QueueGroup>>();
  /** Groups whose queues have got commands to send since this client last sent commands. */
  #scheduled: QueueGroup[] = [];

  constructor(private readonly stations: CellStations) {}

  /** The promise never rejects. */
  execute<Request extends CellRequest, Reply>(
    operation: CellOperation<Request, Reply>,
    request: Request,
  ): Promise<CommandResult<Reply>> {
    return new Promise((resolve) => {
      this.submit(operation, {
        ...request,
        resolve: (reply: Reply) => resolve({ kind: 'reply', reply }),
        fail: resolve,
      });
    });
  }

  /**
   * Runs a command without a promise, for commands that are frequent. Exactly one of `resolve` and `fail` is
   * called.
   */
  submit<Request extends CellRequest, Reply>(
    operation: CellOperation<Request, Reply>,
    command: Request & CellCommand<Reply>,
  ): void {
    let queues = this.#queues.get(operation);
    if (queues === undefined) {
      queues = new Map();
      this.#queues.set(operation, queues);
    }
    let queue = queues.get(command.cell) as CellQueue<Request & CellCommand<Reply>, Reply> | undefined;
    if (queue === undefined) {
      queue = new CellQueue<Request & CellCommand<Reply>, Reply>(
        command.cell,
        operation,
        this.stations,
        this.#clientName,
        this.#group(operation, command.cell),
      );
      queues.set(command.cell, queue);
    }
    queue.submit(command);
  }

  #group(operation: AnyOperation, cell: number): QueueGroup {
    let groups = this.#groups.get(operation);
    if (groups === undefined) {
      groups = new Map();
      this.#groups.set(operation, groups);
    }
    const server = this.stations.servers.of(cell);
    let group = groups.get(server);
    if (group === undefined) {
      group = new QueueGroup(operation, this.#schedule);
      groups.set(server, group);
    }
    return group;
  }

  /**
   * Moves each queue to the group of the node that now has its cell. The queues of one node's cells are sent
   * together.
   */
  regroup(): void {
    for (const [operation, queues] of this.#queues)
      for (const [cell, queue] of queues) queue.moveTo(this.#group(operation, cell));
    for (const groups of this.#groups.values())
      for (const [node, group] of groups) if (group.isEmpty) groups.delete(node);
  }

  readonly #schedule = (group: QueueGroup, isFull: boolean): void => {
    if (isFull) {
      this.stations.servers.pipelined(() => group.send());
      return;
    }
    this.#scheduled.push(group);
    // Waits one turn of the event loop longer than necessary, so that requests that arrive on the sockets in
    // that turn join the batch. By measurement, this makes batches a tenth larger and spins 4 % cheaper.
    // Waiting for more turns brings no further gain.
    if (this.#scheduled.length === 1) setImmediate(() => setImmediate(this.#flush));
  };

  /**
   * Sends the calls for all cells in one write, so that Redis syncs its disk once for all of them and sends
   * the replies in one write.
   */
  readonly #flush = (): void => {
    const groups = this.#scheduled;
    this.#scheduled = [];
    this.stations.servers.pipelined(() => {
      for (const group of groups) group.send();
    });
  };

  get held(): Held {
    const sum = { waiting: 0, underWay: 0, parked: 0 };
    for (const queues of this.#queues.values()) {
      for (const { held } of queues.values()) {
        sum.waiting += held.waiting;
        sum.underWay += held.underWay;
        sum.parked += held.parked;
      }
    }
    return sum;
  }

  /** Number of commands without a reply. */
  get pending(): number {
    const { waiting, underWay, parked } = this.held;
    return waiting + underWay + parked;
  }
}
