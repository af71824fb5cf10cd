/**
 * Types of a scenario of the reference model: partners and the operations on them, which fast-check draws.
 */
import fc from 'fast-check';
import { SHEET_NAMES, type SheetName } from './sheet.js';

/** A scenario: new partners and the operations on them. */
export interface Scenario {
  readonly partners: readonly PartnerChoice[];
  readonly operations: readonly Operation[];
}

export interface PartnerChoice {
  readonly environment: 'sandbox' | 'production';
  /**
   * Rate limits. Null means a limit far above the number of requests of a scenario. The requests that set up
   * the partner are added to a small API limit.
   */
  readonly spinLimit: number | null;
  readonly apiLimit: number | null;
  /** Opening balance. Undefined means the default in the environment of the service. */
  readonly opening: string | undefined;
  readonly balanceMode: 'track' | 'enforce';
  readonly funding: string | null;
  readonly sheets: readonly SheetName[];
  /** The communal progressive of the partner's first game. */
  readonly bonus: BonusChoice | null;
}

/** A communal progressive. Its tiers fire at every 10th, 20th, … spin. */
export interface BonusChoice {
  /** Amounts of the tiers in USD, in the order of the levels. */
  readonly amounts: readonly string[];
  /** Budget of the communal progressive in USD. */
  readonly budget: string;
  /** Part of an event's payout that the triggering player gets, in hundredths of a percent. */
  readonly triggerPart: number;
  readonly communitySize: number;
  readonly returnsToBudget: boolean;
  readonly paysRemaining: boolean;
}

/**
 * Sender of a request, and the front end that gets it. Numbers select from the existing items, modulo their
 * count.
 */
export interface By {
  readonly partner: number;
  readonly front: number;
  readonly key: number | 'revoked' | 'unknown' | 'none';
}

export interface SpinChoice {
  /**
   * Number of one of the partner's own games; `foreign` is a game of the other partner, and `huge` exceeds
   * any id.
   */
  readonly game: number | 'foreign' | 'unknown' | 'huge';
  readonly player: number;
  readonly wager: Wager;
  readonly requestId: number | undefined;
}

export interface OutcomeChoice {
  readonly game: SpinChoice['game'];
  readonly player: number;
  /** Index of a combination in the sheet. The largest value that is drawn exists in no sheet. */
  readonly combination: number;
}

/** Notations of the wager: the right amount in several notations, and wrong amounts close to it. */
export const WAGERS = [
  'plain',
  'padded',
  'exponent',
  'double',
  'plus-micro',
  'plus-tiny',
  'negative',
  'zero',
] as const;
export type Wager = (typeof WAGERS)[number];

export type ReadChoice =
  | { readonly what: 'player'; readonly player: number }
  | { readonly what: 'page'; readonly player: number; readonly page: number; readonly limit: number }
  | { readonly what: 'spin'; readonly spin: number; readonly of: 'own' | 'foreign' | 'nobody' }
  | { readonly what: 'games' | 'version' | 'unknown-path' | 'bad-page' };

export type Ask =
  | { readonly op: 'spin'; readonly by: By; readonly spin: SpinChoice }
  /** Repeats an earlier spin with one change or none. */
  | { readonly op: 'again'; readonly by: By; readonly which: number; readonly change: Change }
  | { readonly op: 'bad'; readonly by: By; readonly body: BadBody }
  /** Chooses the outcome of the player's next spin as a tester. */
  | { readonly op: 'choose'; readonly by: By; readonly choice: OutcomeChoice }
  | { readonly op: 'read'; readonly by: By; readonly read: ReadChoice };

export const CHANGES = ['none', 'spelling', 'player', 'game', 'wager', 'unknown-game'] as const;
export type Change = (typeof CHANGES)[number];

