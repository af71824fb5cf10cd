/**
 * The operation `rotate`: voids what is sealed of a slot game and not dealt (lua/rotate.lua). On record in Postgres first (postgres/games.ts),
 * which says up to where the game is sealed; then in Redis, whose note brings it to the ledger. Ended in between, the call made again
 * voids what is sealed by then.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { RecordOf } from '../domain/layout.js';
import { ROTATE_REPLY } from '../domain/layouts.js';
import type { RotationOnRecord } from '../postgres/games.js';
import { SPIN_STATUS } from '../redis/statuses.js';
import type { CellClient } from './cellClient.js';
import type { CellOperation, CellRequest } from './operation.js';

type RotateReply = RecordOf<typeof ROTATE_REPLY>;

const ROTATE: CellOperation<RotationOnRecord & CellRequest, RotateReply> = {
  name: 'rotate',
  batchMax: 1,
  slots: 4,
  overlapMin: 1,
  // A repetition would tell of nothing that is left to void.
  isStored: true,
  waitsForStore: true,
  partnerOf: ({ partnerId }) => partnerId,
  codec: () => ({
    encode: ([request]) => {
      const { partnerId, gameId, sealedTo } = request!;
      return [partnerId, gameId, sealedTo];
    },
    decode: (answer) => {
      const reply = ROTATE_REPLY.read(answer);
      return { replies: [reply], entryId: () => reply.id };
    },
  }),
};

const POLL_MS = 50;

/**
 * @param record puts the rotation on record
 * @param deadlineMs how long the stores are tried, all tries included
 * @returns the indices that are voided, the last one exclusive, once the ledger has it; `unavailable`: it is not known to be done
 * @throws what Postgres throws
 */
export async function rotate(
  cells: Pick<CellClient, 'execute'>,
  record: () => Promise<RotationOnRecord>,
  deadlineMs: number,
): Promise<{ fromIndex: number; toIndex: number } | 'unavailable'> {
  const deadline = performance.now() + deadlineMs;
  while (performance.now() < deadline) {
    // Read anew each time: a rebuild has voided what was sealed, and begun another epoch.
    const onRecord = await record();
    const outcome = await cells.execute(ROTATE, { ...onRecord, waitsForLedger: true, deadline });
    if (outcome.kind === 'epochMoved') {
      await pause(POLL_MS);
      continue;
    }
    if (outcome.kind !== 'reply' || outcome.reply.status !== SPIN_STATUS.dealt) return 'unavailable';
    const { fromIndex, toIndex } = outcome.reply;
    return { fromIndex, toIndex };
  }
  return 'unavailable';
}
