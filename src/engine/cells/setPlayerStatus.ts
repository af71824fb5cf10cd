/** The operation `setPlayerStatus`: blocks a player, or lets it play again (lua/setPlayerStatus.lua). */
import { PLAYER_FLAGS } from '../../domain/layouts.js';
import type { PlayerStatus } from '../../domain/playerStatus.js';
import { playerField } from '../redis/keys.js';
import type { CellOperation, CellRequest } from './operation.js';

export interface PlayerStatusRequest extends CellRequest {
  readonly partnerId: number;
  readonly playerId: string;
  readonly status: PlayerStatus;
  /** Greater than that of every change of the player before. */
  readonly change: number;
}

/** `status`: SPIN_STATUS: dealt (it is done), playerUnknown. */
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
