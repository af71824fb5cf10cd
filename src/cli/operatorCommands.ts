/** The commands over the operator API: each is one request, printed for people or as the JSON that came. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { lineOf } from '../log.js';
import {
  FaultsError,
  NONE,
  NotFoundError,
  oneOf,
  orNone,
  UsageError,
  usdNumber,
  usdText,
  whole,
  wholeNumber,
} from './command.js';
import { NoAnswerError, type OperatorClient, type Reply } from './operatorClient.js';
import { type Column, keyValues, table } from './output.js';

const GROUP = 'Over the operator API of a running service:';
const SEALED_WITHIN_MS = 60_000;
const LOOK_AGAIN_MS = 100;

/** The client that the options of a command (`--url`, `--key-file`) lead to. */
export type OpenClient = (options: { url?: string; keyFile?: string }) => Promise<OperatorClient>;

type Json = Record<string, unknown>;
type Options = Record<string, unknown>;

interface Game extends Json {
  gameConfigId: number;
  gameType: string;
  status: string;
  poolCommitment?: string | null;
}
interface Page {
  page: number;
  limit: number;
  total: number;
}

/** What a command is given to do its work. */
interface Call {
  readonly client: OperatorClient;
  /** In the order of the usage. */
  readonly words: readonly string[];
  readonly options: Options;
  /** The reply's JSON with `--json`, else what is made of it. */
  print<Body>(reply: Reply<Body>, plain: (body: Body) => string): void;
}

const note = (line: string): void => void process.stderr.write(`${line}\n`);

/** Settings of a partner: option, what it says, member of the API, how its text is read. */
const SETTINGS: readonly (readonly [
  flags: string,
  description: string,
  member: string,
  read: (t: string) => unknown,
])[] = [
  ['--spin-rate-limit <N>', 'spins in a minute', 'spinRateLimit', wholeNumber],
  ['--api-rate-limit <N>', 'other requests in a minute', 'apiRateLimit', wholeNumber],
  ['--opening-balance <USD>', "a player's first balance", 'openingBalanceUsd', usdNumber],
  [
    '--balance-mode <MODE>',
    'track: no spin is refused for its balance; enforce: it is',
    'balanceMode',
    oneOf({ track: 'track', enforce: 'enforce' }),
  ],
  ['--funding <USD>', 'what the operator covers; none: no bound', 'fundingUsd', orNone(usdNumber)],
  ['--large-win-threshold <USD>', 'a payout above it is a large win', 'largeWinThresholdUsd', usdNumber],
  ['--min-ready-blocks <N>', 'blocks that are kept ready of each game', 'minReadyBlocks', wholeNumber],
  ['--contact-email <ADDRESS>', 'whom to write to; none: nobody', 'contactEmail', orNone(String)],
];

function withSettings(command: Command): Command {
  for (const [flags, description, , read] of SETTINGS) {
    command.addOption(new Option(flags, description).argParser(read));
  }
  return command;
}

function settingsOf(options: Options): Json {
  const body: Json = {};
  for (const [flags, , member] of SETTINGS) {
    const value = options[new Option(flags).attributeName()];
    if (value !== undefined) body[member] = value === NONE ? null : value;
  }
  return body;
}

const PARTNER_COLUMNS: readonly Column<Json>[] = [
  { heading: 'id', value: (row) => row.partnerId, kind: 'number' },
  { heading: 'slug', value: (row) => row.slug },
  { heading: 'name', value: (row) => row.name },
  { heading: 'environment', value: (row) => row.environment },
  { heading: 'active', value: (row) => (row.isActive ? 'yes' : 'no') },
  { heading: 'spins/min', value: (row) => row.spinRateLimit, kind: 'number' },
  { heading: 'balance', value: (row) => row.balanceMode },
  { heading: 'opening USD', value: (row) => row.openingBalanceUsd, kind: 'usd' },
  { heading: 'funding USD', value: (row) => row.fundingUsd, kind: 'usd' },
];

