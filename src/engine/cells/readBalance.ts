/** The operation `readBalance`: the balance of a player after everything that its cell has done (lua/readBalance.lua). */
import { BALANCE_REPLY } from '../../domain/layouts.js';
import { playerField } from '../redis/keys.js';
import { SPIN_STATUS } from '../redis/statuses.js';
import type { CellClient } from './cellClient.js';
import type { CellOperation, CellRequest } from './operation.js';

export interface BalanceQuestion {
  /** Of the partner. */
  readonly cell: number;
  readonly newestMove: number | undefined;
  readonly partnerId: number;
  readonly playerId: string;
}

interface BalanceReply {
  /** SPIN_STATUS: dealt (it is done), playerUnknown. */
  readonly status: number;
  readonly balanceMicros: number;
}

export const READ_BALANCE: CellOperation<BalanceQuestion & CellRequest, BalanceReply> = {
  name: 'readBalance',
  batchMax: 1,
  slots: 4,
  overlapMin: 1,
  isStored: false,
  waitsForStore: true,
  partnerOf: ({ partnerId }) => partnerId,
  codec: () => ({
    encode: ([request]) => [playerField(request!.partnerId, request!.playerId)],
    decode: (answer) => ({ replies: [BALANCE_REPLY.read(answer)], entryId: () => 0n }),
  }),
};

/** @returns micro-USD; `unknownPlayer`: the player never spun; `unavailable`: the cell does not answer now. */
export async function readBalance(
  cells: Pick<CellClient, 'execute'>,
  question: BalanceQuestion,
): Promise<number | 'unknownPlayer' | 'unavailable'> {
  const outcome = await cells.execute(READ_BALANCE, { ...question, waitsForLedger: false });
  if (outcome.kind !== 'reply') return 'unavailable';
  const { status, balanceMicros } = outcome.reply;
  return status === SPIN_STATUS.dealt ? balanceMicros : 'unknownPlayer';
}
