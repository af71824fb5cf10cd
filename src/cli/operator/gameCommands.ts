/**
 * `spindle game`, `spindle blocks`, `spindle sheet`: manage games, their outcome blocks and their PAR sheets.
 */
import { Option } from 'commander';
import {
  GAMES,
  JUDGEMENTS,
  RESUME_GAME,
  RETIRE_SHEET,
  SUSPEND_GAME,
  VOID_OUTCOMES,
  windowsFrom,
} from '../../api/client/views/games.js';
import { rtpVerdict } from '../../domain/rtp.js';
import { wholeNumber } from '../command.js';
import { keyValues, listOf } from '../output.js';
import {
  forReason,
  type OperatorCommands,
  pageLine,
  type Schemas,
  withPages,
  withReason,
  withWatch,
} from './call.js';

export function addGameCommands(commands: OperatorCommands): void {
  const games = commands.group('game', 'games');
  const list = commands.request('list', 'list games with their queues and totals', games, 'GET /games', {
    plain: (body) => listOf(GAMES, body.games) + pageLine(body, 'games'),
  });
  withWatch(withPages(list, 'games')).option(
    '--partner <PARTNER>',
    'only games of this partner, by id or slug',
  );
  commands.request('show <GAME>', 'show a game with its queue and totals', games, 'GET /games/{id}', {
    plain: gameLines,
  });
  commands
    .request(
      'rtp <GAME>',
      'show the return to player of a game, compared with the variance of its PAR sheet',
      games,
      'GET /games/{id}/rtp',
      { plain: rtpLines },
    )
    .addOption(new Option('--days <N>', 'also show the judgements of this many days').argParser(wholeNumber));
  const plain = gameLines;
  withReason(
    commands.change('suspend <GAME>', 'suspend a game, which then refuses spins', games, SUSPEND_GAME, {
      plain,
    }),
  );
  withReason(commands.change('resume <GAME>', 'activate a suspended game', games, RESUME_GAME, { plain }));
  forReason(
    commands.change(
      'rotate <GAME>',
      'void the sealed outcomes of a game that are not dealt yet',
      games,
      VOID_OUTCOMES,
    ),
  );

  const blocks = commands.group('blocks', 'outcome blocks');
  commands
    .request('make <GAME>', 'make more blocks than the demand requires', blocks, 'POST /games/{id}/blocks', {
      body: ({ count }) => ({ count }),
    })
    .addOption(new Option('--count <N>', 'number of blocks').argParser(wholeNumber).default(1));
  const sheets = commands.group('sheet', 'PAR sheets');
  withReason(
    commands.change(
      'retire <SHEET_ID>',
      'retire a PAR sheet, so that no new game can use it',
      sheets,
      RETIRE_SHEET,
    ),
  );
}

export const hasPool = (game: Pick<Schemas['OperatorGame'], 'poolSize'>): boolean =>
  game.poolSize !== undefined;

/** Formats a game without the properties that do not apply to its kind. */
export function gameLines(game: Schemas['ChangedGame'] | Schemas['RaffleResponse']): string {
  const { minWagerUsd, maxWagerUsd, wagerIncrementUsd, ...members } = game;
  const { queue, ...common } = members as Partial<Schemas['ChangedGame']>;
  if (!hasPool(game)) return keyValues({ ...common, wagerUsd: minWagerUsd, queue });
  const { parSheetId, ...raffle } = common;
  return keyValues({ ...raffle, ticketPriceUsd: minWagerUsd });
}

/** Formats the judgements of a game: what they say in words, and the figures below. */
export function rtpLines({ windows, history, ...members }: Schemas['GameRtp']): string {
  const from = members.expected?.normalFromSpins;
  const verdicts = windows.map(({ window, state }) => `${window}: ${rtpVerdict(state, from ?? 0)}.\n`);
  return (
    verdicts.join('') +
    keyValues(members) +
    listOf(windowsFrom(from), windows) +
    (history === undefined ? '' : listOf(JUDGEMENTS, history))
  );
}
