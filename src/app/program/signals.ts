/** Handles signals and uncaught errors, which end the process. */
import { constants } from 'node:os';

const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const;
type StopSignal = (typeof STOP_SIGNALS)[number];

/**
 * Time in ms within which a second signal counts as the same one, because npm forwards a signal that the
 * whole process group has already received.
 */
const SAME_SIGNAL_MS = 2000;

export interface Ending {
  stop(): Promise<void>;
  /** Time limit of a stop, in ms. After that, the process exits without finishing. */
  readonly stopTimeoutMs: number;
  /** True if the end of the parent process, which this process has an IPC channel to, is a stop signal. */
  readonly endsWithParent: boolean;
  onUncaughtError(error: unknown): void;
  onStopFailed(error: unknown): void;
}

/**
 * Stops the program at the first signal or uncaught error. The exit status is 0 after a signal, and 1 after
 * an error or if the stop fails or times out. Another signal more than 2 s later ends the process at once,
 * with status 128 plus the signal's number.
 */
export function stopOnSignals(ending: Ending): void {
  let stoppingSinceMs: number | undefined;

  const stop = async (status: number): Promise<void> => {
    stoppingSinceMs = performance.now();
    setTimeout(() => {
      ending.onStopFailed(new Error(`Stopping took more than ${ending.stopTimeoutMs / 1000} s`));
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
  if (ending.endsWithParent) {
    process.on('disconnect', () => onSignal('SIGTERM'));
    if (!process.connected) onSignal('SIGTERM');
  }

  const onError = (error: unknown): void => {
    ending.onUncaughtError(error);
    if (stoppingSinceMs === undefined) void stop(1);
  };
  process.on('uncaughtException', onError);
  process.on('unhandledRejection', onError);
  // A write error on standard output means that the reader is gone, for example a closed terminal. It must
  // not end the process without a stop.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
}
