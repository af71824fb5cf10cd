/** Common parts of the commands over the operator API: declaration, options and output. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  NoAnswerError,
  type OperatorClient,
  type OperatorSchemas,
  SpindleError,
} from '../../api/client/apiClients.js';
import { isDay, shiftDay } from '../../domain/days.js';
import { lineOf } from '../../platform/secretsInLogs.js';
import { UsageError, wholeNumber } from '../command.js';
import { confirm } from '../confirm.js';

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

export function timeRangeOf({ options }: Pick<Call, 'options'>): { from?: string; to?: string } {
  const { from, to } = options as { from?: string; to?: string };
  return { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
}

export const withCsv = (command: Command): Command =>
  command.addOption(
    new Option(
      '--csv',
      'print all matching entries as CSV; a text that a spreadsheet would run as a formula gets an apostrophe',
    ).conflicts('json'),
  );

export const CSV_REQUEST = { headers: { Accept: 'text/csv' }, parseAs: 'text' } as const;
export const CSV_QUERY = { escapeFormulas: 'true' } as const;

const REASON = ['--reason <TEXT>', 'reason, for the audit log'] as const;

/** Adds an optional reason for the audit log to a command. */
export const withReason = (command: Command): Command => command.option(...REASON);

/** Adds a required reason for the audit log to a command. */
export const forReason = (command: Command): Command => command.requiredOption(...REASON);

export const auditReasonOf = ({ options: { reason } }: Pick<Call, 'options'>): { reason?: string } =>
  reason === undefined ? {} : { reason: String(reason) };

export interface PageOptions {
  readonly page: number;
  readonly limit: number;
}

export const pageOf = ({ options }: Call): PageOptions => ({
  page: options.page as number,
  limit: options.limit as number,
});

export function pageLine(
  { page, limit, total }: PageOptions & { readonly total: number },
  many: string,
): string {
  return `page ${page} of ${Math.max(1, Math.ceil(total / limit))}, ${total} ${many}\n`;
}

/** Prints a line for people to standard error. */
export const note = (line: string): void => void process.stderr.write(`${line}\n`);

export function bytesOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new UsageError(`Cannot read ${file}: ${lineOf(error)}`);
  }
}
