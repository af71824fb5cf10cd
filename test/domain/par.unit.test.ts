import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Fault } from '../../src/domain/errors.js';
import { checkParSheet, type ParSheet, ParSheetBody } from '../../src/domain/par.js';
import { FAULTS_MAX } from '../../src/domain/validation.js';

// biome-ignore lint/suspicious/noExplicitAny: a body to be broken in every way
type Body = any;

function sample(name: string): Body {
  return JSON.parse(readFileSync(new URL(`../par-sheets/${name}.json`, import.meta.url), 'utf8'));
}

/** Returns the faults of the sample sheet classic-3-reel after one or more changes. */
function faultsAfter(change: (body: Body) => void): Fault[] {
  const body = sample('classic-3-reel');
  change(body);
  const checked = checkParSheet(body);
  return 'faults' in checked ? checked.faults : [];
}

function pathsAfter(change: (body: Body) => void): string[] {
  return faultsAfter(change).map((fault) => fault.path);
}

function accepted(body: unknown): ParSheet {
  const checked = checkParSheet(body);
  if ('faults' in checked) throw new Error(JSON.stringify(checked.faults));
  return checked.sheet;
}

describe('sample PAR sheets', () => {
  test.each([
    ['classic-3-reel', 250_000],
    ['double-strike', 250_000],
    ['penny-sub-cent', 10_000],
  ])('accepts the sample PAR sheet %s', (name, denominationMicros) => {
    const body = sample(name);
    const sheet = accepted(body);
    expect(sheet).toEqual({ ...body, denominationMicros });
    expect(JSON.parse(JSON.stringify(sheet))).toEqual(sheet);
  });

  test('rejects five-reel-wild only because its stated RTP is not the RTP of its combinations', () => {
    const body = sample('five-reel-wild');
    const checked = checkParSheet(body);
    expect(checked).toEqual({
      faults: [{ path: '/certifiedRtp', message: expect.stringContaining('0.7775') }],
    });
    expect(accepted({ ...body, certifiedRtp: 0.7775 }).certifiedRtp).toBe(0.7775);
  });
});