export type Operation =
  | Ask
  | { readonly op: 'together'; readonly asks: readonly Ask[] }
  | { readonly op: 'copies'; readonly by: By; readonly spin: SpinChoice; readonly copies: number }
  | { readonly op: 'cut'; readonly by: By; readonly spin: SpinChoice; readonly cut: Cut }
  | {
      readonly op: 'settings';
      readonly partner: number;
      readonly front: number;
      readonly wait: boolean;
      readonly change: SettingsChange;
    }
  | { readonly op: 'issue'; readonly partner: number; readonly front: number }
  | {
      readonly op: 'revoke';
      readonly partner: number;
      readonly front: number;
      readonly key: number;
      readonly wait: boolean;
    }
  | {
      readonly op: 'suspend' | 'resume';
      readonly partner: number;
      readonly front: number;
      readonly game: number;
      readonly wait: boolean;
    }
  /** Waits until the store's clock is in its next minute. */
  | { readonly op: 'minute' }
  /** Cuts the service's connections to Redis while these requests are in progress. */
  | { readonly op: 'store-cut'; readonly asks: readonly Ask[]; readonly afterUs: number };

/**
 * Moment at which a connection is cut: after a number of bytes of the request, or a number of microseconds
 * after the whole request.
 */
export type Cut = { readonly bytes: number } | { readonly afterUs: number; readonly how: 'reset' | 'close' };

export interface SettingsChange {
  readonly isActive?: boolean;
  readonly spinLimit?: number | null;
  readonly apiLimit?: number | null;
  readonly opening?: string;
  readonly balanceMode?: 'track' | 'enforce';
  readonly funding?: string | null;
}

/** Player ids that software may confuse with other values. */
export const PLAYERS: readonly string[] = [
  'p',
  'P',
  'p ',
  ' p',
  '0',
  '1:p',
  'a/b',
  '..',
  '%2F%00',
  '?x=1#y',
  '"\\',
  'ä',
  'a\u0308',
  '玩家',
  '\u{1f3b0}'.repeat(128),
  'null',
  '\u200b',
  '{c0}:cell',
];

export const REQUEST_IDS: readonly string[] = [
  'r',
  'R',
  'r ',
  '0',
  'é',
  'e\u0301',
  '\u{1f3b0}',
  'x'.repeat(128),
  '"\\/',
  '1:p',
  'undefined',
  'ﬁ',
];

/**
 * Bodies that are not valid spin requests, with the permitted responses. `%g` and `%w` stand for an existing
 * game and its wager.
 */
const BAD_BODIES = {
  'no-json': ['{"gameId":%g', '400 KS-4101'],
  array: ['[%g]', '400 KS-4101'],
  text: ['"spin"', '400 KS-4101'],
  empty: ['', '400 KS-4101'],
  'without-game': ['{"playerId":"p","wagerUsd":%w}', '400 KS-4102'],
  'without-player': ['{"gameId":%g,"wagerUsd":%w,"requestId":"r"}', '400 KS-4102'],
  'without-wager': ['{"gameId":%g,"playerId":"p","requestId":"r"}', '400 KS-4102'],
  'text-game': ['{"gameId":"%g","playerId":"p","wagerUsd":%w}', '400 KS-4101'],
  'fractional-game': ['{"gameId":%g.5,"playerId":"p","wagerUsd":%w}', '400 KS-4101'],
  'text-wager': ['{"gameId":%g,"playerId":"p","wagerUsd":"%w"}', '400 KS-4101'],
  'number-player': ['{"gameId":%g,"playerId":7,"wagerUsd":%w}', '400 KS-4101'],
  'empty-player': ['{"gameId":%g,"playerId":"","wagerUsd":%w}', '400 KS-4101'],
  'long-player': [`{"gameId":%g,"playerId":"${'x'.repeat(129)}","wagerUsd":%w}`, '400 KS-4101'],
  'control-player': ['{"gameId":%g,"playerId":"a\\u0007b","wagerUsd":%w}', '400 KS-4101'],
  'surrogate-player': ['{"gameId":%g,"playerId":"\\ud83c","wagerUsd":%w}', '400 KS-4101'],
  'empty-request': ['{"gameId":%g,"playerId":"p","wagerUsd":%w,"requestId":""}', '400 KS-4101'],
  'null-request': ['{"gameId":%g,"playerId":"p","wagerUsd":%w,"requestId":null}', '400 KS-4101'],
  'number-request': ['{"gameId":%g,"playerId":"p","wagerUsd":%w,"requestId":1}', '400 KS-4101'],
  'over-4-KB': [`{"gameId":%g,"playerId":"p","wagerUsd":%w,"x":"${'x'.repeat(4096)}"}`, '413 KS-4101'],
} as const;
export type BadBody = keyof typeof BAD_BODIES;

