/** How the service is set up for a measurement, and the options that say so. */

export interface Shape {
  readonly ack: 'redis' | 'ledger';
  /** Processes with the http role, beside one with the worker role; 0: one process has both, which is the default. */
  readonly frontEnds: number;
  readonly partners: number;
  /** In all, dealt out to the partners in turn. */
  readonly games: number;
  readonly gameType: 'slot' | 'raffle';
  /**
   * Each slot game has a communal progressive, a community of 100 players and a budget that lasts; it fires each 10,000
   * spins, or each 1,000.
   */
  readonly communal?: 'rare' | 'often' | undefined;
  /** The cells are on three primaries of a Redis Cluster, without replicas. */
  readonly isCluster?: boolean;
}

export const SHAPE: Shape = { ack: 'redis', frontEnds: 0, partners: 1, games: 1, gameType: 'slot' };

/** For `parseArgs`. */
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

/** @throws where an option has a value that it does not take */
export function readShape(values: ShapeValues): Shape {
  const { ack, communal, raffles } = values;
  const partners = wholeNumber('partners', values.partners);
  if (communal !== undefined && communal !== 'rare' && communal !== 'often')
    throw new Error('--communal takes rare or often');
  if (ack !== 'redis' && ack !== 'ledger') throw new Error('--ack takes redis or ledger');
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

/** Each `NAME=VALUE` of `--set`. */
export const readSettings = (set: readonly string[] = []): Readonly<Record<string, string>> =>
  Object.fromEntries(set.map((each) => each.split('=', 2)));

/** @throws where the option's text is no whole number, or less */
export function wholeNumber(name: string, text: string, least = 1): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < least)
    throw new Error(`--${name} takes whole numbers from ${least}`);
  return value;
}