describe('rules for PAR sheets', () => {
  const cases: [string, string, (body: Body) => void][] = [
    [
      'rule 1: tiers sum to 1',
      '/tiers',
      (b) => {
        b.tiers[1].probability = 0.16;
        b.combinations[7].comboProbability = 0.11;
        b.certifiedRtp = 0.945;
      },
    ],
    ['rule 1 and 2 hold to the tolerance', '', (b) => Object.assign(b.tiers[0], { probability: 0.7000009 })],
    [
      'rule 2: the combinations of a tier sum to it',
      '/tiers/0/probability',
      (b) => Object.assign(b.combinations[0], { comboProbability: 0.101 }),
    ],
    ['rule 3: RTP', '/certifiedRtp', (b) => Object.assign(b, { certifiedRtp: 0.9250011 })],
    ['rule 3 holds to the tolerance', '', (b) => Object.assign(b, { certifiedRtp: 0.925001 })],
    [
      'rule 4: defined symbols',
      '/combinations/3/reelSymbols/1',
      (b) => Object.assign(b.combinations[3].reelSymbols, ['Bar', 'Lemon', 'Seven']),
    ],
    [
      'rule 5: defined tiers',
      '/combinations/14/tierId',
      (b) => {
        b.tiers.pop();
        b.combinations.pop();
        b.tiers[1].probability += 0.002;
        b.combinations[7].comboProbability += 0.002;
        b.certifiedRtp = 0.852;
        b.combinations.push({ ...b.combinations[12], comboProbability: 0, tierId: 6 });
        b.combinations.splice(7, 0, { ...b.combinations[7], comboProbability: 0 });
      },
    ],
    [
      'rule 6: virtualStopsPerReel',
      '/virtualStopsPerReel',
      (b) => Object.assign(b, { virtualStopsPerReel: [32, 32] }),
    ],
    [
      'rule 6: reelSymbols',
      '/combinations/2/reelSymbols',
      (b) => Object.assign(b.combinations[2], { reelSymbols: ['Seven', 'Seven'], comboString: '7|7' }),
    ],
    [
      'multipliers are 0 or above',
      '/combinations/0/payMultiplier',
      (b) => {
        b.combinations[0].payMultiplier = -1;
        b.certifiedRtp = 0.825;
      },
    ],
    [
      'displayWeight is 0 or above',
      '/combinations/4/displayWeight',
      (b) => Object.assign(b.combinations[4], { displayWeight: -1 }),
    ],
    ['symbol names are unique', '/symbols/6/name', (b) => b.symbols.push({ name: 'Seven', display: '7' })],
    ['tier 0 pays nothing', '/tiers/0/payMultiplier', (b) => Object.assign(b.tiers[0], { payMultiplier: 1 })],
    [
      'a winning combination is not in tier 0',
      '/combinations/0/tierId',
      (b) => {
        b.combinations[0].payMultiplier = 1;
        b.certifiedRtp = 1.025;
      },
    ],
    [
      'comboString is the displays joined',
      '/combinations/0/comboString',
      (b) => Object.assign(b.combinations[0], { comboString: 'Blank|Bar|Plum' }),
    ],
    [
      'a reel has a stop for each of its symbols',
      '/virtualStopsPerReel/1',
      (b) => Object.assign(b, { virtualStopsPerReel: [32, 4, 32] }),
    ],
    [
      'a payout is whole micro-USD',
      '/combinations/7/payMultiplier',
      (b) => Object.assign(b.combinations[7], { payMultiplier: 2.0000001 }),
    ],
    [
      'the denomination has at most 6 decimals',
      '/denominationUsd',
      (b) => Object.assign(b, { denominationUsd: 0.2500001 }),
    ],
    [
      'the denomination is at most 10,000 USD',
      '/denominationUsd',
      (b) => Object.assign(b, { denominationUsd: 10_000.5 }),
    ],
    ['a denomination of 10,000 USD is taken', '', (b) => Object.assign(b, { denominationUsd: 10_000 })],
    ['the denomination is above 0', '/denominationUsd', (b) => Object.assign(b, { denominationUsd: 0 })],
    [
      'a combination of a tier above 0 pays',
      '/combinations/13/payMultiplier',
      (b) => {
        b.certifiedRtp -= b.combinations[13].payMultiplier * b.combinations[13].comboProbability;
        b.combinations[13].payMultiplier = 0;
        b.tiers[6].payMultiplier = 0;
      },
    ],
    [
      'a tier shows what its combinations pay',
      '/tiers/1/payMultiplier',
      (b) => Object.assign(b.tiers[1], { payMultiplier: 99 }),
    ],
    [
      'a payout is bounded',
      '/combinations/13/payMultiplier',
      (b) => {
        Object.assign(b.combinations[13], { payMultiplier: 1e10 });
        Object.assign(b.tiers[6], { payMultiplier: 1e10 });
        b.certifiedRtp = 20_000_000.848;
      },
    ],
    [
      'at most 10 reels',
      '/numReels',
      (b) => {
        b.numReels = 11;
        b.virtualStopsPerReel = new Array(11).fill(32);
        for (const combination of b.combinations) {
          combination.reelSymbols.push(...new Array(8).fill('Blank'));
          combination.comboString += '|-'.repeat(8);
        }
      },
    ],
    [
      'stops are 1 or more',
      '/virtualStopsPerReel/0',
      (b) => Object.assign(b, { virtualStopsPerReel: [0, 32, 32] }),
    ],
    ['no lone surrogates', '/gameTitle', (b) => Object.assign(b, { gameTitle: 'Lone \ud83d' })],
    ['no control characters', '/manufacturer', (b) => Object.assign(b, { manufacturer: 'Nul\0' })],
    ['texts are bounded', '/gameTitle', (b) => Object.assign(b, { gameTitle: 'x'.repeat(201) })],
  ];

  test.each(cases)('reports exactly one fault for a PAR sheet that breaks only: %s', (_, path, change) => {
    expect(pathsAfter(change)).toEqual(path === '' ? [] : [path]);
  });

  test.each(['classic-3-reel', 'double-strike', 'five-reel-wild', 'penny-sub-cent'])(
    'names both multipliers if a tier of the sheet %s contradicts its combinations',
    (name) => {
      const body = sample(name);
      if (name === 'five-reel-wild') body.certifiedRtp = 0.7775;
      const tier = body.tiers.at(-1);
      const [most, wrong] = [tier.payMultiplier, tier.payMultiplier + 0.5];
      expect(checkParSheet(body)).not.toHaveProperty('faults');
      tier.payMultiplier = wrong;
      const [fault, ...others] = (checkParSheet(body) as { faults: { message: string }[] }).faults;
      expect(others).toEqual([]);
      expect(fault!.message).toBe(`is ${wrong}, but the tier's combinations pay ${most}`);
    },
  );

  test('rejects a PAR sheet with two tiers of the same id', () => {
    expect(pathsAfter((body) => Object.assign(body.tiers[6], { tierId: 5 }))).toContain('/tiers/6/tierId');
  });

  test('rejects a PAR sheet without tier 0', () => {
    const paths = pathsAfter((body) => {
      body.tiers.shift();
      body.tiers[0].probability += 0.7;
      for (const combination of body.combinations) if (combination.tierId === 0) combination.tierId = 1;
    });
    expect(paths.filter((path) => !path.startsWith('/combinations/'))).toEqual(['/tiers']);
  });

  test('rejects a PAR sheet with a probability outside 0 to 1', () => {
    const paths = pathsAfter((body) => {
      body.tiers[0].probability = 1.2;
      body.combinations[0].comboProbability = -0.1;
    });
    expect(paths).toContain('/tiers/0/probability');
    expect(paths).toContain('/combinations/0/comboProbability');
  });
});

