/**
 * `spindle adjust`: adjusts the balance of a player. `spindle player`: shows a player's statement, and blocks
 * or unblocks the player.
 */
import { randomUUID } from 'node:crypto';
import { Option } from 'commander';
import {
  bodyOf,
  NoAnswerError,
  namedPlayer,
  type OperatorClient,
  SpindleError,
} from '../../api/client/apiClients.js';
import { ENTRIES } from '../../api/client/views/players.js';
import { ERRORS } from '../../domain/errors.js';
import { decimalTextToMicros } from '../../domain/money.js';
import { parseUsdText, wholeNumber } from '../command.js';
import { withYes } from '../confirm.js';
import { formatUsd, keyValues, listOf, printable } from '../output.js';
import {
  type Call,
  cursorLine,
  forReason,
  note,
  type OperatorCommands,
  type Schemas,
  withCsv,
  withTimeRange,
} from './call.js';
import { partnerIdOf } from './names.js';

/** Amount in USD above which an adjustment, positive or negative, needs a confirmation, as in the console. */
const ASKED_ABOVE_USD = 1000;

export function addPlayerCommands(commands: OperatorCommands): void {
  const player = commands.group('player', 'players');
  withCsv(
    withTimeRange(
      commands.request(
        'statement <PARTNER> <PLAYER_ID>',
        'show the ledger entries of a player, newest first',
        player,
        'GET /partners/{id}/players/{playerId}/statement',
        { plain: statementLines },
      ),
    ),
  )
    .addOption(
      new Option('--limit <N>', 'maximum number of entries, up to 100').argParser(wholeNumber).default(20),
    )
    .option('--cursor <ENTRY_ID>', 'cursor of the next page, as printed below the previous page')
    .addHelpText(
      'after',
      `
Examples:
  spindle player statement acme alice --from 2026-11-22 --to 2026-11-22
  spindle player statement acme alice --from 2026-11-22T18:00:00Z --to 2026-11-22T19:30:00Z
  spindle player statement acme alice --csv > alice.csv`,
    );
  const path = 'PATCH /partners/{id}/players/{playerId}';
  const block = { body: () => ({ status: 'BLOCKED' }) };
  const about = 'block a player, whose spins are then refused';
  forReason(commands.request('block <PARTNER> <PLAYER_ID>', about, player, path, block));
  const unblock = { body: () => ({ status: 'ACTIVE' }) };
  forReason(commands.request('unblock <PARTNER> <PLAYER_ID>', 'unblock a player', player, path, unblock));
  forReason(withYes(commands.add('adjust <PARTNER> <PLAYER_ID>', 'adjust a balance', adjust)))
    .addOption(
      new Option('--amount <USD>', 'amount to add; a negative amount is deducted')
        .argParser(parseUsdText)
        .makeOptionMandatory(),
    )
    .option(
      '--request-id <ID>',
      'request id, to repeat an adjustment (default: a new id, which is printed first)',
    )
    .addHelpText(
      'after',
      `
The command asks for confirmation if the amount is above ${ASKED_ABOVE_USD} USD, or if the partner has no such player, whom the
adjustment would create.

Examples:
  spindle adjust 2 alice --amount 12.50 --reason 'goodwill, case 4711'
  spindle adjust 2 alice --amount -12.50 --reason 'credited twice' --request-id case-4711-undo`,
    );
}

function statementLines({ entries, nextCursor, completeFrom, ...player }: Schemas['Statement']): string {
  const archived =
    completeFrom === undefined
      ? ''
      : `Entries before ${completeFrom} are only in the archive of the ledger (docs/archive.md).\n`;
  return `${keyValues(player)}${listOf(ENTRIES, entries)}${cursorLine(nextCursor)}${archived}`;
}

/** Returns a player's balance in USD; undefined if the partner has no such player. */
async function balanceOf(client: OperatorClient, id: number, playerId: string): Promise<number | undefined> {
  const { inPath, inQuery } = namedPlayer(playerId);
  const params = { path: { id, ...inPath }, query: { limit: 1, ...inQuery } };
  try {
    const call = client.GET('/partners/{id}/players/{playerId}/statement', { params });
    return ((await bodyOf(call)) as Schemas['Statement']).balanceUsd;
  } catch (error) {
    if (error instanceof SpindleError && error.code === ERRORS.playerNotFound.code) return undefined;
    throw error;
  }
}

/** Asks before an adjustment of an unknown player, who may be a typing error, or of a large amount. */
async function confirmAdjustment(
  { client, confirm }: Call,
  id: number,
  playerId: string,
  amount: string,
): Promise<void> {
  const amountUsd = Number(amount);
  const balanceUsd = await balanceOf(client, id, playerId);
  const isLarge = Math.abs(decimalTextToMicros(amount)!) > ASKED_ABOVE_USD * 1_000_000;
  if (balanceUsd !== undefined && !isLarge) return;
  const { slug, openingBalanceUsd } = await bodyOf(
    client.GET('/partners/{id}', { params: { path: { id } } }),
  );
  const lines = [
    ...(balanceUsd === undefined
      ? [
          `Partner ${slug} has no player «${printable(playerId)}». The adjustment will create this player, with the opening balance of ${formatUsd(openingBalanceUsd)} USD in addition.`,
        ]
      : [`Player «${printable(playerId)}» of partner ${slug} has ${formatUsd(balanceUsd)} USD.`]),
    `This will ${amountUsd < 0 ? 'take' : 'give'} ${formatUsd(Math.abs(amountUsd))} USD at once. Only another adjustment can reverse it.`,
    ...(isLarge
      ? [
          `Adjustments of more than ${formatUsd(ASKED_ABOVE_USD)} USD are rare. Check the amount and the player.`,
        ]
      : []),
  ];
  await confirm(lines.join(' '));
}

async function adjust(command: Call): Promise<void> {
  const { client, words, options, print } = command;
  const {
    amount,
    reason,
    requestId = randomUUID(),
  } = options as Record<'amount' | 'reason', string> & {
    requestId?: string;
  };
  const id = await partnerIdOf(client, words[0]!);
  if (options.yes !== true) await confirmAdjustment(command, id, words[1]!, amount);
  // The request id is printed before the request is sent, so that a request without an answer can be repeated
  // with the same id.
  note(`request id ${requestId}`);
  const { inPath, inQuery: query } = namedPlayer(words[1]!);
  const call = client.POST('/partners/{id}/players/{playerId}/adjustments', {
    params: { path: { id, ...inPath }, query },
    body: { amountUsd: Number(amount), reason, requestId },
    // The amount is sent as its decimal text, because a double can't represent all amounts exactly.
    bodySerializer: (body) => {
      const { amountUsd, ...rest } = body!;
      return `{"amountUsd":${amount},${JSON.stringify(rest).slice(1)}`;
    },
  });
  try {
    print(await bodyOf(call), keyValues);
  } catch (error) {
    if (error instanceof NoAnswerError) {
      note(
        `It is unknown whether the balance changed. Repeat the command with --request-id '${requestId}', which changes the balance only once.`,
      );
    }
    throw error;
  }
}
