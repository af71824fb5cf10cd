/**
 * Raffles: a finite pool of tickets that has exactly the prizes of its table, sealed before the first ticket is sold. A raffle is made
 * by the operator, and closes for ever with its last ticket (docs/contract.md has the rules, docs/raffles.md the proof).
 */
import type { KindOfGame, PoolFacts } from './kindOfGame.js';
import { poolRtp, readPrizeTable, renderPrizeTable } from './prizeTable.js';

function required(pool: PoolFacts | undefined): PoolFacts {
  if (pool === undefined) throw new Error('A raffle has no pool');
  return pool;
}

export const RAFFLE: KindOfGame = {
  gameType: 'raffle',
  registeredBy: 'operator',
  outcomeSource: {
    form: 'pool',
    refusesBlocks: 'is a raffle: its outcomes are one sealed pool',
    // Whoever was shown a ticket was shown it after it was booked, so all others are still to be sold.
    resumesAt: (_leasedTo, bookedTo) => bookedTo,
  },
  // A ticket is sold once it is booked: a rebuild sells again what it does not find booked.
  acknowledgement: 'after-ledger-commit',
  lifeCycle: {
    statusOf: ({ isSuspended, sealedAt, closedAt }) => {
      if (closedAt !== null) return 'CLOSED';
      if (isSuspended) return 'SUSPENDED';
      return sealedAt === null ? 'SEALING' : 'ACTIVE';
    },
    // A ticket's requestId never expires. The hour covers clocks that differ, and a pool that was loaded before it was noted as
    // sealed.
    mayBindInLedger: ({ sealedAtMs, boundFromMs }) => sealedAtMs < boundFromMs + 3_600_000,
  },
  mathematics: {
    sheetIdOf: () => undefined,
    render: ({ prizeTable }) => {
      if (prizeTable === null) return undefined;
      const table = readPrizeTable(prizeTable);
      // The pool has each prize exactly as often as its table says: there is nothing to expect.
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