describe('the list of faults of a PAR sheet', () => {
  test('reports schema faults and rule faults of a PAR sheet together', () => {
    const paths = pathsAfter((body) => {
      delete body.manufacturer;
      body.gameTitle = 7;
      body.certifiedRtp = 0.5;
      body.symbols.push({ name: 'Bell', display: 'B' });
      body.combinations[3].reelSymbols[1] = 'Lemon';
      body.combinations[4].comboString = 'nonsense';
      delete body.combinations[5].displayWeight;
      body.virtualStopsPerReel = [32, 32];
    });
    expect(paths.sort()).toEqual([
      '/certifiedRtp',
      '/combinations/3/reelSymbols/1',
      '/combinations/4/comboString',
      '/combinations/5/displayWeight',
      '/gameTitle',
      '/manufacturer',
      '/symbols/6/name',
      '/virtualStopsPerReel',
    ]);
  });

  test('reports each missing field of a PAR sheet on a line of its own', () => {
    const checked = checkParSheet({});
    expect(checked).toEqual({
      faults: Object.keys(ParSheetBody.properties).map((name) => ({
        path: `/${name}`,
        message: 'is required',
      })),
    });
  });

  test(`reports up to ${FAULTS_MAX} faults of a PAR sheet, and says in the last one if there are more`, () => {
    const faults = faultsAfter((body) => {
      body.symbols = new Array(500).fill(0);
    });
    expect(faults).toHaveLength(FAULTS_MAX);
    expect(faults.at(-1)).toEqual({ path: '', message: 'has more faults' });
  });
});

