/**
 * `spindle completion`: prints shell scripts that complete commands and options, and answers the requests
 * that these scripts send at each Tab (@bomb.sh/tab).
 */
import type { Command as Completed, RootCommand } from '@bomb.sh/tab';
import { Argument, type Command } from 'commander';

const SHELLS = ['bash', 'zsh', 'fish', 'powershell'];
/** Name of the hidden command that the completion scripts call. */
const ASKED = 'complete';

// The completion library is loaded only by the completion commands.
const library = async (): Promise<RootCommand> => (await import('@bomb.sh/tab')).default;

/**
 * Adds the completion commands. They describe all other commands, so they must be added last.
 * @param group group in the help
 */
export function addCompletion(program: Command, group: string): void {
  const name = program.name();
  program
    .command('completion')
    .addArgument(new Argument('<SHELL>').choices(SHELLS))
    .description('print a completion script for a shell')
    .helpGroup(group)
    .addHelpText(
      'after',
      `
The shell must find a program named ${name}. npm link creates it.

Examples:
  source <(${name} completion bash)
  ${name} completion fish > ~/.config/fish/completions/${name}.fish`,
    )
    .action(async (shell: string) => (await library()).setup(name, name, shell));
  program.command(`${ASKED} [WORDS...]`, { hidden: true }).action(async (words: string[]) => {
    const known = await library();
    describe(known, program, known, []);
    known.parse(words);
  });
}

/** Describes a command's options and subcommands to the completion library. */
function describe(root: RootCommand, command: Command, known: Completed, path: readonly string[]): void {
  const common = path.length === 0 ? [] : [...root.options.keys()];
  for (const { long, description, argChoices, required, optional } of command.options) {
    const name = long!.slice(2);
    const complete = (offer: (value: string, description: string) => void): void => {
      for (const choice of argChoices ?? []) offer(choice, '');
    };
    if (required || optional) known.option(name, description, complete);
    else known.option(name, description);
  }
  for (const option of common) known.option(option, root.options.get(option)!.description);
  for (const below of command.commands.filter((each) => each.name() !== ASKED)) {
    const words = [...path, below.name()];
    describe(root, below, root.command(words.join(' '), below.description()), words);
  }
}
