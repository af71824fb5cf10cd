/** The operation `forceOutcome`: chooses the outcome of a sandbox player's next spin of a game (lua/forceOutcome.lua). */
import { FORCED_REPLY } from '../../domain/layouts.js';
import { playerAtGame } from '../redis/keys.js';
import { SPIN_STATUS } from '../redis/statuses.js';
import type { CellClient } from './cellClient.js';
import type { CellOperation, CellRequest } from './operation.js';

/** For how long a choice waits for its spin. */
const FORCED_TTL_MS = 3_600_000;
/** Choices of a partner that wait at a time. */
export const FORCED_MAX = 1000;

export interface ForcedOutcome {
  /** Of the partner. */
  readonly cell: number;
  readonly newestMove: number | undefined;
  readonly partnerId: number;
  readonly gameId: number;
  readonly playerId: string;
  /** An outcome of the game. */
  readonly outcomeCode: number;
}

/** Calls under way for a cell. */
const SLOTS = 4;

interface ForceReply {
  /** SPIN_STATUS: dealt (it is done), full. */
  readonly status: number;
  /** Until when the choice stands, milliseconds since the epoch. */
  readonly untilMs: number;
}

const FORCE_OUTCOME: CellOperation<ForcedOutcome & CellRequest, ForceReply> = {
  name: 'forceOutcome',
  batchMax: 1,
  slots: SLOTS,
  overlapMin: 1,
  // A spin may have used the choice up before the call is repeated.
  isStored: true,
  waitsForStore: true,
  partnerOf: ({ partnerId }) => partnerId,
  codec: () => ({
    encode: ([request]) => {
      const { partnerId, gameId, playerId, outcomeCode } = request!;
      return [partnerId, playerAtGame(gameId, partnerId, playerId), outcomeCode, FORCED_TTL_MS, FORCED_MAX];
    },
    decode: (answer) => ({
      replies: [FORCED_REPLY.read(answer)],
      entryId: () => 0n,
    }),
  }),
};

/** @returns until when the choice stands; `full`: as many wait as may; `unavailable`: it is not known to be done. */
export async function forceOutcome(
  cells: Pick<CellClient, 'execute'>,
  wanted: ForcedOutcome,
): Promise<Date | 'full' | 'unavailable'> {
  const outcome = await cells.execute(FORCE_OUTCOME, { ...wanted, waitsForLedger: false });
  if (outcome.kind !== 'reply') return 'unavailable';
  const { status, untilMs } = outcome.reply;
  return status === SPIN_STATUS.dealt ? new Date(untilMs) : 'full';
}
