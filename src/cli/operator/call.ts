/** What the commands over the operator API have in common: how one is declared, and what it is given to do its work. */
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { OperatorClient, OperatorSchemas } from '../../client/client.js';
import { lineOf } from '../../log.js';
import { UsageError } from '../command.js';

export const OPERATOR_GROUP = 'Over the operator API of a running service:';

/** The client that the options of a command (`--url`, `--key-file`) lead to. */
export type OpenClient = (options: { url?: string; keyFile?: string }) => Promise<OperatorClient>;

export type Schemas = OperatorSchemas;
export type Options = Record<string, unknown>;

/** What a command is given to do its work. */
export interface Call {
  readonly client: OperatorClient;
  /** In the order of the usage. */
  readonly words: readonly string[];
  readonly options: Options;
  /** The body as JSON with `--json` (nothing where there is none), else what is made of it. */
  print<Body>(body: Body, plain: (body: Body) => string): void;
}

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

  /** @param act runs with a client of the service; what it throws ends the program (cli.ts) */
  add(
    usage: string,
    description: string,
    act: (call: Call) => Promise<void>,
    parent: Command = this.#program,
  ): Command {
    const command = parent.command(usage).description(description).helpGroup(OPERATOR_GROUP);
    return command
      .option('--url <URL>', 'where the service is (else SPINDLE_URL, else HOST and PORT)')
      .option('--key-file <FILE>', 'file of the operator key (else OPERATOR_API_KEY, else that of DATA_DIR)')
      .action(async () => {
        const options = command.optsWithGlobals<Options & { url?: string; keyFile?: string; json?: true }>();
        await act({
          client: await this.#open(options),
          words: command.args,
          options,
          print(body, plain) {
            if (options.json !== true) process.stdout.write(plain(body));
            else if (body !== undefined) process.stdout.write(`${JSON.stringify(body)}\n`);
          },
        });
      });
  }
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
