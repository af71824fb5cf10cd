/** `spindle blackjack`: creates tables. `spindle round`: shows rounds, voids them, or plays them out. */
import { Option } from 'commander';
import { CLOSE_ROUND, ROUNDS, VOID_ROUND } from '../../api/client/views/games.js';
import { usdNumber, wholeNumber } from '../command.js';
import { keyValues, listOf } from '../output.js';
import {
  forReason,
  inCapitals,
  jsonOf,
  type OperatorCommands,
  pageLine,
  type Schemas,
  withPages,
  withReason,
} from './call.js';

export function addBlackjackCommands(commands: OperatorCommands): void {
  const tables = commands.group('blackjack', 'blackjack tables');
  commands
    .request('create <PARTNER>', 'create a blackjack table', tables, 'POST /partners/{id}/blackjack-games', {
      body: ({ name, config, wager, rules, roundTimeout }) => ({
        displayName: name,
        configName: config,
        wagerUsd: wager,
        rules: rules === undefined ? {} : jsonOf(String(rules)),
        roundTimeoutS: roundTimeout,
      }),
      plain: ({ rules, ...made }) => keyValues({ ...made, rules: JSON.stringify(rules) }),
    })
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
    commands.request(
      'list [PARTNER]',
      'list the rounds of one partner or all partners, newest first',
      round,
      'GET /rounds',
      { plain: (body) => listOf(ROUNDS, body.rounds) + pageLine(body, 'rounds') },
    ),
    'rounds',
  )
    .addOption(
      inCapitals(
        new Option('--status <STATUS>', 'only rounds with this status').choices([
          'open',
          'settled',
          'voided',
        ]),
      ),
    )
    .option('--game <GAME>', 'only rounds of this table');
  const plain = roundLines;
  commands.request(
    'show <ROUND_ID>',
    'show a blackjack round as its partner sees it',
    round,
    'GET /rounds/{roundId}',
    { plain },
  );
  forReason(
    commands.change('void <ROUND_ID>', 'void an open round and refund every stake', round, VOID_ROUND, {
      plain,
    }),
  );
  withReason(
    commands.change(
      'close <ROUND_ID>',
      'play out an open round, as its timeout would do',
      round,
      CLOSE_ROUND,
      { plain },
    ),
  );
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
