/**
 * `spindle-verify`: the verifier as one file for people without an installation. The build bundles this file
 * with everything that it imports (tools/verifier.ts), and the service publishes the bundle at /docs/verify.
 */
import { Command, CommanderError, Help } from 'commander';
import { UsageError } from './command.js';
import { addProofs, addVerify, addWitness } from './verifyCommands.js';

const GROUP = 'Commands:';

const program = new Command('spindle-verify')
  .usage('COMMAND [OPTIONS]')
  .description(
    'Verifies proofs, histories, raffles and rounds of a Spindle service, and runs a witness of its log.',
  )
  .option('--json', 'print one JSON value instead of text')
  .exitOverride()
  .configureHelp({
    showGlobalOptions: true,
    visibleCommands: (command) => new Help().visibleCommands(command.helpCommand(false)),
  })
  .helpCommand(false);
addVerify(program, GROUP);
addProofs(program, GROUP);
addWitness(program, GROUP);

/** Prints an error; with --json as one line of JSON. */
function failed(error: unknown): number {
  // The command-line parser has already printed its message. Exit code 0 means that help was requested.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(
    program.opts().json === true
      ? `${JSON.stringify({ error: { message, details: [] } })}\n`
      : `spindle-verify: ${message}\n`,
  );
  return error instanceof UsageError ? 2 : 1;
}

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = failed(error);
}
