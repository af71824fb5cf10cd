#!/usr/bin/env node
/** `spindle`: manages a service over its operator API, inspects its stores, and proves raffles and rounds. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError, Help } from 'commander';
import {
  NoAnswerError,
  type OperatorClient,
  operatorClient,
  type PartnerClient,
  partnerClient,
  SpindleError,
} from '../api/client/apiClients.js';
import type { Config } from '../app/config.js';
import { PROJECT_ROOT } from '../platform/projectRoot.js';
import { localUrl, SERVICE_FILE, type ServiceFile } from '../platform/serviceFile.js';
import { STORES_FILE } from '../platform/storesFile.js';
import { addCapacity } from './capacityCommand.js';
import { FaultsError, type StoreUrls, UsageError } from './command.js';
import { addCompletion } from './completion.js';
import { addLedgerCommands } from './ledgerCommands.js';
import { bytesOf } from './operator/call.js';
import { addOperatorApiCommands } from './operator/operatorApiCommands.js';
import { addPartnerApiCommands } from './partnerApiCommands.js';
import { addProgramCommands } from './programCommands.js';
import { addLogCommands } from './publicLogCommands.js';
import { addRngCommands } from './rngCommands.js';
import { addStoreCommands } from './storeCommands.js';
import { addProofs, addVerify, addWitness } from './verifyCommands.js';

const ALONE = 'Commands that need no service or store:';
const EXIT_WITHIN_MS = 1000;
const OPERATOR_KEY_FILE = 'operator-api-key';

/**
 * Reads the settings. The settings module is loaded only by commands that need settings, because loading it
 * takes longer than everything else that such a command does.
 */
const settings = async (): Promise<Config> => (await import('../app/config.js')).readConfig();

/**
 * Sets the keys that the service seals blocks with, so that a command that opens the stores can read blocks.
 */
async function takeSeedKeys(config: Config): Promise<void> {
  const { SEEDS_KEY_FILE } = await import('../app/settings.js');
  const given = [config.SEEDS_KEY, config.WEBHOOK_SECRETS_KEY].flatMap((keys) => keys?.split(',') ?? []);
  const file = join(config.dataDir, SEEDS_KEY_FILE);
  const own = existsSync(file) ? [readFileSync(file, 'utf8').trim()] : [];
  const { useSeedKeys } = await import('../engine/blocks/blockSeals.store.js');
  useSeedKeys([...given, ...own]);
}

async function storeUrls(): Promise<StoreUrls> {
  const config = await settings();
  await takeSeedKeys(config);
  const { REDIS_URL, DATABASE_URL } = config;
  if (REDIS_URL !== undefined && DATABASE_URL !== undefined)
    return { redisUrl: REDIS_URL, databaseUrl: DATABASE_URL };
  const file = join(config.dataDir, STORES_FILE);
  if (!existsSync(file))
    throw new UsageError(
      `No stores found. Set REDIS_URL and DATABASE_URL, or set DATA_DIR to the folder of embedded stores (${config.dataDir} has none).`,
    );
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    throw new UsageError(`${file} can't be read or is damaged. A start of the service writes it again.`);
  }
}

/** Returns the URL of the service started on this data folder if it is still running. */
function startedHere(dataDir: string): string | undefined {
  try {
    const { url, pid } = JSON.parse(readFileSync(join(dataDir, SERVICE_FILE), 'utf8')) as ServiceFile;
    process.kill(pid, 0);
    return url;
  } catch (error) {
    // EPERM means that the process exists and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM' ? readUrl(dataDir) : undefined;
  }
}

const readUrl = (dataDir: string): string =>
  (JSON.parse(readFileSync(join(dataDir, SERVICE_FILE), 'utf8')) as ServiceFile).url;

function serviceAddress(config: Config, given: string | undefined): string {
  const address =
    given ?? config.SPINDLE_URL ?? startedHere(config.dataDir) ?? localUrl(config.HOST, config.PORT);
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`«${address}» is not an http:// or https:// address`);
  }
  if (`${url.username}${url.password}${url.search}${url.hash}` !== '') {
    throw new UsageError('The address of the service must not contain a user, query or fragment');
  }
  return address;
}

async function openPartnerClient(options: { url?: string; keyFile: string }): Promise<PartnerClient> {
  const address = serviceAddress(await settings(), options.url);
  const key = bytesOf(options.keyFile).toString('latin1').trim();
  if (!/^ks_[\x21-\x7e]+$/.test(key))
    throw new UsageError(`${options.keyFile} does not contain a partner key (ks_…)`);
  return partnerClient(address, key);
}

const WHICH_SERVICE =
  'For a service on this machine, set DATA_DIR to its folder. For any other service, set SPINDLE_URL and OPERATOR_API_KEY, or use --url and --key-file.';

