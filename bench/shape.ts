/** The configuration of the service for a measurement, and the command-line options that set it. */

export interface Shape {
  readonly ack: 'redis' | 'ledger';
  /** Number of front ends beside one worker. 0: one process has both roles. */
  readonly frontEnds: number;
  readonly partners: number;
  /** Total number of games, distributed evenly over the partners. */
  readonly games: number;
  readonly gameType: 'slot' | 'raffle';
  /** Each slot game has a communal progressive that fires every 10,000 or 1,000 spins. */
  readonly communal?: 'rare' | 'often' | undefined;
  /** Number of primaries of a Redis Cluster without replicas. Undefined: a single Redis server. */
  readonly nodes?: number | undefined;
}

export const SHAPE: Shape = { ack: 'redis', frontEnds: 0, partners: 1, games: 1, gameType: 'slot' };

/** Options for `parseArgs`. */
export const SHAPE_OPTIONS = {
  partners: { type: 'string', default: '1' },
  games: { type: 'string' },
  ack: { type: 'string', default: 'redis' },
  raffles: { type: 'string' },
  'front-ends': { type: 'string', default: '0' },
  communal: { type: 'string' },
  set: { type: 'string', multiple: true },
} as const;

type ShapeValues = Readonly<Record<'partners' | 'ack' | 'front-ends', string>> &
  Readonly<Partial<Record<'games' | 'raffles' | 'communal', string>>>;

/** @throws Error if an option has an invalid value */
export function readShape(values: ShapeValues): Shape {
  const { ack, communal, raffles } = values;
  const partners = wholeNumber('partners', values.partners);
  if (communal !== undefined && communal !== 'rare' && communal !== 'often')
    throw new Error('--communal must be rare or often');
  if (ack !== 'redis' && ack !== 'ledger') throw new Error('--ack must be redis or ledger');
  const shape: Shape = {
    ack,
    frontEnds: wholeNumber('front-ends', values['front-ends'], 0),
    partners,
    games: values.games === undefined ? partners : wholeNumber('games', values.games),
    gameType: 'slot',
    communal,
  };
  if (raffles === undefined) return shape;
  return { ...shape, gameType: 'raffle', games: wholeNumber('raffles', raffles) };
}

/** Parses the values `NAME=VALUE` of `--set`. */
export const readSettings = (set: readonly string[] = []): Readonly<Record<string, string>> =>
  Object.fromEntries(set.map((each) => each.split('=', 2)));

/** @throws Error if the text is not an integer, or is less than `least` */
export function wholeNumber(name: string, text: string, least = 1): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < least)
    throw new Error(`--${name} must be whole numbers of at least ${least}`);
  return value;
}
