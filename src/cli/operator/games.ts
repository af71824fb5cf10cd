/** `spindle game`, `spindle blocks`, `spindle sheet`: games, their outcome blocks and the PAR sheets that they are built on. */
import { Option } from 'commander';
import { bodyOf } from '../../client/client.js';
import { whole, wholeNumber } from '../command.js';
import { keyValues } from '../output.js';
import type { Call, OperatorCommands, Schemas } from './call.js';

/** Adds the commands to the program. */
export function addGameCommands(commands: OperatorCommands): void {
  const games = commands.group('game', 'Games');
  commands.add('show <GAME_ID>', 'a game with its queue and its totals', showGame, games);
  commands.add('suspend <GAME_ID>', 'refuse its spins', setStatus('SUSPENDED'), games);
  commands.add('resume <GAME_ID>', 'make it active again', setStatus('ACTIVE'), games);

  const blocks = commands.group('blocks', 'Outcome blocks');
  commands
    .add('make <GAME_ID>', 'make blocks beyond what demand calls for', makeBlocks, blocks)
    .addOption(new Option('--count <N>', 'how many').argParser(wholeNumber).default(1));
  const sheets = commands.group('sheet', 'PAR sheets');
  commands.add('retire <SHEET_ID>', 'let no further game be registered on it', retireSheet, sheets);
}

/** The API shows a pool of the games whose outcomes are finite. */
export const hasPool = (game: Pick<Schemas['OperatorGame'], 'poolSize'>): boolean =>
  game.poolSize !== undefined;

/** The lines of a game, without the members that mean nothing for its kind. */
export function gameLines(game: Schemas['OperatorGame'] | Schemas['RaffleResponse']): string {
  const { minWagerUsd, maxWagerUsd, wagerIncrementUsd, ...members } = game;
  const { queue, ...common } = members as Partial<Schemas['OperatorGame']>;
  if (!hasPool(game)) return keyValues({ ...common, wagerUsd: minWagerUsd, queue });
  const { parSheetId, ...raffle } = common;
  return keyValues({ ...raffle, ticketPriceUsd: minWagerUsd });
}

async function showGame({ client, words, print }: Call): Promise<void> {
  const params = { path: { id: whole(words[0], 'GAME_ID') } };
  print(await bodyOf(client.GET('/games/{id}', { params })), gameLines);
}

const setStatus =
  (status: 'ACTIVE' | 'SUSPENDED') =>
  async ({ client, words, print }: Call): Promise<void> => {
    const params = { path: { id: whole(words[0], 'GAME_ID') } };
    print(await bodyOf(client.PATCH('/games/{id}', { params, body: { status } })), gameLines);
  };

async function makeBlocks({ client, words, options, print }: Call): Promise<void> {
  const params = { path: { id: whole(words[0], 'GAME_ID') } };
  const body = { count: options.count as number };
  print(await bodyOf(client.POST('/games/{id}/blocks', { params, body })), keyValues);
}

async function retireSheet({ client, words, print }: Call): Promise<void> {
  const params = { path: { id: whole(words[0], 'SHEET_ID') } };
  print(await bodyOf(client.PATCH('/par-sheets/{id}', { params, body: { status: 'RETIRED' } })), keyValues);
}