const KEY_COLUMNS: readonly Column<Json>[] = [
  { heading: 'id', value: (row) => row.keyId, kind: 'number' },
  { heading: 'name', value: (row) => row.name },
  { heading: 'status', value: (row) => row.status },
  { heading: 'created', value: (row) => row.createdAt },
  { heading: 'expires', value: (row) => row.expiresAt },
  { heading: 'last used', value: (row) => row.lastUsedAt },
];

const AUDIT_COLUMNS: readonly Column<Json>[] = [
  { heading: 'id', value: (row) => row.auditId, kind: 'number' },
  { heading: 'at', value: (row) => row.at },
  { heading: 'actor', value: (row) => row.actor },
  { heading: 'action', value: (row) => row.action },
  { heading: 'subject', value: (row) => row.subject },
  { heading: 'change', value: (row) => changeOf(row.before as Json | null, row.after as Json | null) },
];

/** The members that differ; of something new all that it has. */
function changeOf(before: Json | null, after: Json | null): string {
  const was = before ?? {};
  const text = (value: unknown): string => JSON.stringify(value) ?? '-';
  return Object.entries(after ?? {})
    .filter(([name, value]) => text(was[name]) !== text(value))
    .map(([name, value]) => `${name} ${before === null ? '' : `${text(was[name])} → `}${text(value)}`)
    .join(', ');
}

/** The API shows a pool of the games whose outcomes are finite. */
const hasPool = (game: Game): boolean => game.poolSize !== undefined;

/** A game without what says nothing of its kind. */
function gameLines({ minWagerUsd, maxWagerUsd, wagerIncrementUsd, queue, ...game }: Game): string {
  if (!hasPool(game)) return keyValues({ ...game, wagerUsd: minWagerUsd, queue });
  const { parSheetId, ...raffle } = game;
  return keyValues({ ...raffle, ticketPriceUsd: minWagerUsd });
}

