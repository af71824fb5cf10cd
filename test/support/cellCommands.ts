/** Sends a command to a cell in one call, without the tries of CellClient: for tests of what the script itself does. */
import { ADJUST, type AdjustRequest } from '../../src/cells/adjust.js';
import type { IntentReply } from '../../src/cells/intents.js';
import type { Scripts } from '../../src/redis/scripts.js';

/** @throws as the script does. */
export async function adjustOnce(
  scripts: Scripts,
  request: Omit<AdjustRequest, 'waitsForLedger'> & { readonly epoch: string },
): Promise<IntentReply> {
  const { encode, decode } = ADJUST.codec();
  const whole = { ...request, waitsForLedger: false };
  const { cell, epoch } = request;
  const head = { cell, epoch, operationField: '', operationId: Buffer.alloc(0) };
  const reply = await scripts.command(ADJUST.name, { ...head, args: encode([whole]) });
  return decode(reply, [whole]).replies[0]!;
}
