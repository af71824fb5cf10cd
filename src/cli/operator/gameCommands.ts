/**
 * `spindle game`, `spindle blocks`, `spindle sheet`: manage games, their outcome blocks and their PAR sheets.
 */
import { Option } from 'commander';
import { bodyOf } from '../../api/client/apiClients.js';
import { rtpVerdict } from '../../domain/rtp.js';
import { whole, wholeNumber } from '../command.js';
import { withYes } from '../confirm.js';
import { keyValues, type TableColumn, table } from '../output.js';
import {
  auditReasonOf,
  type Call,
  forReason,
  type OperatorCommands,
  pageLine,
  pageOf,
  type Schemas,
  withPages,
  withReason,
  withWatch,
} from './call.js';
import { gameIdOf, named, partnerIdOf } from './names.js';

/** Formats a fraction as a percentage with two decimals. */
const percent = (share: number | null | undefined): string | null =>
  share === null || share === undefined ? null : `${(share * 100).toFixed(2)} %`;

const COLUMNS: readonly TableColumn<Schemas['OperatorGame']>[] = [
  { heading: 'id', value: (row) => row.gameConfigId, kind: 'number' },
  { heading: 'partner', value: (row) => row.partnerId, kind: 'number' },
  { heading: 'config', value: (row) => row.configName },
  { heading: 'type', value: (row) => row.gameType },
  { heading: 'status', value: (row) => row.status },
  { heading: 'wager USD', value: (row) => row.minWagerUsd, kind: 'usd' },
  { heading: 'ready blocks', value: (row) => row.queue.readyBlocks, kind: 'number' },
  { heading: 'ready outcomes', value: (row) => row.queue.outcomesReady, kind: 'number' },
  { heading: 'spins', value: (row) => row.totals.spins, kind: 'number' },
  { heading: 'RTP', value: (row) => percent(row.totals.actualRtp), kind: 'number' },
  { heading: 'certified', value: (row) => percent(row.expected?.rtp), kind: 'number' },
];

