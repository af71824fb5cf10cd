/** Signals and uncaught errors, and how the process ends by them. */
import { constants } from 'node:os';

const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const;
type StopSignal = (typeof STOP_SIGNALS)[number];

/** npm passes on a signal that the whole process group got already: within this time it is the same one. */
const SAME_SIGNAL_MS = 2000;

export interface Ending {
  /** Ends everything in order. */
  stop(): Promise<void>;
  /** A stop that takes longer ends the process as it is. */
  readonly stopTimeoutMs: number;
  onUncaughtError(error: unknown): void;
  onStopFailed(error: unknown): void;
}

/**
 * Stops the program by the first signal or uncaught error. It ends with 0 after a signal and with 1 after an error, or where the
 * stop fails or takes too long. A signal more than 2 s later ends it at once, with 128 and the signal's number.
 */
export function stopOnSignals(ending: Ending): void {
  let stoppingSinceMs: number | undefined;

  const stop = async (status: number): Promise<void> => {
    stoppingSinceMs = performance.now();
    setTimeout(() => {
      ending.onStopFailed(new Error(`the stop took more than ${ending.stopTimeoutMs / 1000} s`));
      process.exit(1);
    }, ending.stopTimeoutMs).unref();
    try {
      await ending.stop();
    } catch (error) {
      ending.onStopFailed(error);
      process.exit(1);
    }
    process.exit(status);
  };

  const onSignal = (signal: StopSignal): void => {
    if (stoppingSinceMs === undefined) void stop(0);
    else if (performance.now() - stoppingSinceMs > SAME_SIGNAL_MS)
      process.exit(128 + constants.signals[signal]);
  };
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal);

  const onError = (error: unknown): void => {
    ending.onUncaughtError(error);
    if (stoppingSinceMs === undefined) void stop(1);
  };
  process.on('uncaughtException', onError);
  process.on('unhandledRejection', onError);
  // Nobody reads any more, e.g. the terminal is closed: no reason to end without a stop.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
}