export function badBody(name: BadBody, gameId: number, wager: string): { body: string; allowed: string } {
  const [template, allowed] = BAD_BODIES[name];
  return { body: template.replace('%g', String(gameId)).replace('%w', wager), allowed };
}

// Arbitraries ---------------------------------------------------------------------------------------------

const few = (max: number) => fc.integer({ min: 0, max });
/** Draws one of the choices, each with a frequency proportional to its weight. */
const weighted = <T>(...choices: readonly (readonly [weight: number, arbitrary: fc.Arbitrary<T>])[]) =>
  fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })));

const small = fc.integer({ min: 1, max: 12 });
const limit = weighted<number | null>([3, fc.constant(null)], [1, small]);
const openings = fc.constantFrom('0', '0.5', '0.25', '12.345678', '1000000.000001', '7');
/**
 * Amounts of funding, including the largest payout of each sheet and amounts close to it, because funding
 * ends there.
 */
const fundings = fc.constantFrom('0', '0.08', '0.077', '0.076999', '9.625', '10.5', '500', '1000', '1000000');

/** Communal progressives with amounts that do not divide evenly and budgets that run out. */
const bonuses: fc.Arbitrary<BonusChoice> = fc.record({
  amounts: fc.array(fc.constantFrom('0.000001', '0.000007', '0.500003', '1'), { minLength: 1, maxLength: 2 }),
  budget: fc.constantFrom('0.000009', '0.75', '1000'),
  triggerPart: fc.constantFrom(0, 3333, 4000, 10_000),
  communitySize: fc.constantFrom(0, 1, 2, 200),
  returnsToBudget: fc.boolean(),
  paysRemaining: fc.boolean(),
});

const partners = (limits: fc.Arbitrary<number | null>): fc.Arbitrary<PartnerChoice> =>
  fc.record({
    environment: fc.constantFrom('sandbox', 'production'),
    spinLimit: limits,
    apiLimit: limits,
    opening: weighted<string | undefined>([1, fc.constant(undefined)], [2, openings]),
    balanceMode: weighted<'track' | 'enforce'>([3, fc.constant('track')], [1, fc.constant('enforce')]),
    funding: weighted<string | null>([4, fc.constant(null)], [1, fundings]),
    sheets: fc.array(fc.constantFrom(...SHEET_NAMES), { minLength: 1, maxLength: 2 }),
    bonus: weighted<BonusChoice | null>([1, fc.constant(null)], [2, bonuses]),
  });

const front = few(1);
const by: fc.Arbitrary<By> = fc.record({
  partner: few(1),
  front,
  key: weighted<By['key']>(
    [60, few(2)],
    [2, fc.constant('revoked')],
    [1, fc.constant('unknown')],
    [1, fc.constant('none')],
  ),
});
/**
 * A scenario has only a few players, so that it uses them repeatedly. Which players it has differs between
 * scenarios.
 */
const player = weighted([4, few(2)], [1, few(PLAYERS.length - 1)]);
const requestId = few(REQUEST_IDS.length - 1);
const wager = weighted<Wager>([12, fc.constant('plain')], [3, fc.constantFrom(...WAGERS)]);
const game = weighted<SpinChoice['game']>([16, few(1)], [1, fc.constantFrom('foreign', 'unknown', 'huge')]);
const spinChoice: fc.Arbitrary<SpinChoice> = fc.record({
  game,
  player,
  wager,
  requestId: fc.option(requestId, { nil: undefined, freq: 3 }),
});
/** A valid spin, which should be dealt. */
const goodSpin: fc.Arbitrary<SpinChoice> = fc.record({
  game: few(1),
  player,
  wager: fc.constant('plain'),
  requestId: fc.option(requestId, { nil: undefined, freq: 6 }),
});

const read: fc.Arbitrary<ReadChoice> = weighted<ReadChoice>(
  [4, fc.record({ what: fc.constant('player'), player })],
  [
    3,
    fc.record({
      what: fc.constant('page'),
      player,
      page: fc.integer({ min: 1, max: 3 }),
      limit: fc.constantFrom(1, 2, 5, 100),
    }),
  ],
  [
    2,
    fc.record({
      what: fc.constant('spin'),
      spin: few(50),
      of: weighted<'own' | 'foreign' | 'nobody'>(
        [4, fc.constant('own')],
        [1, fc.constantFrom('foreign', 'nobody')],
      ),
    }),
  ],
  [1, fc.record({ what: fc.constantFrom('games', 'version', 'unknown-path', 'bad-page') })],
);

