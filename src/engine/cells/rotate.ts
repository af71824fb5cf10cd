/**
 * The operation `rotate`: voids what is sealed of a slot game and not dealt (lua/rotate.lua). On record in Postgres first
 * (rotations.store.ts), which says up to where the game is sealed; then in Redis, whose note brings it to the ledger. Ended in
 * between, the worker that is to lease the game's next block carries it out: the void is logged before that block.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { RecordOf } from '../../domain/layout.js';
import { ROTATE_REPLY } from '../../domain/layouts.js';
import type { CommittedRotation, RotationOnRecord, Rotations } from '../blocks/rotations.store.js';
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

type Cells = Pick<CellClient, 'execute'>;

/**
 * Voids what an operator wants voided of a game.
 * @param deadlineMs how long the stores are tried, all tries included
 * @returns what is voided, once the ledger has it; `unavailable`: it is not known to be done
 * @throws what Postgres throws
 */
export async function rotate(
  cells: Cells,
  rotations: Pick<Rotations, 'record' | 'booked'>,
  { actor, gameId, reason }: { readonly actor: string; readonly gameId: number; readonly reason: string },
  deadlineMs: number,
): Promise<CommittedRotation | 'unavailable'> {
  const rotated = await carryOut(cells, () => rotations.record(actor, gameId, reason), rotations, deadlineMs);
  return rotated ?? 'unavailable';
}

/**
 * Carries out the rotation of a game that is on record and not booked, if there is one.
 * @throws what Postgres throws; Error where it is not known to be done within the deadline
 */
export async function finishRotation(
  cells: Cells,
  rotations: Pick<Rotations, 'pending' | 'booked'>,
  gameId: number,
  deadlineMs: number,
): Promise<void> {
  const rotated = await carryOut(cells, () => rotations.pending(gameId), rotations, deadlineMs);
  if (rotated === 'unavailable') throw new Error(`The rotation of game ${gameId} is not booked yet`);
}

/** @returns undefined: nothing is on record */
async function carryOut(
  cells: Cells,
  record: () => Promise<RotationOnRecord | undefined>,
  rotations: Pick<Rotations, 'booked'>,
  deadlineMs: number,
): Promise<CommittedRotation | 'unavailable' | undefined> {
  const deadline = performance.now() + deadlineMs;
  while (performance.now() < deadline) {
    // Read anew each time: a rebuild has voided what was sealed, and begun another epoch.
    const onRecord = await record();
    if (onRecord === undefined) return undefined;
    const outcome = await cells.execute(ROTATE, { ...onRecord, waitsForLedger: true, deadline });
    if (outcome.kind === 'epochMoved') {
      await pause(POLL_MS);
      continue;
    }
    if (outcome.kind !== 'reply' || outcome.reply.status !== SPIN_STATUS.dealt) return 'unavailable';
    // Where another call has voided it, or all is dealt, the reply waited for no entry of the ledger.
    for (;;) {
      const booked = await rotations.booked(onRecord);
      if (booked !== undefined) return booked;
      if (performance.now() >= deadline) return 'unavailable';
      await pause(POLL_MS);
    }
  }
  return 'unavailable';
}