async function openClient(options: { url?: string; keyFile?: string }): Promise<OperatorClient> {
  const config = await settings();
  const address = serviceAddress(config, options.url);
  const file = options.keyFile ?? join(config.dataDir, OPERATOR_KEY_FILE);
  let key: string;
  if (options.keyFile === undefined && config.OPERATOR_API_KEY !== undefined) key = config.OPERATOR_API_KEY;
  else {
    try {
      key = readFileSync(file, 'utf8').trim();
    } catch {
      throw new UsageError(
        `Cannot read the operator key from ${file}${options.keyFile === undefined ? `. ${WHICH_SERVICE}` : ''}`,
      );
    }
  }
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new UsageError('The operator key contains invalid characters. Check the key.');
  return operatorClient(address, key, { readsAgain: true });
}

const version = (): string => JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8')).version;

const pathOf = (command: Command): string =>
  command.parent?.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();

function programOf(): Command {
  const program = new Command('spindle')
    .description('Manages a Spindle service, inspects its stores, and verifies raffles, rounds and proofs.')
    .option('--json', 'print one JSON value instead of text')
    .version(`spindle ${version()}`, '-V, --version', 'print the version')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(usageFault(text)) })
    .configureHelp({
      showGlobalOptions: true,
      visibleCommands: (command) => new Help().visibleCommands(command.helpCommand(false)),
      subcommandDescription: (command) =>
        command.commands.length === 0
          ? command.description()
          : `${command.description()}: ${command.commands.map((each) => each.name()).join(', ')}`,
      subcommandTerm: (command) =>
        [
          pathOf(command),
          ...command.registeredArguments.map((word) => word.name()),
          ...(command.commands.length > 0 ? ['COMMAND'] : []),
        ].join(' '),
    })
    .helpCommand(false);
  addOperatorApiCommands(program, openClient);
  addVerify(program, ALONE);
  addProofs(program, ALONE, async (roundId, options) => {
    const { verifyArchivedRound } = await import('./verifyArchivedRound.js');
    return verifyArchivedRound(await storeUrls(), roundId, options);
  });
  addCapacity(program, ALONE, settings);
  addRngCommands(program, { group: ALONE, version });
  addProgramCommands(program, { group: ALONE, version });
  addWitness(program, ALONE);
  addPartnerApiCommands(program, {
    brand: async () => (await settings()).BRAND,
    open: openPartnerClient,
  });
  addStoreCommands(program, { storeUrls, settings });
  addLedgerCommands(program, { storeUrls, settings });
  addLogCommands(program, { storeUrls, settings });
  program
    .command('version', { hidden: true })
    .description('print the version of this program')
    .action(() => {
      const json = program.opts().json === true;
      process.stdout.write(json ? `${JSON.stringify({ version: version() })}\n` : `spindle ${version()}\n`);
    });
  addCompletion(program, ALONE);
  program.addHelpText(
    'after',
    `For the options of a command, run spindle COMMAND --help. Exit status: 0 if done, found, clean or proven; 1 if refused, not found, not clean, not proven, or without a response; 2 for wrong usage.`,
  );
  return program;
}

const isJsonAsked = (): boolean => process.argv.includes('--json');

/**
 * Formats a usage error that the command-line parser found.
 * @param text `error: …`, possibly followed by a suggestion on its own line
 */
function usageFault(text: string): string {
  const message = text.replace(/^error: /, '').trimEnd();
  if (!isJsonAsked()) return `spindle: ${message}\n`;
  return `${JSON.stringify({ error: { message: message.replaceAll('\n', ' '), details: [] } })}\n`;
}

function asJson(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof SpindleError) {
    const { code, status, details, requestId } = error;
    return JSON.stringify({ error: { code, status, message, details, requestId } });
  }
  return JSON.stringify({
    error: { message, details: linesBelow(error).map((line) => ({ message: line })) },
  });
}

const NO_ANSWER = 'If the address is wrong, set SPINDLE_URL or use --url';

function linesBelow(error: unknown): readonly string[] {
  if (error instanceof NoAnswerError) return [NO_ANSWER];
  return error instanceof FaultsError ? error.faults : [];
}

/** Prints an error; with --json as one line of JSON. */
function failed(error: unknown): number {
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  // The command-line parser has already printed its message. Exit code 0 means that help was requested, which
  // is no failure.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (isJsonAsked()) {
    say(asJson(error));
    return error instanceof UsageError ? 2 : 1;
  }
  if (error instanceof SpindleError) {
    say(`${error.code} ${error.message}`);
    for (const { path, message } of error.details) say(`  ${path === '' ? message : `${path} ${message}`}`);
    if (error.status >= 500 && error.requestId !== undefined) say(`  request ${error.requestId}`);
    return 1;
  }
  say(`spindle: ${error instanceof Error ? error.message : String(error)}`);
  for (const line of linesBelow(error)) say(`  ${line}`);
  return error instanceof UsageError ? 2 : 1;
}

// A closed pipe on standard output is not an error, because its reader may need only the first lines (`|
// head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});
try {
  await programOf().parseAsync();
} catch (error) {
  process.exitCode = failed(error);
}
// A hanging store connection would keep the process alive, so the process exits by itself after all output
// has been written, however slowly the output is read.
process.stdout.write('', () => setTimeout(() => process.exit(), EXIT_WITHIN_MS).unref());
