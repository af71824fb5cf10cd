/** The cell operation `setPlayerStatus`, which blocks or unblocks a player (lua/setPlayerStatus.lua). */
import { PLAYER_FLAGS } from '../../domain/layouts.js';
import type { PlayerStatus } from '../../domain/playerStatus.js';
import { playerField } from '../redis/keys.js';
import type { CellOperation, CellRequest } from './operation.js';

export interface PlayerStatusRequest extends CellRequest {
  readonly partnerId: number;
  readonly playerId: string;
  readonly status: PlayerStatus;
  /** Number of this change. It is higher than that of every earlier change of the player. */
  readonly change: number;
}

/** `status` is a value of SPIN_STATUS: `dealt` if the status was set, or `playerUnknown`. */
export interface PlayerStatusReply {
  readonly status: number;
}

export const SET_PLAYER_STATUS: CellOperation<PlayerStatusRequest, PlayerStatusReply> = {
  name: 'setPlayerStatus',
  batchMax: 1,
  slots: 32,
  overlapMin: 1,
  isStored: false,
  waitsForStore: true,
  partnerOf: ({ partnerId }) => partnerId,
  codec: () => ({
    encode: ([request]) => {
      const { partnerId, playerId, status, change } = request!;
      return [playerField(partnerId, playerId), status === 'BLOCKED' ? PLAYER_FLAGS.isBlocked : 0, change];
    },
    decode: (answer) => ({ replies: [{ status: answer[0]! }], entryId: () => 0n }),
  }),
};
