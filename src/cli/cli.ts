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
import { FaultsError, type StoreUrls, UsageError, wholeNumber } from './command.js';
import { addCompletion } from './completion.js';
import { addLedgerCommands } from './ledgerCommands.js';
import { bytesOf } from './operator/call.js';
import { addOperatorApiCommands } from './operator/operatorApiCommands.js';
import { addPartnerApiCommands } from './partnerApiCommands.js';
import { addProgramCommands } from './programCommands.js';
import { addLogCommands } from './publicLogCommands.js';
import { addRngCommands } from './rngCommands.js';
import { addStoreCommands } from './storeCommands.js';

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
  try {
    return JSON.parse(readFileSync(join(config.dataDir, STORES_FILE), 'utf8'));
  } catch {
    throw new UsageError(
      `No stores found. Set REDIS_URL and DATABASE_URL, or set DATA_DIR to the folder of embedded stores (${config.dataDir} has none).`,
    );
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

/**
 * Returns the service's address.
 * @throws UsageError if the address is invalid
 */
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

/**
 * Opens a client of the partner API.
 * @throws UsageError if the file has no partner key
 */
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

const ALONE = 'Commands that need no service or store:';

function addProofs(program: Command): void {
  const verify = program
    .command('verify-pool <FILE>')
    .description('verify the pool of a closed raffle')
    .helpGroup(ALONE)
    .option('--commitment <HEX>', 'commitment that was published when the pool was sealed')
    .addHelpText(
      'after',
      `
FILE is the response of GET /api/partner/v1/games/GAME_ID/pool. To read it from standard input, use - as FILE.
Exit status: 0 if proven, 1 if not proven, 2 for wrong usage or an unreadable file.

Examples:
  spindle verify-pool pool.json --commitment 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
  curl -s -H "X-API-Key: $KEY" http://127.0.0.1:8080/api/partner/v1/games/7/pool | spindle verify-pool -`,
    )
    .action(async (file: string) => {
      process.exitCode = (await import('./verifyPool.js')).verifyPoolFile(file, verify.optsWithGlobals());
    });
  const verifyRound = program
    .command('verify-round <FILE_OR_ID>')
    .description('verify the cards of a blackjack round')
    .helpGroup(ALONE)
    .option('--commitment <HEX>', 'commitment that the response to the deal contained')
    .option(
      '--archive <DIR>',
      'folder of the archives; the argument is then the id of a round of an archived day',
    )
    .addHelpText(
      'after',
      `
FILE is the response of GET /api/play/blackjack/rounds/ROUND_ID after the round has ended. To read it from standard input,
use - as FILE. With --archive the round is read from the archive of its day, and its shoe from the database.
Exit status: 0 if proven, 1 if not proven, 2 for wrong usage or an unreadable file.`,
    )
    .action(async (given: string) => {
      const { verifyArchivedRound, verifyRoundFile } = await import('./verifyRound.js');
      const options = verifyRound.optsWithGlobals();
      process.exitCode =
        options.archive === undefined
          ? verifyRoundFile(given, options)
          : await verifyArchivedRound(await storeUrls(), given, { ...options, archive: options.archive });
    });
}

function addVerify(program: Command): void {
  const verify = program
    .command('verify [FILE]')
    .description('verify the proof of an outcome, or the history of a game')
    .helpGroup(ALONE)
    .option('--log-key <VKEY>', 'public key of the log: NAME+KEYID+KEY')
    .option('--policy <FILE>', 'C2SP tlog-policy file with logs, witnesses and their quorum')
    .option('--sheet <FILE>', 'PAR sheet of the slot game, as uploaded')
    .option('--table <FILE>', 'prize table of the raffle')
    .option('--rules <FILE>', 'rules of the blackjack table')
    .option('--spin <FILE>', 'response to the spin, or the round')
    .option('--label-key-file <FILE>', 'file with the label key of the game, in hexadecimal')
    .option(
      '--seen <FILE>',
      'checkpoint that you saved earlier (repeatable)',
      (file: string, files: string[]) => [...files, file],
      [],
    )
    .option('--url <URL>', 'address of the service, for --history and for the tiles that --seen needs')
    .option('--history', 'verify all records of a game in the public log, instead of one proof')
    .option('--game <ID>', 'id of the game, for --history', wholeNumber)
    .option('--key-file <FILE>', 'file with an API key of the partner')
    .option('--sample <N>', 'number of random spins to verify as well', wholeNumber, 0)
    .option('--state <FILE>', 'file that saves the result, so that the next run reads only new records')
    .addHelpText(
      'after',
      `
FILE is a proof (format «spindle proof v1», docs/proofs.md) or a revealed block. To read it from standard input, use - as FILE.
With --history the records of the game are found by its label key. The command checks that each number occurs once, that the
indices have no gap or overlap, that revealed blocks can be drawn again (with --sheet or --table) and fit the distribution of
the sheet, and that settlement reports name checkpoints of the same log.
Exit status: 0 if proven, 1 if not proven, 2 for wrong usage or an unreadable file.

Examples:
  spindle verify proof.json --log-key spindle.example/log+5145b97b+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4
  spindle verify proof.json --policy policy.txt --sheet sheet.json --spin answer.json
  spindle verify --history --game 7 --url https://spindle.example --key-file partner-key --policy policy.txt --sheet sheet.json --state game-7`,
    )
    .action(async (file: string | undefined) => {
      const options = verify.optsWithGlobals();
      if (options.history === true) {
        process.exitCode = await (await import('./verifyHistory.js')).verifyHistory(file, options);
        return;
      }
      if (file === undefined) throw new UsageError('Give the FILE of a proof, or --history');
      process.exitCode = await (await import('./verifyProof.js')).verifyProofFile(file, options);
    });
}

function addWitness(program: Command): void {
  const command = program
    .command('witness')
    .description('run a witness that checks public logs and cosigns them')
    .helpGroup(ALONE)
    .option('--policy <FILE>', 'C2SP tlog-policy file that names the logs')
    .option('--key <FILE>', 'signer key of the witness: PRIVATE+KEY+NAME+KEYID+KEY')
    .option(
      '--state <DIR>',
      'folder for the cosigned checkpoints, and for evidence if a log signs two histories',
    )
    .option('--listen <ADDR>', 'HOST:PORT that logs send their checkpoints to (C2SP tlog-witness)')
    .option('--pull <URL>', 'URL of a log whose checkpoints are fetched')
    .option('--every <SECONDS>', 'interval of --pull, in seconds (default: 60)')
    .option('--mirror <DIR>', 'folder for copies of the tiles and records')
    .option('--new-key <NAME>', 'create a key in the file of --key and print the public key')
    .addHelpText(
      'after',
      `
A witness needs no store. Run one process for each DIR of --state. The URL of --pull contains the files checkpoint and tile/…;
for a Spindle service it is https://HOST/log.
Exit status: 0 after a stop signal; 2 for wrong usage; 3 if a log has signed two histories. In that case both notes are in
DIR/evidence, and the witness signs nothing more.

Examples:
  spindle witness --new-key witness.example/w1 --key witness.key
  spindle witness --policy logs.txt --key witness.key --state state --listen 127.0.0.1:8090
  spindle witness --policy logs.txt --key witness.key --state state --pull https://spindle.example/log --every 60`,
    )
    .action(async () => {
      process.exitCode = await (await import('./witness.js')).witness(command.optsWithGlobals());
    });
}

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
  addVerify(program);
  addProofs(program);
  addCapacity(program, ALONE, settings);
  addRngCommands(program, { group: ALONE, version });
  addProgramCommands(program, { group: ALONE, version });
  addWitness(program);
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

/**
 * Prints an error; with --json as one line of JSON.
 * @returns the exit status
 */
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
