/** Creates the partners of a chaos run and their games. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Api } from '../support/api.js';
import { ROOT } from '../support/root.js';
import { addPot } from './bonuses.js';
import type { Target, TargetGame } from './records.js';

const PLAYERS_PER_PARTNER = 67;
const SHEETS = ['penny-sub-cent', 'classic-3-reel'] as const;
/** Games with this PAR sheet have a communal progressive. */
const POT_SHEET = 'classic-3-reel';
const RAFFLE = {
  ticketPriceUsd: 0.5,
  poolSize: 1_000_000,
  prizes: [
    { prizeName: 'Car', prizeTier: 6, valueUsd: 5000, count: 5 },
    { prizeName: 'Mug', prizeTier: 1, valueUsd: 1.25, count: 250_000 },
  ],
};

/**
 * Creates partners in different cells, each with slot games and a raffle that no run sells out. All partners
 * but the last have a communal progressive. The budget of the second partner runs out.
 */
export async function makeTargets(api: Api, partners: number): Promise<Target[]> {
  const targets: Target[] = [];
  for (let i = 1; i <= partners; i++) {
    const { partnerId, key } = await api.newPartner(`chaos-${i}`);
    const games: TargetGame[] = [];
    for (const name of SHEETS) {
      const sheet = JSON.parse(readFileSync(join(ROOT, 'test', 'par-sheets', `${name}.json`), 'utf8')) as {
        denominationUsd: number;
      };
      const gameId = await api.newGame(key, name, sheet);
      const hasPot = name === POT_SHEET && i < partners;
      const tiers = hasPot ? { tiers: await addPot(api, gameId, i === 2) } : {};
      games.push({ gameId, wagerUsd: sheet.denominationUsd, ...tiers });
    }
    games.push(await newRaffle(api, partnerId, 'raffle'));
    const players = Array.from({ length: PLAYERS_PER_PARTNER }, (_, n) => `player-${n + 1}`);
    targets.push({ partnerId, key, games, players });
  }
  return targets;
}

async function newRaffle(api: Api, partnerId: number, name: string): Promise<TargetGame> {
  const gameId = await api.newRaffle(partnerId, name, RAFFLE);
  return { gameId, wagerUsd: RAFFLE.ticketPriceUsd, isRaffle: true };
}

/**
 * Replaces raffles that a restore has suspended.
 * @returns the ids of the suspended raffles
 */
export async function replaceRaffles(
  api: Api,
  targets: readonly Target[],
  name: string,
): Promise<ReadonlySet<number>> {
  const suspended = new Set<number>();
  for (const { partnerId, games } of targets) {
    const at = games.findIndex(({ isRaffle }) => isRaffle === true);
    suspended.add(games[at]!.gameId);
    games[at] = await newRaffle(api, partnerId, name);
  }
  return suspended;
}