describe('arbitrary bodies as PAR sheets', () => {
  test.each([[null], [undefined], ['text'], [7], [[]], [true]])('rejects %j as a PAR sheet', (body) => {
    expect(checkParSheet(body)).toEqual({ faults: [{ path: '', message: 'must be an object' }] });
  });

  test('rejects a PAR sheet with a number beyond the range of a double', () => {
    const text = readFileSync(new URL('../par-sheets/classic-3-reel.json', import.meta.url), 'utf8');
    const body = JSON.parse(
      text
        .replace('"certifiedRtp": 0.925', '"certifiedRtp": 1e400')
        .replace('"denominationUsd": 0.25', '"denominationUsd": 1e400')
        .replace('"displayWeight": 10', '"displayWeight": -1e400')
        .replace('"payMultiplier": 38.5, "comboP', '"payMultiplier": 1e400, "comboP')
        .replace('"numReels": 3', '"numReels": 1e400'),
    );
    const checked = checkParSheet(body);
    expect('faults' in checked && checked.faults.map((fault) => fault.path).sort()).toEqual([
      '/certifiedRtp',
      '/combinations/0/displayWeight',
      '/combinations/13/payMultiplier',
      '/denominationUsd',
      '/numReels',
    ]);
  });

  test('checks a PAR sheet with the largest and smallest doubles without an exception', () => {
    const paths = pathsAfter((body) => {
      body.combinations[13].payMultiplier = Number.MAX_VALUE;
      body.combinations[12].payMultiplier = Number.MIN_VALUE;
      body.combinations[11].comboProbability = Number.MIN_VALUE;
      body.denominationUsd = Number.MIN_VALUE;
    });
    expect(paths).toEqual([
      '/denominationUsd',
      '/tiers/4/probability',
      '/tiers/5/payMultiplier',
      '/tiers/6/payMultiplier',
      '/certifiedRtp',
    ]);
  });

  test('ignores unknown fields of a PAR sheet and does not keep them', () => {
    const body = sample('penny-sub-cent');
    const extended = structuredClone(body);
    extended.comment = 'internal';
    extended.tiers[0].colour = 'red';
    extended.combinations[0].note = {};
    expect(accepted(extended)).toEqual(accepted(body));
  });

  test('accepts symbol names of a PAR sheet that are properties of JavaScript objects', () => {
    const text = readFileSync(new URL('../par-sheets/penny-sub-cent.json', import.meta.url), 'utf8');
    const named = text
      .replaceAll('"name": "A"', '"name": "__proto__"')
      .replaceAll('[ "A", "A", "A" ]', '[ "__proto__", "__proto__", "__proto__" ]')
      .replaceAll('"X", "A", "B"', '"X", "__proto__", "constructor"')
      .replaceAll('"name": "B"', '"name": "constructor"')
      .replaceAll('[ "B", "B", "B" ]', '[ "constructor", "constructor", "constructor" ]');
    expect(accepted(JSON.parse(named)).symbols[0]!.name).toBe('__proto__');
    const polluting = JSON.parse(
      text.replace('{', '{"__proto__": {"gameTitle": "inherited"}, "constructor": 1,'),
    );
    expect(accepted(polluting).gameTitle).toBe('Penny');
    delete polluting.gameTitle;
    expect(checkParSheet(polluting)).toEqual({ faults: [{ path: '/gameTitle', message: 'is required' }] });
  });

  test('normalizes -0 in a PAR sheet to 0', () => {
    const text = readFileSync(new URL('../par-sheets/penny-sub-cent.json', import.meta.url), 'utf8');
    const sheet = accepted(JSON.parse(text.replaceAll('"payMultiplier": 0,', '"payMultiplier": -0,')));
    expect(Object.is(sheet.combinations[0]!.payMultiplier, 0)).toBe(true);
  });

  test('never throws on a PAR sheet with any single value replaced', () => {
    const junk = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom(Number.POSITIVE_INFINITY, 1e308, 5e-324, -0, 2 ** 53, '__proto__', [], {}),
    );
    const body = sample('penny-sub-cent');
    const places: (string | number)[][] = [];
    const walk = (value: unknown, path: (string | number)[]): void => {
      places.push(path);
      if (typeof value !== 'object' || value === null) return;
      for (const [key, item] of Object.entries(value)) walk(item, [...path, key]);
    };
    walk(body, []);
    fc.assert(
      fc.property(fc.constantFrom(...places.slice(1)), junk, (path, value) => {
        const changed = structuredClone(body);
        const parent = path.slice(0, -1).reduce((at, key) => at[key], changed);
        parent[path.at(-1)!] = value;
        const checked = checkParSheet(changed);
        expect('sheet' in checked || checked.faults.length > 0).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});

test('expresses the PAR sheet schema as plain JSON Schema that another validator accepts', () => {
  const validate = new Ajv({ strict: false }).compile(JSON.parse(JSON.stringify(ParSheetBody)));
  expect(validate(sample('double-strike'))).toBe(true);
  expect(validate({ ...sample('double-strike'), numReels: 0 })).toBe(false);
});
