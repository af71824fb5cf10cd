/**
 * Raffles: a finite pool of tickets with exactly the prizes of its table, sealed before the first ticket is
 * sold. The operator creates a raffle, and it closes permanently with its last ticket (docs/contract.md has
 * the rules, docs/raffles.md the proof).
 */
import type { KindOfGame, PoolFacts } from './kindOfGame.js';
import { poolRtp, readPrizeTable, renderPrizeTable } from './prizeTable.js';

function required(pool: PoolFacts | undefined): PoolFacts {
  if (pool === undefined) throw new Error('The raffle has no pool');
  return pool;
}

export const RAFFLE: KindOfGame = {
  gameType: 'raffle',
  registeredBy: 'operator',
  outcomeSource: {
    form: 'pool',
    refusesBlocks: 'is a raffle, which has one sealed pool instead of blocks',
    // A player sees a ticket only after its commit. A ticket without a commit can therefore be sold again.
    resumesAt: (_leasedTo, bookedTo) => bookedTo,
  },
  // A ticket is sold only when it is committed. A rebuild sells a ticket again if the ledger does not have
  // it.
  acknowledgement: 'after-ledger-commit',
  lifeCycle: {
    statusOf: ({ isSuspended, sealedAt, closedAt }) => {
      if (closedAt !== null) return 'CLOSED';
      if (isSuspended) return 'SUSPENDED';
      return sealedAt === null ? 'SEALING' : 'ACTIVE';
    },
    // The requestId of a ticket never expires. The hour allows for differences between clocks, and for a pool
    // that was loaded before the database recorded it as sealed.
    mayBindInLedger: ({ sealedAtMs, boundFromMs }) => sealedAtMs < boundFromMs + 3_600_000,
  },
  mathematics: {
    sheetIdOf: () => undefined,
    render: ({ prizeTable }) => {
      if (prizeTable === null) return undefined;
      const table = readPrizeTable(prizeTable);
      // The pool has each prize exactly as often as its table says, so there are no statistics.
      return {
        rendered: renderPrizeTable(table),
        statistics: undefined,
        poolSize: table.poolSize,
        poolRtp: poolRtp(table),
      };
    },
    certifiedRtp: ({ prizeTable }) => (prizeTable === null ? null : poolRtp(readPrizeTable(prizeTable))),
  },
  listing: {
    forPartner: (pool) => {
      const { poolSize, commitment } = required(pool);
      return { poolSize, poolCommitment: commitment };
    },
    forOperator: (pool) => ({ ticketsRemaining: required(pool).ticketsRemaining }),
  },
};
