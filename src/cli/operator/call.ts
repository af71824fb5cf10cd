/** What the commands over the operator API have in common: how one is declared, and what it is given to do its work. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  NoAnswerError,
  type OperatorClient,
  type OperatorSchemas,
  SpindleError,
} from '../../api/client/apiClients.js';
import { lineOf } from '../../platform/secretsInLogs.js';
import { UsageError, wholeNumber } from '../command.js';
import { confirm } from '../confirm.js';

export const OPERATOR_GROUP = 'Over the operator API of a running service:';

/** The client that the options of a command (`--url`, `--key-file`) lead to. */
export type OpenClient = (options: { url?: string; keyFile?: string }) => Promise<OperatorClient>;

export type Schemas = OperatorSchemas;
export type Options = Record<string, unknown>;

interface Common {
  readonly url?: string;
  readonly keyFile?: string;
  readonly json?: true;
  readonly yes?: true;
  /** Seconds. */
  readonly watch?: number;
}

/** What a command is given to do its work. */
export interface Call {
  readonly client: OperatorClient;
  /** In the order of the usage. */
  readonly words: readonly string[];
  readonly options: Options;
  /** The body as JSON with `--json` (nothing where there is none), else what is made of it. */
  print<Body>(body: Body, plain: (body: Body) => string): void;
  /** Asks before what can't be undone (confirm.ts). @param consequence as a sentence */
  confirm(consequence: string): Promise<void>;
}

const WATCH_SECONDS = 2;
const WATCH_SECONDS_MAX = 3600;
/** Moves the cursor to the top left corner and clears the screen. */
const CLEAR = '\x1b[H\x1b[2J';

/** Declares the commands of a program. */
export class OperatorCommands {
  readonly #program: Command;
  readonly #open: OpenClient;

  constructor(program: Command, open: OpenClient) {
    this.#program = program;
    this.#open = open;
  }

  /** A command that has only commands below it. */
  group(name: string, description: string): Command {
    return this.#program.command(name).description(description).helpGroup(OPERATOR_GROUP);
  }

  /**
   * @param act runs with a client of the service; what it throws ends the program (cli.ts)
   * @param options `isDefault`: the group without a command means this one
   */
  add(
    usage: string,
    description: string,
    act: (call: Call) => Promise<void>,
    parent: Command = this.#program,
    { isDefault = false }: { isDefault?: boolean } = {},
  ): Command {
    const command = parent.command(usage, { isDefault }).description(description).helpGroup(OPERATOR_GROUP);
    return command
      .option(
        '--url <URL>',
        'where the service is (else SPINDLE_URL, else the one started here, else HOST and PORT)',
      )
      .option('--key-file <FILE>', 'file of the operator key (else OPERATOR_API_KEY, else that of DATA_DIR)')
      .action(async () => {
        const options = command.optsWithGlobals<Options & Common>();
        const isCleared = options.watch !== undefined && options.json !== true && process.stdout.isTTY;
        const call: Call = {
          client: await this.#open(options),
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

/** Runs what prints again and again until the program is interrupted. A service that is away is reported, and asked again. */
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

/** A command that may print again and again. */
export const withWatch = (command: Command): Command =>
  command.addOption(
    new Option('--watch [SECONDS]', 'print again every SECONDS until interrupted')
      .argParser((text) => {
        const seconds = wholeNumber(text);
        if (seconds >= 1 && seconds <= WATCH_SECONDS_MAX) return seconds;
        throw new InvalidArgumentError(`It must be 1 to ${WATCH_SECONDS_MAX}.`);
      })
      .preset(String(WATCH_SECONDS)),
  );

/** A command that prints a page of a list. @param many what is on a page */
export const withPages = (command: Command, many: string): Command =>
  command
    .addOption(new Option('--page <N>', 'from 1').argParser(wholeNumber).default(1))
    .addOption(new Option('--limit <N>', `${many} a page, up to 100`).argParser(wholeNumber).default(20));

const REASON = ['--reason <TEXT>', 'why, for the audit log'] as const;

/** A command whose reason the audit log keeps, where one is given. */
export const withReason = (command: Command): Command => command.option(...REASON);

/** A command that is done for a reason. */
export const forReason = (command: Command): Command => command.requiredOption(...REASON);

/** The reason as the API takes it. */
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

/** The last line of a page. */
export function pageLine(
  { page, limit, total }: PageOptions & { readonly total: number },
  many: string,
): string {
  return `page ${page} of ${Math.max(1, Math.ceil(total / limit))}, ${total} ${many}\n`;
}

/** A line for people, beside the output. */
export const note = (line: string): void => void process.stderr.write(`${line}\n`);

/** @throws UsageError where the file can't be read */
export function bytesOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new UsageError(`${file} can't be read: ${lineOf(error)}`);
  }
}
