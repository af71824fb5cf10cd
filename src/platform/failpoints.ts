/**
 * The named steps of what must survive being ended anywhere: booking, and the rebuilding of a cell of Redis. A test lets
 * the process end itself, as by SIGKILL, at each of them (FAILPOINT in config.ts); otherwise a step is a call of nothing.
 */
export const FAILPOINTS = [
  // A flush (ledger/flusher.ts).
  'flush.read',
  'flush.cursor-moved',
  'flush.rows-copied',
  'flush.communal-booked',
  'flush.totals-added',
  'flush.committed',
  'flush.trimmed',
  'flush.marked',
  // A block (blocks/keeper.ts).
  'block.made',
  'block.leased',
  // Its entry in the public log (logWriter.ts).
  'block.appended',
  'block.signed',
  'block.published',
  'block.loaded',
  // A release of request ids (requestIds/segmentRelease.ts).
  'release.closed',
  'release.copied',
  'release.marked',
  'release.committed',
  'release.released',
  'release.moved',
  'release.merged',
  // The move of a partner (recovery/movePartner.ts).
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
  // The void of a raffle (raffles/raffleVoids.ts).
  'void.ended',
  'void.closed',
  'void.adjusted',
  'void.refunded',
  'void.noted',
  'void.done',
  // A recovery (recovery/prepare.ts, recovery/rebuild.ts).
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

/** @param failpoint `<step>` or `<step>:<n>`: where to end this process, the n-th time that it comes there. */
export function armFailpoint(failpoint: string | undefined): OnFailpoint {
  if (failpoint === undefined) return () => {};
  const [wanted, times = '1'] = failpoint.split(':');
  let left = Number(times);
  return (step) => {
    if (step === wanted && --left === 0) process.kill(process.pid, 'SIGKILL');
  };
}
