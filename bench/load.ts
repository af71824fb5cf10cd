/** What a load generator is told and how it takes it: a process of its own that runs one order after the other. */
import type { LoadResult } from './measurement.js';

/** A game, and the key of its partner. */
export interface Target {
  readonly apiKey: string;
  readonly gameId: number;
  readonly wagerUsd: number;
}

export interface LoadOrder {
  readonly base: string;
  readonly path: string;
  /** Each spin is of one of these, drawn at random; one that is named twice is drawn twice as often. */
  readonly targets: readonly Target[];
  readonly connections: number;
  readonly players: number;
  readonly hasRequestId: boolean;
  readonly seconds: number;
  /** Spins a second of an open loop; undefined: closed, each connection has one spin under way, always. */
  readonly rate: number | undefined;
  /** Unlike that of any other run: request ids begin with it. */
  readonly requestIdPrefix: string;
}

/** A request that has no answer after this many seconds has failed. */
export const TIMEOUT_SECONDS = 10;

/** Runs the orders that the parent process sends and tells it what came of each; ends with the parent. */
export function takeOrders(run: (order: LoadOrder) => Promise<LoadResult>): void {
  process.on('disconnect', () => process.exit());
  process.on('message', (order: LoadOrder) => {
    run(order).then(
      (result) => process.send!(result),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
}
