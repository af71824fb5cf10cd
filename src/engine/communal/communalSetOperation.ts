/** The operation `communalSet`: puts the rules of a game's communal progressive in force (lua/communalSet.lua). */
import type { CommunalRules, PotState } from '../../domain/communal.js';
import type { CellOperation, CellRequest } from '../cells/operation.js';
import { readState, writeRules } from '../redis/communalRecords.js';

export interface CommunalSetRequest extends CellRequest {
  readonly partnerId: number;
  readonly gameId: number;
  /** Greater than that of every version before of the game. */
  readonly version: number;
  /** Greater than that of every funding and every version of rules before. */
  readonly intentId: number;
  readonly rules: CommunalRules;
  readonly resetsProgress: boolean;
}

export interface CommunalSetReply {
  /** SPIN_STATUS: dealt (it is in force, or a later version is), lapsed, outboxFull. */
  readonly status: number;
  readonly state: PotState;
}

export const COMMUNAL_SET: CellOperation<CommunalSetRequest, CommunalSetReply> = {
  name: 'communalSet',
  batchMax: 1,
  slots: 1,
  overlapMin: 1,
  // A version is put in force once: a repetition finds it.
  isStored: false,
  waitsForStore: true,
  partnerOf: ({ partnerId }) => partnerId,
  codec: () => ({
    encode: ([request]) => {
      const { gameId, version, partnerId, rules, resetsProgress, intentId } = request!;
      return [gameId, version, writeRules(partnerId, rules), resetsProgress ? 1 : 0, partnerId, intentId];
    },
    decode: (answer) => ({
      replies: [{ status: answer[0]!, state: readState(answer, 1) }],
      entryId: () => 0n,
    }),
  }),
};
