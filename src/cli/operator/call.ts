/** Common parts of the commands over the operator API: declaration, options and output. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  bodyOf,
  NoAnswerError,
  type OperatorClient,
  type OperatorSchemas,
  SpindleError,
} from '../../api/client/apiClients.js';
import { type AnswerOf, type BodyOf, type Change, type Endpoint, send } from '../../api/client/views/view.js';
import { isDay, shiftDay } from '../../domain/days.js';
import { lineOf } from '../../platform/secretsInLogs.js';
import { UsageError, wholeNumber } from '../command.js';
import { confirm, withYes } from '../confirm.js';
import { keyValues } from '../output.js';
import { gameIdOf, partnerIdOf, type Target, targetOf } from './names.js';

export const OPERATOR_GROUP = 'Commands over the operator API of a running service:';

/** Opens the client that a command's options (`--url`, `--key-file`) select. */
export type OpenClient = (options: { url?: string; keyFile?: string }) => Promise<OperatorClient>;

export type Schemas = OperatorSchemas;
export type Options = Record<string, unknown>;

interface Common {
  readonly url?: string;
  readonly keyFile?: string;
  readonly json?: true;
  readonly yes?: true;
  /** Interval of `--watch`, in seconds. */
  readonly watch?: number;
}

/** Context of a running command. */
export interface Call {
  readonly client: OperatorClient;
  /** Arguments of the command, in the order of the usage line. */
  readonly words: readonly string[];
  readonly options: Options;
  /**
   * Prints the body: as JSON with `--json` (nothing if there is no body), otherwise as formatted by `plain`.
   */
  print<Body>(body: Body, plain: (body: Body) => string): void;
  /**
   * Asks for confirmation of an action that does harm (confirm.ts).
   * @param consequence effect of the command, as sentences; a table may come before them
   */
  confirm(consequence: string): Promise<void>;
}

/** What a command that sends one request does besides. */
interface Plan<E extends Endpoint> {
  /** Returns the body of the request without the reason. Undefined members are not sent. */
  readonly body?: (
    options: Options,
    words: readonly string[],
  ) => { readonly [Name in keyof BodyOf<E>]?: unknown };
  /** Formats the answer. Default: a line for each property. */
  readonly plain?: (answer: AnswerOf<E>) => string;
  /** A line for people that follows the answer. */
  readonly note?: (answer: AnswerOf<E>) => string;
  /** Names the object in the question of a change. Default: as the words of the command name it. */
  readonly name?: string;
  /** True: the command is the default of its group. */
  readonly isDefault?: true;
}

const WATCH_SECONDS = 2;
const WATCH_SECONDS_MAX = 3600;
/** ANSI sequence that moves the cursor to the top left corner and clears the screen. */
const CLEAR = '\x1b[H\x1b[2J';

export class OperatorCommands {
  constructor(
    private readonly program: Command,
    private readonly open: OpenClient,
  ) {}

  /** Adds a command that consists of subcommands only. */
  group(name: string, description: string): Command {
    return this.program.command(name).description(description).helpGroup(OPERATOR_GROUP);
  }

  /**
   * @param act runs with a client of the service; its exceptions end the program (cli.ts)
   * @param options `isDefault` makes it the default subcommand of its group
   */
  add(
    usage: string,
    description: string,
    act: (call: Call) => Promise<void>,
    parent: Command = this.program,
    { isDefault = false }: { isDefault?: boolean } = {},
  ): Command {
    const command = parent.command(usage, { isDefault }).description(description).helpGroup(OPERATOR_GROUP);
    return command
      .option(
        '--url <URL>',
        'address of the service (default: SPINDLE_URL, then the service started here, then HOST and PORT)',
      )
      .option(
        '--key-file <FILE>',
        'file with the operator key (default: OPERATOR_API_KEY, then the key in DATA_DIR)',
      )
      .action(async () => {
        const options = command.optsWithGlobals<Options & Common>();
        const isCleared = options.watch !== undefined && options.json !== true && process.stdout.isTTY;
        const call: Call = {
          client: await this.open(options),
          words: command.args,
          options,
          print(body, plain) {
            if (options.json !== true) process.stdout.write(`${isCleared ? CLEAR : ''}${plain(body)}`);
            else if (body !== undefined) process.stdout.write(`${JSON.stringify(body)}\n`);
          },
          confirm: (consequence) => confirm(consequence, options),
        };
        await act(call);
        if (options.watch !== undefined) await watch(() => act(call), options.watch);
      });
  }

  /** Adds a command that sends one request, whose path its words name, and prints the answer. */
  request<E extends Endpoint>(
    usage: string,
    description: string,
    parent: Command | undefined,
    endpoint: E,
    plan: Plan<E> = {},
  ): Command {
    const act = async (call: Call) => perform(call, endpoint, await targetOf(call, usage, endpoint), plan);
    return this.add(usage, description, act, parent, plan);
  }

  /** Adds a command for a change, which asks before it sends the request, unless the change does no harm. */
  change<E extends Endpoint>(
    usage: string,
    description: string,
    parent: Command,
    changeOf: Change<E> | ((options: Options) => Change<E>),
    plan: Plan<E> = {},
  ): Command {
    const act = async (call: Call): Promise<void> => {
      const change = typeof changeOf === 'function' ? changeOf(call.options) : changeOf;
      const target = await targetOf(call, usage, change.endpoint);
      if (!change.isHarmless) await call.confirm(questionOf(change, plan.name ?? target.name));
      await perform(call, change.endpoint, target, plan, change);
    };
    const command = this.add(usage, description, act, parent);
    return typeof changeOf !== 'function' && changeOf.isHarmless ? command : withYes(command);
  }
}

