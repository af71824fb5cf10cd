/**
 * The commands that need no installation: `verify`, `verify-pool`, `verify-round` and `witness`. They are
 * part of the `spindle` command and of the verifier that the service publishes (verifierCommand.ts).
 */
import type { Command } from 'commander';
import { UsageError, wholeNumber } from './command.js';
import type { ArchivedRoundOptions } from './verifyArchivedRound.js';

/**
 * Adds `verify-pool` and `verify-round`.
 * @param verifyArchived verifies a round of an archived day, and returns the exit status. Without it
 * `verify-round` has no option `--archive`, which needs the stores
 */
export function addProofs(
  program: Command,
  group: string,
  verifyArchived?: (roundId: string, options: ArchivedRoundOptions) => Promise<number>,
): void {
  const name = program.name();
  const verify = program
    .command('verify-pool <FILE>')
    .description('verify the pool of a closed raffle')
    .helpGroup(group)
    .option('--commitment <HEX>', 'commitment that was published when the pool was sealed')
    .addHelpText(
      'after',
      `
FILE is the response of GET /api/partner/v1/games/GAME_ID/pool. To read it from standard input, use - as FILE.
Exit status: 0 if proven, 1 if not proven, 2 for wrong usage or an unreadable file.

Examples:
  ${name} verify-pool pool.json --commitment 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
  curl -s -H "X-API-Key: $KEY" http://127.0.0.1:8080/api/partner/v1/games/7/pool | ${name} verify-pool -`,
    )
    .action(async (file: string) => {
      process.exitCode = (await import('./verifyPool.js')).verifyPoolFile(file, verify.optsWithGlobals());
    });
  const verifyRound = program
    .command(`verify-round ${verifyArchived === undefined ? '<FILE>' : '<FILE_OR_ID>'}`)
    .description('verify the cards of a blackjack round')
    .helpGroup(group)
    .option('--commitment <HEX>', 'commitment that the response to the deal contained');
  if (verifyArchived !== undefined)
    verifyRound.option(
      '--archive <DIR>',
      'folder of the archives; the argument is then the id of a round of an archived day',
    );
  verifyRound
    .addHelpText(
      'after',
      `
FILE is the response of GET /api/play/blackjack/rounds/ROUND_ID after the round has ended. To read it from standard input,
use - as FILE.${
        verifyArchived === undefined
          ? ''
          : ' With --archive the round is read from the archive of its day, and its shoe from the database.'
      }
Exit status: 0 if proven, 1 if not proven, 2 for wrong usage or an unreadable file.`,
    )
    .action(async (given: string) => {
      const options = verifyRound.optsWithGlobals();
      process.exitCode =
        options.archive === undefined || verifyArchived === undefined
          ? (await import('./verifyRound.js')).verifyRoundFile(given, options)
          : await verifyArchived(given, { ...options, archive: options.archive });
    });
}

export function addVerify(program: Command, group: string): void {
  const name = program.name();
  const verify = program
    .command('verify [FILE]')
    .description('verify the proof of an outcome, or the history of a game')
    .helpGroup(group)
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
  ${name} verify proof.json --log-key spindle.example/log+5145b97b+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4
  ${name} verify proof.json --policy policy.txt --sheet sheet.json --spin answer.json
  ${name} verify --history --game 7 --url https://spindle.example --key-file partner-key --policy policy.txt --sheet sheet.json --state game-7`,
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

export function addWitness(program: Command, group: string): void {
  const name = program.name();
  const command = program
    .command('witness')
    .description('run a witness that checks public logs and cosigns them')
    .helpGroup(group)
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
  ${name} witness --new-key witness.example/w1 --key witness.key
  ${name} witness --policy logs.txt --key witness.key --state state --listen 127.0.0.1:8090
  ${name} witness --policy logs.txt --key witness.key --state state --pull https://spindle.example/log --every 60`,
    )
    .action(async () => {
      process.exitCode = await (await import('./witness.js')).witness(command.optsWithGlobals());
    });
}
