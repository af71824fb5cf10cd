/** The shape of a command. A new feature of the service is a command more. */
import type fc from 'fast-check';
import type { Session } from './session.js';
import type { Game, State } from './state.js';

/** Whose reads a command can have changed. */
export interface Touched {
  readonly players: readonly string[];
  readonly games: readonly number[];
}

export const NOTHING: Touched = { players: [], games: [] };

export interface Command<Choice> {
  readonly name: string;
  /** How often it is chosen beside the others. */
  readonly weight: number;
  arbitrary(): fc.Arbitrary<Choice>;
  /** Whether it can be done at all where these things are so. */
  applies(state: State, choice: Choice, session: Session): boolean;
  /** Sends the request, holds the answer against the prediction, and does the same to the reference. */
  run(session: Session, state: State, choice: Choice): Promise<Touched>;
}

/** A command that was drawn. */
export interface Drawn {
  readonly name: string;
  readonly choice: unknown;
}

/** The names are chosen so that they are hard to quote, to sort and to put into a path. */
export const PLAYERS = ['=a', 'b,"c"', 'ü %2F', 'd'] as const;

export const gameOf = (state: State, kind: Game['kind']): Game | undefined =>
  state.games.find((game) => game.kind === kind);

/** Of all that are there the one with this number, counted around. */
export const pick = <T>(all: readonly T[], number: number): T | undefined => all[number % all.length];

export const pathPart = (text: string): string => encodeURIComponent(text);
