/**
 * Cell operation `communalSet`: puts the rules of a game's communal progressive in force
 * (lua/communalSet.lua).
 */
import type { CommunalRules, PotState } from '../../domain/communal.js';
import type { CellOperation, CellRequest } from '../cells/operation.js';
import { readState, writeRules } from '../redis/communalRecords.js';

export interface CommunalSetRequest extends CellRequest {
  readonly partnerId: number;
  readonly gameId: number;
  /** Version of the rules. It is greater than all earlier versions of the game. */
  readonly version: number;
  /** Number of the intent. It is greater than the numbers of all earlier fundings and versions of rules. */
  readonly intentId: number;
  readonly rules: CommunalRules;
  readonly resetsProgress: boolean;
}

export interface CommunalSetReply {
  /** A status of SPIN_STATUS: dealt (this version is in force), superseded, lapsed or outboxFull. */
  readonly status: number;
  readonly state: PotState;
}

export const COMMUNAL_SET: CellOperation<CommunalSetRequest, CommunalSetReply> = {
  name: 'communalSet',
  batchMax: 1,
  slots: 1,
  overlapMin: 1,
  // The reply need not be stored, because a version comes into force only once and a repeated call finds it
  // in force.
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
