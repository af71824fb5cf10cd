/**
 * Failpoints: named steps of operations that must survive an interruption anywhere. In a test the process
 * kills itself with SIGKILL at one of these steps (FAILPOINT in config.ts). Otherwise a failpoint does
 * nothing.
 */
export const FAILPOINTS = [
  // Steps of a flush (ledger/flusher.ts).
  'flush.read',
  'flush.cursor-moved',
  'flush.rows-copied',
  'flush.communal-booked',
  'flush.totals-added',
  'flush.committed',
  'flush.trimmed',
  'flush.marked',
  // Steps of making a block of outcomes (blocks/keeper.ts).
  'block.made',
  'block.leased',
  // Steps of writing a block's record to the public log (logWriter.ts).
  'block.appended',
  'block.signed',
  'block.published',
  'block.loaded',
  // Steps of a release of request ids (requestIds/segmentRelease.ts).
  'release.closed',
  'release.copied',
  'release.marked',
  'release.committed',
  'release.released',
  'release.moved',
  'release.merged',
  // Steps of the move of a partner (recovery/movePartner.ts).
  'move.copied',
  'move.stopped',
  'move.flushed',
  'move.runs-written',
  'move.filled',
  'move.switching',
  'move.switched',
  'move.opened',
  'move.removed',
  'move.finished',
  // Steps of the void of a raffle (raffles/raffleVoids.ts).
  'void.ended',
  'void.closed',
  'void.adjusted',
  'void.refunded',
  'void.noted',
  'void.done',
  // Steps of a recovery (recovery/prepare.ts, recovery/rebuild.ts).
  'recovery.detected',
  'recovery.fenced',
  'recovery.voided',
  'recovery.cleared',
  'recovery.partners',
  'recovery.players',
  'recovery.requests',
  'recovery.games',
  'recovery.communal',
  'recovery.installed',
  'recovery.recorded',
] as const;

export type Failpoint = (typeof FAILPOINTS)[number];
export type OnFailpoint = (step: Failpoint) => void;

/**
 * Returns the handler of failpoints.
 * @param failpoint `<step>` or `<step>:<n>`: kills this process when it reaches the step for the n-th time
 */
export function armFailpoint(failpoint: string | undefined): OnFailpoint {
  if (failpoint === undefined) return () => {};
  const [wanted, times = '1'] = failpoint.split(':');
  let left = Number(times);
  return (step) => {
    if (step === wanted && --left === 0) process.kill(process.pid, 'SIGKILL');
  };
}
