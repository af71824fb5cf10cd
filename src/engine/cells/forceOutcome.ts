/**
 * The cell operation `forceOutcome`, which sets the outcome of a sandbox player's next spin of a game
 * (lua/forceOutcome.lua).
 */
import { FORCED_REPLY } from '../../domain/layouts.js';
import { playerAtGame } from '../redis/keys.js';
import { SPIN_STATUS } from '../redis/statuses.js';
import type { CellClient } from './cellClient.js';
import type { CellOperation, CellRequest } from './operation.js';

/** Time after which an unused forced outcome expires, in ms. */
const FORCED_TTL_MS = 3_600_000;
/** Maximum number of unused forced outcomes of a partner. */
export const FORCED_MAX = 1000;

export interface ForcedOutcome {
  readonly cell: number;
  readonly newestMove: number | undefined;
  readonly partnerId: number;
  readonly gameId: number;
  readonly playerId: string;
  readonly outcomeCode: number;
}

const SLOTS = 4;

interface ForceReply {
  /** A status of SPIN_STATUS: `dealt` if the forced outcome has been set, or `full`. */
  readonly status: number;
  /** Expiry of the forced outcome, in ms since the Unix epoch. */
  readonly untilMs: number;
}

const FORCE_OUTCOME: CellOperation<ForcedOutcome & CellRequest, ForceReply> = {
  name: 'forceOutcome',
  batchMax: 1,
  slots: SLOTS,
  overlapMin: 1,
  // The reply is stored so that a repeated call returns it. Otherwise the call would set the outcome again,
  // although a spin may already have used it.
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

/**
 * @returns the expiry of the forced outcome; `full` if the partner has too many unused forced outcomes;
 * `unavailable` if it is not certain that the outcome was set
 */
export async function forceOutcome(
  cells: Pick<CellClient, 'execute'>,
  wanted: ForcedOutcome,
): Promise<Date | 'full' | 'unavailable'> {
  const outcome = await cells.execute(FORCE_OUTCOME, { ...wanted, waitsForLedger: false });
  if (outcome.kind !== 'reply') return 'unavailable';
  const { status, untilMs } = outcome.reply;
  return status === SPIN_STATUS.dealt ? new Date(untilMs) : 'full';
}
