/** `spindle raffle`: creates raffles from prize tables, shows them, and voids them. */
import { Option } from 'commander';
import { bodyOf, type OperatorClient } from '../../api/client/apiClients.js';
import { VOID_RAFFLE } from '../../api/client/views/games.js';
import { usdToMicros } from '../../domain/money.js';
import { FaultsError, NotFoundError, usdNumber, wholeNumber } from '../command.js';
import { withYes } from '../confirm.js';
import { formatUsd, keyValues } from '../output.js';
import { bytesOf, type Call, note, type OperatorCommands, questionOf, type Schemas } from './call.js';
import { gameLines, hasPool } from './gameCommands.js';
import { gameIdOf, partnerIdOf } from './names.js';

const SEALED_WITHIN_MS = 60_000;
const LOOK_AGAIN_MS = 100;
/** Maximum time in ms that the command waits while no further ticket is refunded. */
const REFUND_WITHIN_MS = 60_000;

export function addRaffleCommands(commands: OperatorCommands): void {
  const group = commands.group('raffle', 'raffles');
  withYes(commands.add('create <PARTNER>', 'create a raffle from a prize table', createRaffle, group))
    .requiredOption(
      '--prizes <FILE>',
      'CSV file with the header prizeName,prizeTier,valueUsd,count, or a JSON file',
    )
    .option('--name <NAME>', 'name shown to players')
    .option('--config <NAME>', "system identifier, unique across the partner's games")
    .addOption(new Option('--price <USD>', 'price of a ticket, in USD').argParser(usdNumber))
    .addOption(new Option('--size <N>', 'total number of tickets').argParser(wholeNumber))
    .option('--wait', 'wait until the pool is sealed, then print its commitment')
    .addHelpText(
      'after',
      `
A JSON file contains an array of prizes, or the whole body of the request. Options override the values in the file.

Examples:
  spindle raffle create 2 --name 'Spring Raffle' --config SPRING --price 1 --size 100000 --prizes prizes.csv --wait
  spindle raffle create 2 --config SPRING_2 --prizes raffle.json --json`,
    );
  commands.add('show <GAME>', 'show the commitment and remaining tickets of a raffle', showRaffle, group);
  withYes(commands.add('void <GAME>', 'void a raffle permanently and refund its tickets', voidRaffle, group))
    .requiredOption('--reason <TEXT>', 'reason, for the audit log and each refund')
    .option('--wait', 'wait until every ticket is refunded')
    .addHelpText(
      'after',
      `
To see the progress of the refunds, run the command again. The reason of the first call is kept.

Example:
  spindle raffle void 4 --reason 'shown tickets were lost with a restore' --wait`,
    );
}

async function createRaffle({ client, words, options, print, confirm }: Call): Promise<void> {
  const id = await partnerIdOf(client, words[0]!);
  const file = options.prizes as string;
  const members = {
    displayName: options.name,
    configName: options.config,
    ticketPriceUsd: options.price,
    poolSize: options.size,
  };
  const given = Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
  // The prize file module is loaded only by this command, because it needs three parsers.
  const { readRaffle } = await import('../prizeFile.js');
  const read = readRaffle(file, bytesOf(file), given);
  if ('faults' in read) throw new FaultsError('The raffle was not created', read.faults);
  const loss = lossOf(read.body);
  if (loss !== undefined) await confirm(loss);
  const params = { path: { id } };
  const made = await bodyOf(client.POST('/partners/{id}/raffles', { params, body: read.body }));
  if (options.wait !== true) {
    print(made, gameLines);
    return;
  }
  note(`Raffle ${made.gameConfigId} was created; waiting until its pool is sealed …`);
  print(await sealed(client, made.gameConfigId), gameLines);
}

