/**
 * Runs commands on the cells in Redis: it alone batches, retries, keeps deadlines, tells what was refused from what is
 * unknown, and waits until the ledger has what was booked (cellQueue.ts).
 *
 * No timer delays a command: it goes at the end of the event loop's next turn, and all cells' calls leave in one write.
 */
import { randomBytes } from 'node:crypto';
import { CellQueue, type CellQueueOptions, type Held } from './cellQueue.js';
import type { CellCommand, CellFailure, CellOperation, CellRequest } from './operation.js';

export type Outcome<Reply> = { readonly kind: 'reply'; readonly reply: Reply } | CellFailure;

export interface CellClientOptions extends CellQueueOptions {
  /** What is called in there goes to the store in one write. */
  readonly pipelined: (calls: () => void) => void;
}

interface AnyQueue {
  readonly held: Held;
  flush(): void;
}
type AnyOperation = CellOperation<never, unknown>;

export class CellClient {
  readonly #options: CellClientOptions;
  readonly #clientName = randomBytes(9).toString('base64url');
  readonly #queues = new Map<AnyOperation, Map<number, AnyQueue>>();
  /** With something to send, since the last turn. */
  #scheduled: AnyQueue[] = [];

  constructor(options: CellClientOptions) {
    this.#options = options;
  }

  /** Runs a command. Never rejects. */
  execute<Request extends CellRequest, Reply>(
    operation: CellOperation<Request, Reply>,
    request: Request,
  ): Promise<Outcome<Reply>> {
    return new Promise((resolve) => {
      this.submit(operation, {
        ...request,
        settle: (reply: Reply) => resolve({ kind: 'reply', reply }),
        fail: resolve,
      });
    });
  }

  /** The same without a promise, for commands of which there are many: exactly one of `settle` and `fail` is called. */
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
        this.#options,
        this.#clientName,
        this.#schedule,
      );
      queues.set(command.cell, queue);
    }
    queue.submit(command);
  }

  readonly #schedule = (queue: AnyQueue): void => {
    this.#scheduled.push(queue);
    // One turn more than it takes: what the sockets bring meanwhile comes along. Measured, it makes batches a tenth
    // larger and a spin 4 % cheaper; further turns bring nothing.
    if (this.#scheduled.length === 1) setImmediate(() => setImmediate(this.#flush));
  };

  /** All cells' calls leave in one write: the store then syncs once for all of them, and answers in one write. */
  readonly #flush = (): void => {
    const queues = this.#scheduled;
    this.#scheduled = [];
    this.#options.pipelined(() => {
      for (const queue of queues) queue.flush();
    });
  };

  /** Commands that are not answered, by where they are. */
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

  /** Commands that are not answered. */
  get pending(): number {
    const { waiting, underWay, parked } = this.held;
    return waiting + underWay + parked;
  }
}
