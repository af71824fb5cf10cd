/**
 * Simulates a partner that keeps the block threads busy with as many games as its default limits allow, on
 * PAR sheets with extreme decimals.
 */
import type { Client } from '../support/client.js';
import { load, portOf, spinRequest } from '../support/load.js';
import { parSheet } from '../support/sheets.js';

const GAMES = 80;
const COMBINATIONS = 52;
const CONNECTIONS = 32;

/**
 * Makes a PAR sheet of 9.4 KB with probabilities and weights from 1e-300 to 1 that have no common divisor.
 */
function extremeSheet(): object {
  const winning = Array.from({ length: COMBINATIONS }, (_, i) => ({
    reelSymbols: ['A'],
    comboString: 'A',
    payMultiplier: 1 + Math.floor(i / 2),
    comboProbability: (1.234567890123457 + i / 97) * 10 ** -(2 + ((i * 37) % 299)),
    tierId: 1,
    displayWeight: (1.234567890123457 + i / 89) * 10 ** ((i * 41) % 301),
  }));
  const won = winning.reduce((sum, { comboProbability }) => sum + comboProbability, 0);
  const none = { ...winning[0]!, payMultiplier: 0, comboProbability: 1 - won, tierId: 0 };
  return {
    gameTitle: 'Extreme',
    manufacturer: 'Nobody',
    numReels: 1,
    virtualStopsPerReel: [1],
    denominationUsd: 1,
    certifiedRtp: winning.reduce((sum, each) => sum + each.comboProbability * each.payMultiplier, 0),
    symbols: [{ name: 'A', display: 'A' }],
    tiers: [
      { tierId: 0, name: 'None', probability: 1 - won, payMultiplier: 0 },
      { tierId: 1, name: 'Some', probability: won, payMultiplier: 1 },
    ],
    combinations: [none, ...winning],
  };
}

/**
 * Lets another partner spin a new game as fast as possible while the games on extreme sheets are made.
 * @returns the number of responses by error code; dealt spins are counted under `200`
 */
export async function playBesideExtremeSheets(
  client: Client,
  forSeconds: number,
): Promise<Record<string, number>> {
  const [attacker, victim] = [await client.newPartner(), await client.newPartner()];
  const sheet = extremeSheet();
  const { parSheetId } = (await client.partner('POST', '/par-sheets', attacker.key, sheet)).body;
  if (parSheetId === undefined) throw new Error('the sheet of extreme decimals was refused');
  const gameId = await client.newGame(victim.key, parSheet('classic-3-reel'));
  const answers: Record<string, number> = {};
  const endMs = performance.now() + forSeconds * 1000;
  const next = (): Buffer | undefined =>
    performance.now() > endMs
      ? undefined
      : spinRequest(victim.key, JSON.stringify({ gameId, playerId: 'alice', wagerUsd: 0.25 }));
  const spinning = load({
    port: portOf(client.base),
    connections: CONNECTIONS,
    next,
    onAnswer({ status, text }) {
      const outcome = status === 200 ? '200' : (JSON.parse(text) as { errorCode: string }).errorCode;
      answers[outcome] = (answers[outcome] ?? 0) + 1;
    },
  });
  for (let i = 0; i < GAMES; i++) {
    // Each game has a PAR sheet of its own, because a known sheet is not compiled again.
    const sheetOfGame = { ...sheet, gameTitle: `Extreme ${i}` };
    const uploaded = await client.partner('POST', '/par-sheets', attacker.key, sheetOfGame);
    const body = {
      parSheetId: uploaded.body.parSheetId,
      displayName: `Extreme ${i}`,
      configName: `EXTREME_${i}`,
    };
    const made = await client.partner('POST', '/games', attacker.key, body);
    if (made.status !== 201) throw new Error(`game ${i} of the extreme sheets: ${made.text}`);
  }
  await spinning;
  return answers;
}