/** Returns a warning if the prizes of a raffle are worth more than its tickets cost. */
function lossOf({ prizes, ticketPriceUsd, poolSize }: Schemas['RaffleBody']): string | undefined {
  const micros = (amount: number): bigint => BigInt(usdToMicros(amount) ?? 0);
  const returns = prizes.reduce((sum, { valueUsd, count }) => sum + micros(valueUsd) * BigInt(count), 0n);
  const takes = micros(ticketPriceUsd) * BigInt(poolSize);
  if (returns <= takes) return undefined;
  const shown = (sum: bigint): string => formatUsd(Number(sum) / 1e6);
  return `This will create a raffle that pays out more than it takes in: the prizes are worth ${shown(returns)} USD, and all tickets cost ${shown(takes)} USD. Its prizes can't be changed later.`;
}

async function sealed(client: OperatorClient, id: number): Promise<Schemas['OperatorGame']> {
  const deadline = performance.now() + SEALED_WITHIN_MS;
  for (;;) {
    const game = await bodyOf(client.GET('/games/{id}', { params: { path: { id } } }));
    if (game.status !== 'SEALING' && typeof game.poolCommitment === 'string') return game;
    if (performance.now() > deadline) {
      throw new Error(
        `Raffle ${id} was created, but its pool is not sealed after ${SEALED_WITHIN_MS / 1000} s. To look again, run: spindle raffle show ${id}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}

/**
 * Asks before a raffle is voided, and shows what is refunded. Does not ask about a raffle that was voided
 * before, because repeating the command then only shows the progress of the refunds.
 */
async function confirmVoid({ client, confirm }: Call, id: number): Promise<void> {
  const game = await bodyOf(client.GET('/games/{id}', { params: { path: { id } } }));
  // The service refuses to void a game that is not a raffle.
  if (!hasPool(game) || game.statusReason === 'VOIDED') return;
  const { partnerId, displayName, configName, status, minWagerUsd, totals } = game;
  const { slug, name } = await bodyOf(client.GET('/partners/{id}', { params: { path: { id: partnerId } } }));
  const poolSize = game.poolSize!;
  const sold = poolSize - (game.ticketsRemaining ?? poolSize);
  const refund = Number(BigInt(sold) * BigInt(usdToMicros(minWagerUsd)!)) / 1e6;
  const facts = keyValues({
    raffle: `${displayName} (${configName}, id ${id})`,
    partner: `${slug} (${name}, id ${partnerId})`,
    status,
    ticketsSold: `${sold} of ${poolSize}`,
    ticketPriceUsd: minWagerUsd,
    refundUsd: refund,
    prizesPaidUsd: totals.paidOutUsd,
  });
  await confirm(`${facts}${questionOf(VOID_RAFFLE, 'the raffle')}`);
}

async function voidRaffle(command: Call): Promise<void> {
  const { client, words, options, print } = command;
  const id = await gameIdOf(client, words[0]!);
  if (options.yes !== true) await confirmVoid(command, id);
  const call = { params: { path: { id } }, body: { reason: String(options.reason) } };
  let voided = await bodyOf(client.POST('/raffles/{id}/void', call));
  if (options.wait === true) {
    note(`Raffle ${id} was voided; waiting until its tickets are refunded …`);
    voided = await refunded(id, () => bodyOf(client.POST('/raffles/{id}/void', call)));
  }
  print(voided, keyValues);
}

/**
 * Waits until each ticket is refunded or its refund has failed. Fails if there is no progress for a minute.
 */
async function refunded(
  id: number,
  look: () => Promise<Schemas['RaffleVoidResponse']>,
): Promise<Schemas['RaffleVoidResponse']> {
  let done = 0;
  let deadline = performance.now() + REFUND_WITHIN_MS;
  for (;;) {
    const now = await look();
    if (now.isDone) return now;
    if (now.refunded + now.failed > done) deadline = performance.now() + REFUND_WITHIN_MS;
    done = now.refunded + now.failed;
    if (performance.now() > deadline) {
      throw new Error(
        `Raffle ${id} was voided, and ${now.refunded} of ${now.tickets} tickets are refunded. The service continues with the other refunds.`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}

async function showRaffle({ client, words, print }: Call): Promise<void> {
  const id = await gameIdOf(client, words[0]!);
  const game = await bodyOf(client.GET('/games/{id}', { params: { path: { id } } }));
  if (!hasPool(game)) throw new NotFoundError(`Game ${id} is not a raffle`);
  print(game, gameLines);
}