export function addGameCommands(commands: OperatorCommands): void {
  const games = commands.group('game', 'games');
  const list = withPages(
    commands.add('list', 'list games with their queues and totals', listGames, games),
    'games',
  );
  withWatch(list).option('--partner <PARTNER>', 'only games of this partner, by id or slug');
  commands.add('show <GAME>', 'show a game with its queue and totals', showGame, games);
  commands
    .add(
      'rtp <GAME>',
      'show the return to player of a game, compared with the variance of its PAR sheet',
      showRtp,
      games,
    )
    .addOption(new Option('--days <N>', 'also show the judgements of this many days').argParser(wholeNumber));
  withReason(
    withYes(
      commands.add(
        'suspend <GAME>',
        'suspend a game, which then refuses spins',
        setStatus('SUSPENDED'),
        games,
      ),
    ),
  );
  withReason(commands.add('resume <GAME>', 'activate a suspended game', setStatus('ACTIVE'), games));
  forReason(
    withYes(
      commands.add(
        'rotate <GAME>',
        'void the sealed outcomes of a game that are not dealt yet',
        rotateGame,
        games,
      ),
    ),
  );

  const blocks = commands.group('blocks', 'outcome blocks');
  commands
    .add('make <GAME>', 'make more blocks than the demand requires', makeBlocks, blocks)
    .addOption(new Option('--count <N>', 'number of blocks').argParser(wholeNumber).default(1));
  const sheets = commands.group('sheet', 'PAR sheets');
  withReason(
    withYes(
      commands.add(
        'retire <SHEET_ID>',
        'retire a PAR sheet, so that no new game can use it',
        retireSheet,
        sheets,
      ),
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

const RTP_WINDOWS: readonly TableColumn<Schemas['RtpWindow']>[] = [
  { heading: 'window', value: (row) => row.window },
  { heading: 'from', value: (row) => row.from },
  { heading: 'to', value: (row) => row.to },
  { heading: 'spins', value: (row) => row.spins, kind: 'number' },
  { heading: 'RTP', value: (row) => row.actualRtp, kind: 'number' },
  { heading: 'band of 95 %', value: (row) => row.band95?.join(' to ') },
  { heading: 'band of 99 %', value: (row) => row.band99?.join(' to ') },
  { heading: 'z', value: (row) => row.z, kind: 'number' },
  { heading: 'nats', value: (row) => row.nats, kind: 'number' },
  { heading: 'state', value: (row) => row.state },
];
const RTP_RECORDS: readonly TableColumn<Schemas['RtpRecord']>[] = [
  { heading: 'day', value: (row) => row.day },
  { heading: 'window', value: (row) => row.window },
  { heading: 'spins', value: (row) => row.spins, kind: 'number' },
  { heading: 'z', value: (row) => row.z, kind: 'number' },
  { heading: 'nats', value: (row) => row.nats, kind: 'number' },
  { heading: 'state', value: (row) => row.state },
];

async function showRtp({ client, words, options, print }: Call): Promise<void> {
  const path = { id: await gameIdOf(client, words[0]!) };
  const query = options.days === undefined ? {} : { days: options.days as number };
  print(await bodyOf(client.GET('/games/{id}/rtp', { params: { path, query } })), rtpLines);
}

/** Formats the judgements of a game: what they say in words, and the figures below. */
export function rtpLines({ windows, history, ...members }: Schemas['GameRtp']): string {
  const from = members.expected?.normalFromSpins ?? 0;
  const verdicts = windows.map(({ window, state }) => `${window}: ${rtpVerdict(state, from)}.\n`);
  const shown = windows.map((row) => (row.spins < from ? { ...row, band95: null, band99: null } : row));
  return (
    verdicts.join('') +
    keyValues(members) +
    table(RTP_WINDOWS, shown) +
    (history === undefined ? '' : table(RTP_RECORDS, history))
  );
}

async function listGames(call: Call): Promise<void> {
  const { client, options, print } = call;
  const { partner } = options as { partner?: string };
  const filter = partner === undefined ? {} : { partnerId: await partnerIdOf(client, partner, '--partner') };
  const query = { ...pageOf(call), ...filter };
  print(
    await bodyOf(client.GET('/games', { params: { query } })),
    (body) => table(COLUMNS, body.games) + pageLine(body, 'games'),
  );
}

async function showGame({ client, words, print }: Call): Promise<void> {
  const params = { path: { id: await gameIdOf(client, words[0]!) } };
  print(await bodyOf(client.GET('/games/{id}', { params })), gameLines);
}

const setStatus =
  (status: 'ACTIVE' | 'SUSPENDED') =>
  async (call: Call): Promise<void> => {
    const { client, words, print, confirm } = call;
    const params = { path: { id: await gameIdOf(client, words[0]!) } };
    // The question reads nothing from the game's cell, so that a game can be suspended while Redis is away.
    if (status === 'SUSPENDED')
      await confirm(
        `All plays of game ${named(words[0]!, params.path.id)} will be refused until the game is resumed. Open rounds can be finished.`,
      );
    const body = { status, ...auditReasonOf(call) };
    print(await bodyOf(client.PATCH('/games/{id}', { params, body })), gameLines);
  };

async function rotateGame({ client, words, options, print, confirm }: Call): Promise<void> {
  const id = await gameIdOf(client, words[0]!);
  await confirm(
    `This will permanently void every sealed outcome of game ${id} that is not dealt yet. The game continues with new outcomes.`,
  );
  const call = { params: { path: { id } }, body: { reason: String(options.reason) } };
  print(await bodyOf(client.POST('/games/{id}/rotate', call)), keyValues);
}

async function makeBlocks({ client, words, options, print }: Call): Promise<void> {
  const params = { path: { id: await gameIdOf(client, words[0]!) } };
  const body = { count: options.count as number };
  print(await bodyOf(client.POST('/games/{id}/blocks', { params, body })), keyValues);
}

async function retireSheet(call: Call): Promise<void> {
  const { client, words, print, confirm } = call;
  const params = { path: { id: whole(words[0], 'SHEET_ID') } };
  await confirm(
    `This will retire PAR sheet ${words[0]} permanently. Its games continue, but no new game can use it.`,
  );
  const body = { status: 'RETIRED', ...auditReasonOf(call) } as const;
  print(await bodyOf(client.PATCH('/par-sheets/{id}', { params, body })), keyValues);
}
