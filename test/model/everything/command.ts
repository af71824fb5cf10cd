/** Type of a command. A new feature of the service needs a new command. */
import type fc from 'fast-check';
import type { Session } from './session.js';
import type { Game, State } from './state.js';

/** Players and games about which a command may have changed what the service returns. */
export interface Touched {
  readonly players: readonly string[];
  readonly games: readonly number[];
}

export const NOTHING: Touched = { players: [], games: [] };

export interface Command<Choice> {
  readonly name: string;
  /** Relative frequency of the command. */
  readonly weight: number;
  arbitrary(): fc.Arbitrary<Choice>;
  /** Returns whether the command is possible in the present state. */
  applies(state: State, choice: Choice, session: Session): boolean;
  /**
   * Sends the request, compares the response with the prediction, and applies the command to the reference.
   */
  run(session: Session, state: State, choice: Choice): Promise<Touched>;
}

/** A command that was drawn at random, with its parameters. */
export interface Drawn {
  readonly name: string;
  readonly choice: unknown;
}

/**
 * Returns an element of a list. The index may exceed the list, and is taken modulo the number of elements.
 */
export const PLAYERS = ['=a', 'b,"c"', 'ü %2F', 'd'] as const;

export const gameOf = (state: State, kind: Game['kind']): Game | undefined =>
  state.games.find((game) => game.kind === kind);

/** Returns the element with this number, modulo the number of elements. */
export const pick = <T>(all: readonly T[], number: number): T | undefined => all[number % all.length];

export const pathPart = (text: string): string => encodeURIComponent(text);
