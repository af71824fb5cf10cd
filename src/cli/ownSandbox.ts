/**
 * `spindle sandbox next-outcome`: chooses the next outcome of a sandbox player over the partner API, with a
 * sandbox partner's key.
 */
import { bodyOf, type PartnerClient } from '../api/client/apiClients.js';
import { UsageError } from './command.js';
import { keyValues } from './output.js';

export async function chooseNextOutcome(
  client: PartnerClient,
  [game, playerId, combination]: readonly [game: string, playerId: string, combination: string],
  { json }: { readonly json?: true },
): Promise<void> {
  const numberOf = (name: string, text: string): number => {
    if (!/^\d{1,10}$/.test(text)) throw new UsageError(`${name} must be a whole number`);
    return Number(text);
  };
  const body = {
    gameId: numberOf('GAME_ID', game),
    playerId,
    combinationIndex: numberOf('COMBINATION', combination),
  };
  const chosen = await bodyOf(client.POST('/sandbox/next-outcome', { body }));
  process.stdout.write(json ? `${JSON.stringify(chosen)}\n` : keyValues(chosen));
}
