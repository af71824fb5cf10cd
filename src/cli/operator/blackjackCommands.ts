/** `spindle blackjack`: creates tables. `spindle round`: shows rounds, voids them, or plays them out. */
import { Option } from 'commander';
import { bodyOf } from '../../api/client/apiClients.js';
import { UsageError, usdNumber, wholeNumber } from '../command.js';
import { withYes } from '../confirm.js';
import { keyValues, type TableColumn, table } from '../output.js';
import {
  auditReasonOf,
  bytesOf,
  type Call,
  forReason,
  type OperatorCommands,
  pageLine,
  pageOf,
  type Schemas,
  withPages,
  withReason,
} from './call.js';
import { gameIdOf, partnerIdOf } from './names.js';

export function addBlackjackCommands(commands: OperatorCommands): void {
  const tables = commands.group('blackjack', 'blackjack tables');
  commands
    .add('create <PARTNER>', 'create a blackjack table', createTable, tables)
    .requiredOption('--name <NAME>', 'name shown to players')
    .requiredOption('--config <NAME>', "system identifier, unique across the partner's games")
    .addOption(
      new Option('--wager <USD>', 'wager of a deal, in USD').argParser(usdNumber).makeOptionMandatory(),
    )
    .option('--rules <FILE>', 'JSON file with the rules that differ from the defaults')
    .addOption(
      new Option(
        '--round-timeout <SECONDS>',
        'seconds after which an open round is played out (default: 86400)',
      ).argParser(wholeNumber),
    )
    .addHelpText(
      'after',
      `
Example:
  echo '{"decks":1,"blackjackPays":"6:5"}' > rules.json
  spindle blackjack create 2 --name 'Single Deck' --config SINGLE_DECK --wager 0.5 --rules rules.json`,
    );
  const round = commands.group('round', 'blackjack rounds');
  withPages(
    commands.add(
      'list [PARTNER]',
      'list the rounds of one partner or all partners, newest first',
      listRounds,
      round,
    ),
    'rounds',
  )
    .addOption(
      new Option('--status <STATUS>', 'only rounds with this status').choices(['open', 'settled', 'voided']),
    )
    .option('--game <GAME>', 'only rounds of this table');
  commands.add('show <ROUND_ID>', 'show a blackjack round as its partner sees it', showRound, round);
  forReason(
    withYes(commands.add('void <ROUND_ID>', 'void an open round and refund every stake', voidRound, round)),
  );
  withReason(
    withYes(
      commands.add('close <ROUND_ID>', 'play out an open round, as its timeout would do', closeRound, round),
    ),
  );
}

async function createTable({ client, words, options, print }: Call): Promise<void> {
  const id = await partnerIdOf(client, words[0]!);
  const { name, config, wager, roundTimeout } = options as { name: string; config: string; wager: number } & {
    roundTimeout?: number;
  };
  const body = {
    displayName: name,
    configName: config,
    wagerUsd: wager,
    rules: options.rules === undefined ? {} : rulesOf(String(options.rules)),
    ...(roundTimeout === undefined ? {} : { roundTimeoutS: roundTimeout }),
  };
  const call = client.POST('/partners/{id}/blackjack-games', { params: { path: { id } }, body });
  print(await bodyOf(call), ({ rules, ...made }) => keyValues({ ...made, rules: JSON.stringify(rules) }));
}

function rulesOf(file: string): Schemas['BlackjackRulesBody'] {
  try {
    return JSON.parse(bytesOf(file).toString('utf8'));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${file} is not valid JSON`);
  }
}

const ROUNDS: readonly TableColumn<Schemas['OperatorRounds']['rounds'][number]>[] = [
  { heading: 'dealt', value: (row) => row.createdAt },
  { heading: 'round', value: (row) => row.roundId },
  { heading: 'partner', value: (row) => row.partnerId, kind: 'number' },
  { heading: 'game', value: (row) => row.gameId, kind: 'number' },
  { heading: 'player', value: (row) => row.playerId },
  { heading: 'status', value: (row) => row.status },
  { heading: 'staked USD', value: (row) => row.wageredUsd, kind: 'usd' },
  { heading: 'paid USD', value: (row) => row.payoutUsd, kind: 'usd' },
];

async function listRounds(call: Call): Promise<void> {
  const { client, words, options, print } = call;
  const { status, game } = options as { status?: string; game?: string };
  const query = {
    ...(words[0] === undefined ? {} : { partnerId: await partnerIdOf(client, words[0]) }),
    ...pageOf(call),
    ...(status === undefined ? {} : { status: status.toUpperCase() }),
    ...(game === undefined ? {} : { gameId: await gameIdOf(client, game) }),
  };
  print(
    await bodyOf(client.GET('/rounds', { params: { query } })),
    (body) => table(ROUNDS, body.rounds) + pageLine(body, 'rounds'),
  );
}

const pathOf = (words: readonly string[]) => ({ path: { roundId: words[0]! } });

async function showRound({ client, words, print }: Call): Promise<void> {
  print(await bodyOf(client.GET('/rounds/{roundId}', { params: pathOf(words) })), roundLines);
}

async function voidRound({ client, words, options, print, confirm }: Call): Promise<void> {
  await confirm(`This will void round ${words[0]} permanently and refund every stake of it.`);
  const body = { reason: String(options.reason) };
  print(await bodyOf(client.POST('/rounds/{roundId}/void', { params: pathOf(words), body })), roundLines);
}

async function closeRound(call: Call): Promise<void> {
  const { client, words, print, confirm } = call;
  await confirm(`This will play out round ${words[0]} for the player and end it permanently.`);
  const params = { ...pathOf(words), query: auditReasonOf(call) };
  print(await bodyOf(client.POST('/rounds/{roundId}/close', { params })), roundLines);
}

function roundLines(round: Schemas['RoundRecordResponse']): string {
  const { roundId, gameId, playerId, status, wageredUsd, payoutUsd, createdAt, expiresAt, shoe } = round;
  return keyValues({
    roundId,
    gameId,
    playerId,
    status,
    createdAt,
    expiresAt,
    wageredUsd,
    payoutUsd,
    dealer: `${round.dealer.cards.join(' ')} (${round.dealer.total})`,
    hands: round.hands
      .map(({ cards, total, status: hand }) => `${cards.join(' ')} (${total}, ${hand})`)
      .join('; '),
    actions: round.actions.join(' '),
    shoe: shoe.index,
    commitment: shoe.commitment,
    ...(shoe.seed === undefined ? {} : { seed: shoe.seed }),
  });
}
