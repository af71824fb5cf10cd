/**
 * Sends a command to a cell in one call, without the retries of CellClient, to test what the script itself
 * does.
 */
import { ADJUST, type AdjustRequest } from '../../src/engine/cells/adjustOperation.js';
import type { IntentReply } from '../../src/engine/cells/intents.js';
import type { CellOperation, CellRequest } from '../../src/engine/cells/operation.js';
import type { Scripts } from '../../src/engine/redis/scripts.js';

type Sent<Request extends CellRequest> = Omit<Request, 'waitsForLedger'> & { readonly epoch: string };

/**
 * @param reachId the newest entry whose request id is in the filters of the caller
 * @throws the errors of the script
 */
export async function commandOnce<Request extends CellRequest, Reply>(
  scripts: Scripts,
  operation: CellOperation<Request, Reply>,
  request: Sent<Request>,
  reachId = 0n,
): Promise<Reply> {
  const { encode, decode } = operation.codec();
  const whole = { ...request, waitsForLedger: false } as unknown as Request;
  const { cell, epoch } = request;
  const reach = Buffer.alloc(8);
  reach.writeBigUInt64LE(reachId);
  const head = { cell, epoch, reach, operationField: '', operationId: Buffer.alloc(0) };
  const reply = await scripts.command(operation.name, { ...head, args: encode([whole]) });
  return decode(reply, [whole]).replies[0]!;
}

/**
 * Sends an adjustment in one call.
 * @throws the errors of the script
 */
export const adjustOnce = (scripts: Scripts, request: Sent<AdjustRequest>): Promise<IntentReply> =>
  commandOnce(scripts, ADJUST, request);