/** Waits until the pool of a raffle is sealed. */
async function sealed(client: OperatorClient, gameId: number): Promise<Reply<Game>> {
  const deadline = performance.now() + SEALED_WITHIN_MS;
  for (;;) {
    const reply = await client.request<Game>('GET', `/games/${gameId}`);
    const { status, poolCommitment } = reply.body;
    if (status !== 'SEALING' && typeof poolCommitment === 'string') return reply;
    if (performance.now() > deadline) {
      throw new Error(
        `Raffle ${gameId} is made and not sealed after ${SEALED_WITHIN_MS / 1000} s; look again: spindle raffle show ${gameId}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}

function bytesOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new UsageError(`${file} can't be read: ${lineOf(error)}`);
  }
}

async function createPartner({ client, options, print }: Call): Promise<void> {
  const { slug, name, environment } = options;
  const body = { slug, name, environment, ...settingsOf(options) };
  print(await client.request<Json>('POST', '/partners', body), keyValues);
}

async function listPartners({ client, print }: Call): Promise<void> {
  const reply = await client.request<{ partners: Json[] }>('GET', '/partners');
  print(reply, ({ partners }) => table(PARTNER_COLUMNS, partners));
}

async function showPartner({ client, words, print }: Call): Promise<void> {
  print(await client.request<Json>('GET', `/partners/${whole(words[0], 'PARTNER_ID')}`), keyValues);
}

async function updatePartner({ client, words, options, print }: Call): Promise<void> {
  const { name, active } = options;
  const body = { name, isActive: active, ...settingsOf(options) };
  if (Object.values(body).every((value) => value === undefined)) {
    throw new UsageError('Nothing to update: give a setting, --name or --active');
  }
  print(await client.request<Json>('PATCH', `/partners/${whole(words[0], 'PARTNER_ID')}`, body), keyValues);
}

async function deactivatePartner({ client, words, print }: Call): Promise<void> {
  const path = `/partners/${whole(words[0], 'PARTNER_ID')}`;
  print(await client.request<Json>('PATCH', path, { isActive: false }), keyValues);
}

async function issueKey({ client, words, options, print }: Call): Promise<void> {
  const body = { name: options.name, expiresAt: options.expires };
  const reply = await client.request<Json>('POST', `/partners/${whole(words[0], 'PARTNER_ID')}/keys`, body);
  print(reply, keyValues);
  note('The key is shown this once: nobody can read it again.');
}

async function listKeys({ client, words, print }: Call): Promise<void> {
  const path = `/partners/${whole(words[0], 'PARTNER_ID')}/keys`;
  print(await client.request<{ keys: Json[] }>('GET', path), ({ keys }) => table(KEY_COLUMNS, keys));
}

async function revokeKey({ client, words, print }: Call): Promise<void> {
  const partnerId = whole(words[0], 'PARTNER_ID');
  const keyId = whole(words[1], 'KEY_ID');
  const reply = await client.request('DELETE', `/partners/${partnerId}/keys/${keyId}`);
  print(reply, () => `Key ${keyId} of partner ${partnerId} is revoked.\n`);
}

async function createRaffle({ client, words, options, print }: Call): Promise<void> {
  const partnerId = whole(words[0], 'PARTNER_ID');
  const file = options.prizes as string;
  const members = {
    displayName: options.name,
    configName: options.config,
    ticketPriceUsd: options.price,
    poolSize: options.size,
  };
  const given = Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
  // Only here: it brings three parsers with it.
  const { readRaffle } = await import('./prizeFile.js');
  const read = readRaffle(file, bytesOf(file), given);
  if ('faults' in read) throw new FaultsError('The raffle is not made', read.faults);
  const made = await client.request<Game>('POST', `/partners/${partnerId}/raffles`, read.body);
  const { gameConfigId } = made.body;
  if (options.wait !== true) {
    print(made, gameLines);
    return;
  }
  note(`Raffle ${gameConfigId} is made; waiting until its pool is sealed …`);
  print(await sealed(client, gameConfigId), gameLines);
}

async function showRaffle({ client, words, print }: Call): Promise<void> {
  const gameId = whole(words[0], 'GAME_ID');
  const reply = await client.request<Game>('GET', `/games/${gameId}`);
  if (!hasPool(reply.body)) throw new NotFoundError(`Game ${gameId} is no raffle`);
  print(reply, gameLines);
}

async function showGame({ client, words, print }: Call): Promise<void> {
  print(await client.request<Game>('GET', `/games/${whole(words[0], 'GAME_ID')}`), gameLines);
}

const setGame =
  (status: 'ACTIVE' | 'SUSPENDED') =>
  async ({ client, words, print }: Call): Promise<void> => {
    const path = `/games/${whole(words[0], 'GAME_ID')}`;
    print(await client.request<Game>('PATCH', path, { status }), gameLines);
  };

async function makeBlocks({ client, words, options, print }: Call): Promise<void> {
  const path = `/games/${whole(words[0], 'GAME_ID')}/blocks`;
  print(await client.request<Json>('POST', path, { count: options.count }), keyValues);
}

async function retireSheet({ client, words, print }: Call): Promise<void> {
  const path = `/par-sheets/${whole(words[0], 'SHEET_ID')}`;
  print(await client.request<Json>('PATCH', path, { status: 'RETIRED' }), keyValues);
}

async function adjust({ client, words, options, print }: Call): Promise<void> {
  const partnerId = whole(words[0], 'PARTNER_ID');
  const requestId = (options.requestId as string | undefined) ?? randomUUID();
  // Before it is sent: whoever gets no answer can repeat it.
  note(`request id ${requestId}`);
  const path = `/partners/${partnerId}/players/${encodeURIComponent(words[1]!)}/adjustments`;
  const { reason } = options;
  const rest = JSON.stringify({ reason, requestId });
  // The amount as its text: a double doesn't tell all amounts apart.
  const body = `{"amountUsd":${options.amount},${rest.slice(1)}`;
  try {
    print(await client.request<Json>('POST', path, body), keyValues);
  } catch (error) {
    if (error instanceof NoAnswerError) {
      note(`Whether the balance was adjusted is not known: repeat it with --request-id '${requestId}'.`);
    }
    throw error;
  }
}

async function listAuditLog({ client, options, print }: Call): Promise<void> {
  const query = `?page=${options.page}&limit=${options.limit}`;
  const reply = await client.request<{ entries: Json[] } & Page>('GET', `/audit-log${query}`);
  print(reply, ({ entries, page, limit, total }) => {
    const pages = Math.max(1, Math.ceil(total / limit));
    return `${table(AUDIT_COLUMNS, entries)}page ${page} of ${pages}, ${total} entries\n`;
  });
}

async function resend({ client, words, options, print }: Call): Promise<void> {
  const { failedSince } = options;
  if ((words.length === 0) === (failedSince === undefined)) {
    throw new UsageError('Either DELIVERY_ID or --failed-since TIME is needed');
  }
  const say = ({ resent }: Json): string => `${resent} deliveries are sent again\n`;
  if (failedSince !== undefined) {
    print(await client.request<Json>('POST', '/webhooks/resend', { since: failedSince }), say);
    return;
  }
  for (const id of words) {
    print(
      await client.request<Json>('POST', `/deliveries/${encodeURIComponent(id)}/resend`),
      () => `${id} is sent again\n`,
    );
  }
}

async function showOpenApi({ client }: Call): Promise<void> {
  const { body } = await client.request<Json>('GET', '/openapi.json');
  process.stdout.write(`${JSON.stringify(body, null, 2)}\n`);
}

/** Adds the commands to the program. */
export function addOperatorCommands(program: Command, open: OpenClient): void {
  const group = (name: string, description: string): Command =>
    program.command(name).description(description).helpGroup(GROUP);
  const add = (
    parent: Command,
    usage: string,
    description: string,
    act: (call: Call) => Promise<void>,
  ): Command => {
    const command = parent.command(usage).description(description).helpGroup(GROUP);
    return command
      .option('--url <URL>', 'where the service is (else SPINDLE_URL, else HOST and PORT)')
      .option('--key-file <FILE>', 'file of the operator key (else OPERATOR_API_KEY, else that of DATA_DIR)')
      .action(async () => {
        const options = command.optsWithGlobals<Options & { url?: string; keyFile?: string; json?: true }>();
        await act({
          client: await open(options),
          words: command.args,
          options,
          print(reply, plain) {
            if (options.json !== true) process.stdout.write(plain(reply.body));
            else if (reply.text !== '') process.stdout.write(`${reply.text}\n`);
          },
        });
      });
  };

  const partner = group('partner', 'Partners and their settings');
  withSettings(
    add(partner, 'create', 'create a partner', createPartner)
      .requiredOption('--slug <SLUG>', 'short name: lowercase letters, digits and hyphens')
      .requiredOption('--name <NAME>', 'name')
      .requiredOption('--environment <ENVIRONMENT>', 'sandbox or production, for good'),
  ).addHelpText(
    'after',
    `
Examples:
  spindle partner create --slug acme --name 'Acme Games' --environment sandbox
  spindle partner create --slug acme-live --name Acme --environment production --balance-mode enforce --funding 1000.50`,
  );
  add(partner, 'list', 'list the partners', listPartners);
  add(partner, 'show <PARTNER_ID>', 'a partner with its settings', showPartner);
  withSettings(
    add(partner, 'update <PARTNER_ID>', 'change settings of a partner', updatePartner)
      .option('--name <NAME>', 'name')
      .addOption(
        new Option('--active <BOOLEAN>', 'true or false').argParser(oneOf({ true: true, false: false })),
      ),
  ).addHelpText(
    'after',
    `
Examples:
  spindle partner update 2 --spin-rate-limit 6000 --funding none
  spindle partner update 2 --active true`,
  );
  add(partner, 'deactivate <PARTNER_ID>', 'refuse all keys of a partner', deactivatePartner);

  const key = group('key', 'API keys of a partner');
  add(key, 'issue <PARTNER_ID>', 'issue a key; it is shown this once', issueKey)
    .option('--name <NAME>', 'what the key is for')
    .option('--expires <TIME>', 'RFC 3339 time, such as 2030-01-31T00:00:00Z');
  add(key, 'list <PARTNER_ID>', 'list the keys, without their secrets', listKeys);
  add(key, 'revoke <PARTNER_ID> <KEY_ID>', 'revoke a key', revokeKey);

  const raffle = group('raffle', 'Raffles');
  add(raffle, 'create <PARTNER_ID>', 'make a raffle from a prize table', createRaffle)
    .requiredOption('--prizes <FILE>', 'CSV with the header prizeName,prizeTier,valueUsd,count, or JSON')
    .option('--name <NAME>', 'name shown to players')
    .option('--config <NAME>', "system identifier, unique across the partner's games")
    .addOption(new Option('--price <USD>', 'what a ticket costs').argParser(usdNumber))
    .addOption(new Option('--size <N>', 'tickets in all').argParser(wholeNumber))
    .option('--wait', 'wait until the pool is sealed, and print its commitment')
    .addHelpText(
      'after',
      `
JSON is an array of prizes, or the whole body of the request; what an option says beats the file.

Examples:
  spindle raffle create 2 --name 'Spring Raffle' --config SPRING --price 1 --size 100000 --prizes prizes.csv --wait
  spindle raffle create 2 --config SPRING_2 --prizes raffle.json --json`,
    );
  add(raffle, 'show <GAME_ID>', 'commitment and tickets left of a raffle', showRaffle);

  const game = group('game', 'Games');
  add(game, 'show <GAME_ID>', 'a game with its queue and its totals', showGame);
  add(game, 'suspend <GAME_ID>', 'refuse its spins', setGame('SUSPENDED'));
  add(game, 'resume <GAME_ID>', 'make it active again', setGame('ACTIVE'));

  add(
    group('blocks', 'Outcome blocks'),
    'make <GAME_ID>',
    'make blocks beyond what demand calls for',
    makeBlocks,
  ).addOption(new Option('--count <N>', 'how many').argParser(wholeNumber).default(1));
  add(
    group('sheet', 'PAR sheets'),
    'retire <SHEET_ID>',
    'let no further game be registered on it',
    retireSheet,
  );

  add(
    group('webhooks', 'Deliveries of webhooks'),
    'resend [DELIVERY_ID...]',
    'send deliveries again, or all that have failed',
    resend,
  )
    .option('--failed-since <TIME>', 'RFC 3339 time: all deliveries that have failed since')
    .addHelpText(
      'after',
      `
Examples:
  spindle webhooks resend --failed-since 2026-05-01T00:00:00Z
  spindle webhooks resend dlv_019687b4c2d1f3a09e6b5d7c8a4f2e10`,
    );
  add(program, 'adjust <PARTNER_ID> <PLAYER_ID>', 'adjust a balance, once for each request id', adjust)
    .addOption(
      new Option('--amount <USD>', 'what is added; below 0: taken').argParser(usdText).makeOptionMandatory(),
    )
    .requiredOption('--reason <TEXT>', 'why, for the audit log')
    .option(
      '--request-id <ID>',
      'of the adjustment that is repeated; else a new one is made, and printed first',
    )
    .addHelpText(
      'after',
      `
Examples:
  spindle adjust 2 alice --amount 12.50 --reason 'goodwill, case 4711'
  spindle adjust 2 alice --amount -12.50 --reason 'booked twice' --request-id case-4711-undo`,
    );
  add(program, 'audit-log', 'what was changed, by whom, newest first', listAuditLog)
    .addOption(new Option('--page <N>', 'from 1').argParser(wholeNumber).default(1))
    .addOption(
      new Option('--limit <N>', 'entries of a page, 100 at the most').argParser(wholeNumber).default(20),
    );
  add(program, 'openapi', 'the OpenAPI document of the operator API', showOpenApi);
}