/** Returns the question before a change, as sentences. */
export const questionOf = (
  { asks, consequence }: Pick<Change, 'asks' | 'consequence'>,
  name: string,
): string => `${asks} ${name}? ${consequence}`;

/** Sends a command's request and prints the answer. */
async function perform<E extends Endpoint>(
  call: Call,
  endpoint: E,
  target: Target,
  { body, plain = keyValues as (answer: AnswerOf<E>) => string, note: after }: Plan<E>,
  change?: Change<E>,
): Promise<void> {
  const { client, options } = call;
  const reason = options.reason as string | undefined;
  const members = body === undefined ? change?.body : { ...change?.body, ...body(options, call.words) };
  const query = { ...(endpoint.startsWith('GET') && (await queryOf(call))), ...target.query };
  const sent = { path: target.path, query, body: members, reason };
  const answer = await bodyOf(
    send(client, endpoint, options.csv === true ? { ...sent, options: CSV } : sent),
  );
  if (options.csv === true) process.stdout.write(String(answer));
  else call.print(answer, answer === undefined ? () => `${change?.done}\n` : plain);
  if (after !== undefined) note(after(answer));
}

/** Returns the query of a list, from those options that lists have in common. */
async function queryOf({ client, options }: Call): Promise<object> {
  const { page, limit, cursor, from, to, date, days, type, revision, actor, action, subject } = options;
  const { partner, game, status, severity, csv } = options as Record<string, string | undefined>;
  return {
    ...{
      page,
      limit,
      cursor,
      from,
      to,
      date,
      days,
      type,
      revision,
      actor,
      action,
      subject,
      status,
      severity,
    },
    ...(partner !== undefined && { partnerId: await partnerIdOf(client, partner, '--partner') }),
    ...(game !== undefined && { gameId: await gameIdOf(client, game) }),
    ...(csv !== undefined && { escapeFormulas: 'true' }),
  };
}

/**
 * Repeats a command that prints until the program is interrupted. Temporary failures of the service are
 * reported and retried.
 */
async function watch(act: () => Promise<void>, seconds: number): Promise<never> {
  for (;;) {
    await delay(seconds * 1000);
    try {
      await act();
    } catch (error) {
      const mayPass =
        error instanceof NoAnswerError ||
        (error instanceof SpindleError && (error.status >= 500 || error.status === 429));
      if (!mayPass) throw error;
      note(error.message);
    }
  }
}

export const withWatch = (command: Command): Command =>
  command.addOption(
    new Option('--watch [SECONDS]', 'print again every SECONDS until interrupted (default: 2)')
      .argParser((text) => {
        const seconds = wholeNumber(text);
        if (seconds >= 1 && seconds <= WATCH_SECONDS_MAX) return seconds;
        throw new InvalidArgumentError(`It must be a whole number from 1 to ${WATCH_SECONDS_MAX}.`);
      })
      .preset(String(WATCH_SECONDS)),
  );

/** @param many plural noun of the list's items */
export const withPages = (command: Command, many: string): Command =>
  command
    .addOption(new Option('--page <N>', 'number of the page, from 1').argParser(wholeNumber).default(1))
    .addOption(new Option('--limit <N>', `${many} on a page, up to 100`).argParser(wholeNumber).default(20));

export const withTimeRange = (command: Command): Command =>
  command
    .addOption(
      new Option('--from <TIME>', 'only from this UTC day, YYYY-MM-DD, or RFC 3339 time on').argParser(
        startOfRange,
      ),
    )
    .addOption(
      new Option('--to <TIME>', 'only up to this UTC day, included, or before this RFC 3339 time').argParser(
        endOfRange,
      ),
    );

// The service checks times; days are converted here.
const startOfRange = (text: string): string => (isDay(text) ? `${text}T00:00:00Z` : text);
const endOfRange = (text: string): string => (isDay(text) ? `${shiftDay(text, 1)}T00:00:00Z` : text);

export const withCsv = (command: Command): Command =>
  command.addOption(
    new Option(
      '--csv',
      'print all matching entries as CSV; a text that a spreadsheet would run as a formula gets an apostrophe',
    ).conflicts('json'),
  );

const CSV = { headers: { Accept: 'text/csv' }, parseAs: 'text' } as const;

/** Makes the choices of an option upper case, as the API has them. They are typed in lower case. */
export function inCapitals(option: Option): Option {
  const { parseArg } = option;
  return option.argParser((text, before) => String(parseArg!(text, before)).toUpperCase());
}

const REASON = ['--reason <TEXT>', 'reason, for the audit log'] as const;

/** Adds an optional reason for the audit log to a command. */
export const withReason = (command: Command): Command => command.option(...REASON);

/** Adds a required reason for the audit log to a command. */
export const forReason = (command: Command): Command => command.requiredOption(...REASON);

export const auditReasonOf = ({ options: { reason } }: Pick<Call, 'options'>): { reason?: string } =>
  reason === undefined ? {} : { reason: String(reason) };

export function pageLine(
  { page, limit, total }: Readonly<Record<'page' | 'limit' | 'total', number>>,
  many: string,
): string {
  return `page ${page} of ${Math.max(1, Math.ceil(total / limit))}, ${total} ${many}\n`;
}

/** Says how the next page of a list is read. */
export const cursorLine = (nextCursor: string | null): string =>
  nextCursor === null ? '' : `next page: --cursor ${nextCursor}\n`;

/** Prints a line for people to standard error. */
export const note = (line: string): void => void process.stderr.write(`${line}\n`);

export function bytesOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new UsageError(`Cannot read ${file}: ${lineOf(error)}`);
  }
}

export function jsonOf(file: string): unknown {
  try {
    return JSON.parse(bytesOf(file).toString('utf8'));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${file} is not valid JSON`);
  }
}