const spin: fc.Arbitrary<Ask> = fc.record({ op: fc.constant('spin'), by, spin: spinChoice });
const again: fc.Arbitrary<Ask> = fc.record({
  op: fc.constant('again'),
  by,
  which: few(30),
  change: weighted<Change>([4, fc.constant('none')], [3, fc.constantFrom(...CHANGES)]),
});
const bad: fc.Arbitrary<Ask> = fc.record({
  op: fc.constant('bad'),
  by,
  body: fc.constantFrom(...(Object.keys(BAD_BODIES) as BadBody[])),
});
const choose: fc.Arbitrary<Ask> = fc.record({
  op: fc.constant('choose'),
  by,
  choice: fc.record({ game, player, combination: weighted([12, few(5)], [1, fc.constant(1000)]) }),
});
const ask: fc.Arbitrary<Ask> = weighted<Ask>(
  [10, spin],
  [2, choose],
  [5, again],
  [1, bad],
  [3, fc.record({ op: fc.constant('read'), by, read })],
);
const asks = fc.array(ask, { minLength: 2, maxLength: 6 });

const cut: fc.Arbitrary<Cut> = weighted<Cut>(
  [1, fc.record({ bytes: fc.integer({ min: 1, max: 400 }) })],
  [5, fc.record({ afterUs: few(4000), how: fc.constantFrom('reset', 'close') })],
);

const settingsChange: fc.Arbitrary<SettingsChange> = weighted<SettingsChange>(
  [2, fc.record({ spinLimit: limit, apiLimit: limit })],
  [1, fc.record({ isActive: fc.boolean() })],
  [
    2,
    fc.record(
      {
        isActive: fc.constant(true),
        spinLimit: limit,
        opening: openings,
        balanceMode: fc.constantFrom('track', 'enforce'),
        funding: fc.option(fundings),
      },
      { requiredKeys: [] },
    ),
  ],
);

const change: fc.Arbitrary<Operation> = weighted<Operation>(
  [
    5,
    fc.record({
      op: fc.constant('settings'),
      partner: few(1),
      front,
      wait: fc.boolean(),
      change: settingsChange,
    }),
  ],
  [2, fc.record({ op: fc.constant('issue'), partner: few(1), front })],
  [2, fc.record({ op: fc.constant('revoke'), partner: few(1), front, key: few(2), wait: fc.boolean() })],
  [
    3,
    fc.record({
      op: fc.constantFrom('suspend', 'resume'),
      partner: few(1),
      front,
      game: few(1),
      wait: fc.boolean(),
    }),
  ],
);

const operation: fc.Arbitrary<Operation> = weighted<Operation>(
  [16, ask],
  [4, fc.record({ op: fc.constant('together'), asks })],
  [2, fc.record({ op: fc.constant('copies'), by, spin: goodSpin, copies: fc.integer({ min: 2, max: 6 }) })],
  [2, fc.record({ op: fc.constant('cut'), by, spin: goodSpin, cut })],
  [3, change],
);

const storeCut: fc.Arbitrary<Operation> = fc.record({
  op: fc.constant('store-cut'),
  asks,
  afterUs: few(4000),
});

export interface ScenarioOptions {
  readonly operations: number;
  /** True if connections to Redis can be cut. */
  readonly hasCable: boolean;
  /** True if each scenario continues into the next minute once. */
  readonly crossesMinute: boolean;
}

export function scenarios({ operations, hasCable, crossesMinute }: ScenarioOptions): fc.Arbitrary<Scenario> {
  const any = hasCable ? weighted<Operation>([12, operation], [1, storeCut]) : operation;
  const some = fc.array(any, { minLength: crossesMinute ? 20 : 1, maxLength: operations, size: 'max' });
  return fc.record({
    // The limits are so small that a scenario uses them up before the minute ends, and again in the next
    // minute.
    partners: fc.array(partners(crossesMinute ? small : limit), { minLength: 1, maxLength: 2 }),
    operations: crossesMinute
      ? fc.tuple(some, some).map(([before, after]) => [...before, { op: 'minute' } as const, ...after])
      : some,
  });
}
