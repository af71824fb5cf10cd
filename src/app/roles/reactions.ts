/**
 * Connects process events to the services of a worker that react to them. Their log lines and metrics are in
 * the table of events (src/engine/processEvents.ts).
 */
import type { BlockKeeper } from '../../engine/blocks/keeper.js';
import type { RecordedStatuses } from '../../engine/cells/playerBlocking.js';
import type { Cleanup } from '../../engine/ledger/cleanup.js';
import type { CommittedTotals } from '../../engine/ledger/committedTotals.js';
import type { Flusher } from '../../engine/ledger/flusher.js';
import type { Ownership } from '../../engine/ledger/ownership.js';
import type { EventEmitter } from '../../engine/processEvents.js';
import type { RaffleVoids } from '../../engine/raffles/raffleVoids.js';
import type { PartnerMover } from '../../engine/recovery/partnerMover.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';
import type { SegmentRelease } from '../../engine/requestIds/segmentRelease.js';
import type { Deliverer } from '../../webhooks/deliverer.js';
import type { Mailer } from '../../webhooks/mailer.js';

export interface Reacting {
  readonly nodes: RedisNodes;
  readonly ownership: Ownership;
  readonly flusher: Flusher;
  readonly keeper: BlockKeeper;
  readonly cleanup: Cleanup;
  readonly release: SegmentRelease;
  readonly moves: PartnerMover;
  readonly voids: RaffleVoids;
  readonly playerStatuses: RecordedStatuses;
  readonly totals: CommittedTotals;
  readonly deliverer: Deliverer;
  readonly mailer: Mailer;
  readonly datasetId: string;
}

export function subscribeWorker(events: EventEmitter, reacting: Reacting): void {
  const { nodes, ownership, flusher, keeper, cleanup, release, moves, voids } = reacting;
  const { playerStatuses, totals, deliverer, mailer, datasetId } = reacting;
  events.on('CellAcquired', ({ lease }) => {
    flusher.own(lease);
    keeper.own(lease);
    cleanup.cleanSoon(lease.cell);
    release.own(lease);
    moves.own(lease);
    voids.own(lease);
    playerStatuses.own(lease);
    playerStatuses.wake();
  });
  events.on('CellLost', ({ cell }) => {
    flusher.disown(cell);
    totals.forget(cell);
    keeper.disown(cell);
    release.disown(cell);
    moves.disown(cell);
    voids.disown(cell);
    playerStatuses.disown(cell);
  });
  events.on('CellAbandoned', ({ cell }) => ownership.abandon(cell));
  // After a change of the installation's data format, the owned cells are claimed again in the new format. If
  // that fails for a cell, the cell is abandoned and prepared again.
  events.on('FormatChanged', () => {
    for (const { cell, fence } of ownership.leases)
      nodes
        .cell(cell)
        .claim({ fence })
        .catch(() => ownership.abandon(cell));
  });

  events.on('CursorAdvanced', ({ lease, cursor }) =>
    nodes.announceCommit({ cell: lease.cell, epoch: lease.token, cursor }),
  );
  events.on('CommitAwaited', ({ cell }) => {
    if (!flusher.commitSoon(cell)) nodes.announceAwaited({ cell, datasetId });
  });
  events.on('LedgerCommitted', (flush) => totals.booked(flush));
  events.on('OutcomesConsumed', ({ cell, games }) => keeper.consumed(cell, games));
  events.on('CommitFoundLater', ({ cell }) => keeper.readAgain(cell));
  events.on('GamesChanged', ({ games }) => keeper.learn(games));
  events.on('RestrictionRead', () => keeper.considerAll());

  events.on('PartnerChangedCell', ({ fromCell, toCell }) => {
    totals.forget(fromCell);
    totals.forget(toCell);
  });

  events.on('EventsRecorded', () => {
    deliverer.wake();
    mailer.wake();
  });
  // The notice of a settlement report was recorded in the same transaction as the report, so the deliverer is
  // woken.
  events.on('SettlementReportMade', () => deliverer.wake());
}
