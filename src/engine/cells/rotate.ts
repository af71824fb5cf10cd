/**
 * The cell operation `rotate`, which voids the sealed outcomes of a slot game that have not been dealt
 * (lua/rotate.lua).
 *
 * The rotation is first recorded in Postgres (rotations.store.ts) with the index up to which the game is
 * sealed. The script then carries out the rotation in Redis, and a note in the outbox brings it to the
 * ledger. If the process stops after the record and before the script, the worker that leases the game's next
 * block completes the rotation, so that the void is logged before that block.
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
  // The reply is stored for a repeated call, because a second execution of the script would find no outcomes
  // left to void.
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

/** A rotation that is on record and not committed yet. It will be carried out. */
export interface PendingRotation {
  readonly pending: RotationOnRecord;
}

/**
 * @param deadlineMs maximum time for the work in Redis, including retries
 * @returns the rotation once it is committed
 * @throws the error of Postgres if the rotation was not recorded
 */
export async function rotate(
  cells: Cells,
  rotations: Pick<Rotations, 'record' | 'pending' | 'booked'>,
  { actor, gameId, reason }: { readonly actor: string; readonly gameId: number; readonly reason: string },
  deadlineMs: number,
): Promise<CommittedRotation | PendingRotation> {
  const recorded = await rotations.record(actor, gameId, reason);
  // A failure after the record does not withdraw the rotation.
  const rotated = await carryOut(cells, recorded, rotations, deadlineMs).catch(() => undefined);
  return rotated ?? { pending: recorded };
}

/**
 * Carries out a game's recorded rotation, if there is one that is not committed yet.
 * @throws the error of Postgres; Error if the rotation is not committed within the deadline
 */
export async function finishRotation(
  cells: Cells,
  rotations: Pick<Rotations, 'pending' | 'booked'>,
  gameId: number,
  deadlineMs: number,
): Promise<void> {
  const recorded = await rotations.pending(gameId);
  if (recorded === undefined) return;
  if ((await carryOut(cells, recorded, rotations, deadlineMs)) === undefined)
    throw new Error(`The rotation of game ${gameId} is not committed yet`);
}

/** @returns undefined if the rotation is not committed within the deadline */
async function carryOut(
  cells: Cells,
  recorded: RotationOnRecord,
  rotations: Pick<Rotations, 'pending' | 'booked'>,
  deadlineMs: number,
): Promise<CommittedRotation | undefined> {
  const deadline = performance.now() + deadlineMs;
  let onRecord = recorded;
  while (performance.now() < deadline) {
    const outcome = await cells.execute(ROTATE, { ...onRecord, waitsForLedger: true, deadline });
    if (outcome.kind === 'epochMoved') {
      await pause(POLL_MS);
      // The record is read again, because a rebuild may have voided the sealed outcomes and begun another
      // epoch.
      onRecord = (await rotations.pending(recorded.gameId)) ?? onRecord;
      const voided = await rotations.booked(recorded);
      if (voided !== undefined) return voided;
      continue;
    }
    if (outcome.kind !== 'reply' || outcome.reply.status !== SPIN_STATUS.dealt) return undefined;
    // If another call has carried out the rotation, or all outcomes have been dealt, this call made no ledger
    // entry that its reply could wait for. The commit is then polled.
    for (;;) {
      const booked = await rotations.booked(onRecord);
      if (booked !== undefined) return booked;
      if (performance.now() >= deadline) return undefined;
      await pause(POLL_MS);
    }
  }
  return undefined;
}
