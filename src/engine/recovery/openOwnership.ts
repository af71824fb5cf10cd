/** Creates the ownership of cells for a worker, which prepares each cell before it writes to it. */

import type { OnFailpoint } from '../../platform/failpoints.js';
import { FairQueue } from '../../platform/runtime/fairQueue.js';
import type { Sql } from '../../postgres/connection.js';
import type { CellLease } from '../cells/cells.store.js';
import { Ownership } from '../ledger/ownership.js';
import type { EventEmitter } from '../processEvents.js';
import type { Clocks } from '../redis/clockSkew.js';
import type { RedisNode } from '../redis/node.js';
import type { RedisNodes } from '../redis/nodes.js';
import { ClocksDifferError } from './agreedTime.js';
import { ForeignError } from './handshake.js';
import { LedgerScan } from './ledgerScan.js';
import { restoreHold } from './positionFindings.store.js';
import { prepareCell } from './prepare.js';

/**
 * Maximum number of concurrent rebuilds. Each rebuild holds a connection to Postgres until it has finished.
 */
const REBUILDS_AT_ONCE = 3;

export interface OwnershipParts {
  readonly sql: Sql;
  readonly nodes: RedisNodes;
  /** True if cells are served even if their Redis may lose acknowledged writes. */
  readonly isVolatileServed: boolean;
  /** Clocks to compare. No cell is prepared while they differ. */
  readonly clocks: Clocks;
  /** Returns the reason, found by this process itself, why no cell may be dealt from. */
  readonly problem: () => string | undefined;
  /**
   * Returns false if this build does not support the data format in use. A worker of a newer version then
   * takes over the cells.
   */
  readonly readsFormat: () => boolean;
  readonly knownOutside: (lease: CellLease) => bigint;
  /** Commits the outbox of a cell that has the given token in Redis. */
  readonly drain: (lease: CellLease, token: string) => Promise<CellLease>;
  readonly events: EventEmitter;
  readonly onFailpoint: OnFailpoint;
}

export function openOwnership(parts: OwnershipParts): Ownership {
  const { sql, nodes, events, onFailpoint, clocks } = parts;
  const turns = new FairQueue({ atOnce: REBUILDS_AT_ONCE });
  // There is one scan per node, so that an unresponsive node does not delay the rebuilds of other nodes.
  const scans = new WeakMap<RedisNode, LedgerScan>();
  const scanOf = (node: RedisNode): LedgerScan => {
    const scan = scans.get(node) ?? new LedgerScan(sql);
    scans.set(node, scan);
    return scan;
  };
  const ownership = new Ownership(sql, {
    prepare: (lease) => {
      const store = nodes.cell(lease.cell);
      const volatile = async (): Promise<readonly string[]> =>
        parts.isVolatileServed ? [] : store.node.durability.find();
      return prepareCell(
        {
          sql,
          nodes,
          store,
          clocks,
          hold: async () => parts.problem() ?? restoreHold(sql),
          knownOutside: parts.knownOutside,
          volatile,
          drain: parts.drain,
          turns,
          scan: scanOf(store.node),
          events,
          onFailpoint,
        },
        lease,
      ).catch((error: unknown) => {
        if (error instanceof ClocksDifferError)
          events.emit('ClockRefused', { cell: lease.cell, skewMs: error.skewMs });
        throw error;
      });
    },
    refusal: (error) => (error instanceof ForeignError ? error.message : undefined),
    isPassing: (error) => error instanceof ClocksDifferError,
    events,
    isAble: () => parts.readsFormat() && nodes.all.some((node) => node.isReady),
    changed: async (leases, { hold, lacking }) => {
      const reached = leases.filter(({ cell }) => nodes.of(cell).serverId !== undefined);
      if (leases.length === 0) return [];
      if ((parts.problem() ?? hold) !== undefined) return leases.map(({ cell }) => cell);
      const { closed } = await nodes.closed(new Map(reached.map(({ cell, token }) => [cell, token])));
      return [...closed, ...lacking];
    },
  });
  // After a reconnection to Redis, the connection may lead to another server than before.
  nodes.onIdentified(() => ownership.lookNow());
  return ownership;
}
