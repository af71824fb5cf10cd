import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import type { Client, TestPartner } from '../../support/client.js';
import { corporaMissing, jsonParsingFiles, naughtyStrings } from '../../support/corpora.js';
import { plainRequest, portOf, Wire } from '../../support/load.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const { stores, sql, redis } = world();
let service: Awaited<ReturnType<typeof startService>>;
let client: Client;
let partner: TestPartner;
let gameId: number;

beforeAll(async () => {
  service = await startService(stores, { CELLS: '1' });
  client = service;
  partner = await client.newPartner();
  gameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
});

afterAll(async () => {
  await service.stop();
});

type Body = Record<string, unknown>;
interface SpinAnswer extends Body {
  spinId: string;
  requestId?: string;
  errorCode?: string;
  balance: { balanceUsd: number };
}

/** Sends a spin whose body is exactly this text. */
const spinText = (text: string) => client.spin<SpinAnswer>(partner.key, text);
const spin = (more: object) => client.spin<SpinAnswer>(partner.key, { gameId, wagerUsd: 0.25, ...more });

/** Sends GET for a path below the partner API over a raw socket, because client libraries rewrite paths. */
async function getRaw<T = Body>(path: string, key = partner.key): Promise<{ status: number; body: T }> {
  const wire = await Wire.open(portOf(client.base));
  const answer = await wire.ask(plainRequest('GET', `/api/partner/v1${path}`, key));
  wire.close();
  return { status: answer.status, body: JSON.parse(answer.text) as T };
}

/** Implements the rule for playerId, requestId and displayName (docs/contract.md §2.3). */
function isAllowed(text: string): boolean {
  const points = [...text];
  return points.length >= 1 && points.length <= 128 && !points.some((point) => /[\p{Cc}\p{Cs}]/u.test(point));
}

const COMBINING = ['\u00e9', 'e\u0301', 'E\u0301', '\ufb01', 'fi', '\u2126', '\u03a9', '\u1e9e', 'ss', 'SS'];
const OWN_STRINGS = [
  ...COMBINING,
  '🎰',
  '👩‍👩‍👧‍👦',
  'case',
  'CASE',
  'Case',
  ' case',
  'case ',
  ' ',
  '\u00a0',
  '\u200b',
  '\u2028',
  '\ufeff',
  '\ufffe',
  '\u{10ffff}',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '0',
  '-0',
  '1e3',
  'null',
  ':',
  '1:alice',
  '.',
  '..',
  '../..',
  '/',
  '%2F',
  '%',
  '?a=b',
  '#',
  '"',
  '\\',
  '\\u0000',
  '{c0}:players',
  "'; DROP TABLE ledger; --",
  'a'.repeat(128),
  '\u{1f3b0}'.repeat(128),
  '',
  '\0',
  'a\0',
  'a\0b',
  '\t',
  '\r\nX-Injected: yes',
  '\u007f',
  '\u0085',
  '\u009f',
  '\ud800',
  '\udc00',
  'a\udc00\ud800',
  'a'.repeat(129),
  '\u{1f3b0}'.repeat(129),
  'a'.repeat(1800),
];

/** Calls a function for each item, a few items at a time, because each call mostly waits for a store. */
async function eachOf<T>(items: readonly T[], run: (item: T, index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let i = next++; i < items.length; i = next++) await run(items[i]!, i);
  };
  await Promise.all(Array.from({ length: 8 }, lane));
}

/**
 * Spins once with each string as playerId and as requestId, and checks every place where the API returns the
 * string.
 */
async function keepsStrings(strings: readonly string[]): Promise<void> {
  const own = await client.newPartner();
  const game = await client.newGame(own.key, parSheet('classic-3-reel'));
  const balances = new Map<string, number>();
  const spinIds = new Map<string, string>();
  for (const text of strings) {
    const answer = await client.spin<SpinAnswer>(own.key, {
      gameId: game,
      wagerUsd: 0.25,
      playerId: text,
      requestId: text,
    });
    if (!isAllowed(text)) {
      expect([text, answer.status, answer.body.errorCode]).toEqual([text, 400, 'KS-4101']);
      const paths = (answer.body.details as { path: string }[]).map(({ path }) => path);
      expect(paths.sort()).toEqual(['/playerId', '/requestId']);
      continue;
    }
    expect([text, answer.status, answer.body.requestId]).toEqual([text, 200, text]);
    balances.set(text, answer.body.balance.balanceUsd);
    spinIds.set(text, answer.body.spinId);
  }
  await eachOf([...balances], async ([playerId, balanceUsd]) => {
    const player = await getRaw(`/players/${encodeURIComponent(playerId)}`, own.key);
    expect([player.status, player.body]).toMatchObject([200, { playerId, balanceUsd }]);
    const record = await getRaw(`/spins/${spinIds.get(playerId)}`, own.key);
    expect(record.body).toMatchObject({ playerId, requestId: playerId, balance: { balanceUsd } });
  });
  const fields = await redis.hkeys('{c0}:players');
  const prefix = `${own.partnerId}:`;
  const players = fields
    .filter((field) => field.startsWith(prefix))
    .map((field) => field.slice(prefix.length));
  expect(players.sort()).toEqual([...balances.keys()].sort());
  const rows = await sql<{ player_id: string; entries: number; balance_micros: bigint }[]>`
    SELECT player_id, count(*)::int AS entries, max(balance_micros) FILTER (WHERE kind = 1) AS balance_micros
    FROM ledger WHERE partner_id = ${own.partnerId} GROUP BY player_id`;
  const booked = new Map(rows.map((row) => [row.player_id, Number(row.balance_micros) / 1e6]));
  expect(booked).toEqual(balances);
  expect(rows.every((row) => row.entries === 2)).toBe(true);
}

describe('identifiers as opaque strings', () => {
  test('refuses each string by the rule for identifiers, or keeps it unchanged and distinct from all others', async () => {
    await keepsStrings(OWN_STRINGS);
  });

  test('refuses or keeps unchanged each string of the Big List of Naughty Strings as an identifier', async ({
    skip,
  }) => {
    skip(corporaMissing !== undefined, corporaMissing);
    await keepsStrings(naughtyStrings());
  });

  test('refuses identifiers that are not valid UTF-8', async () => {
    const [before, after] = `{"gameId":${gameId},"wagerUsd":0.25,"playerId":"|"}`.split('|');
    for (const bad of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xe2, 0x82], [0xf4, 0x90, 0x80, 0x80]]) {
      const answer = await client.spin(
        partner.key,
        Buffer.concat([Buffer.from(before!), Buffer.from(bad), Buffer.from(after!)]),
      );
      expect([answer.status, answer.body.errorCode]).toEqual([400, 'KS-4101']);
    }
  });
});

describe('numbers in request bodies', () => {
  const withWager = (text: string, playerId: string) =>
    spinText(`{"gameId":${gameId},"playerId":"${playerId}","wagerUsd":${text}}`);

  test.each([
    ['0.25', 200, undefined],
    ['2.5e-1', 200, undefined],
    ['25E-2', 200, undefined],
    ['0.250000000000000000000', 200, undefined],
    ['0.00000000000000000025e18', 200, undefined],
    ['"0.25"', 400, 'KS-4101'],
    ['null', 400, 'KS-4101'],
    ['true', 400, 'KS-4101'],
    ['[0.25]', 400, 'KS-4101'],
    ['{"wagerUsd":0.25}', 400, 'KS-4101'],
    ['0.2500001', 400, 'KS-4103'],
    ['0.25000000000000000001', 400, 'KS-4103'],
    ['0.24999999999999999999', 400, 'KS-4103'],
    ['1e400', 400, 'KS-4101'],
    ['1e-400', 400, 'KS-4103'],
    ['-0.25', 400, 'KS-4103'],
    ['0', 400, 'KS-4103'],
    ['-0', 400, 'KS-4103'],
    ['.25', 400, 'KS-4101'],
    ['+0.25', 400, 'KS-4101'],
    ['00.25', 400, 'KS-4101'],
    ['NaN', 400, 'KS-4101'],
  ])(
    'compares a wagerUsd of %s with the wager of the game by its decimal value',
    async (text, status, errorCode) => {
      // The spin is tried with an ASCII and with a non-ASCII player id, because a body with ASCII identifiers
      // takes a separate code path.
      for (const playerId of ['w', 'w€']) {
        const answer = await withWager(text, playerId);
        expect([answer.status, answer.body.errorCode]).toEqual([status, errorCode]);
      }
    },
  );

  const LONG = '0.25000000000000000001';
  test.each([
    [
      'a playerId that holds wagerUsd and long digits',
      '"playerId":"\\"wagerUsd\\":9,1234567890123456789","wagerUsd":0.25',
      200,
    ],
    ['a playerId that ends with a backslash', '"playerId":"12345678901234567890\\\\","wagerUsd":0.25', 200],
    ['a member of another object', `"playerId":"w","wagerUsd":${LONG},"more":{"wagerUsd":0.25}`, 400],
    [
      'an exact one beside a member of another object',
      `"playerId":"w","wagerUsd":0.25,"more":{"wagerUsd":${LONG}}`,
      200,
    ],
    ['an object in an array', `"playerId":"w","wagerUsd":0.25,"more":[{"wagerUsd":${LONG}}]`, 200],
    ['a name that is spelled with an escape', `"playerId":"w","wager\\u0055sd":${LONG}`, 400],
    ['the last of two, which is exact', `"playerId":"w","wagerUsd":${LONG},"wagerUsd":0.25`, 200],
    ['the last of two, which is not', `"playerId":"w","wagerUsd":0.25,"wager\\u0055sd":${LONG}`, 400],
    ['a string that looks like the member', `"playerId":"w","wagerUsd":0.25,"x":"wagerUsd","y":${LONG}`, 200],
  ])('reads the wager correctly in a body with %s', async (_what, members, status) => {
    expect((await spinText(`{"gameId":${gameId},${members}}`)).status).toBe(status);
  });

  test.each([
    ['1.5', 400, 'KS-4101'],
    ['"1"', 400, 'KS-4101'],
    ['-1', 400, 'KS-4101'],
    ['0', 400, 'KS-4101'],
    ['1e400', 400, 'KS-4101'],
    ['9007199254740993', 400, 'KS-4101'],
    ['null', 400, 'KS-4101'],
    ['9007199254740991', 403, 'KS-4006'],
    ['4294967297', 403, 'KS-4006'],
  ])('interprets a gameId of %s by its decimal value', async (text, status, errorCode) => {
    const answer = await spinText(`{"gameId":${text},"playerId":"g","wagerUsd":0.25}`);
    expect([answer.status, answer.body.errorCode]).toEqual([status, errorCode]);
  });

  test('accepts a gameId that is written with a fraction of zero', async () => {
    expect((await spinText(`{"gameId":${gameId}.0,"playerId":"g","wagerUsd":0.25}`)).status).toBe(200);
  });

  test('uses the last of two members with the same name, also when it compares the request with a replay', async () => {
    const twice = `{"gameId":${gameId},"playerId":"mallory","playerId":"dup","wagerUsd":0.25,"requestId":"dup-1"}`;
    const first = await spinText(twice);
    const again = await spin({ playerId: 'dup', requestId: 'dup-1' });
    expect([first.status, again.text]).toEqual([200, first.text]);
    expect((await getRaw('/players/mallory')).status).toBe(404);
  });

  test('takes no values from a member named __proto__ in the body', async () => {
    const answer = await spinText(`{"__proto__":{"gameId":${gameId},"playerId":"p","wagerUsd":0.25}}`);
    expect([answer.status, answer.body.errorCode]).toEqual([400, 'KS-4102']);
    const more = `{"__proto__":{"a":1},"constructor":null,"gameId":${gameId},"playerId":"p","wagerUsd":0.25}`;
    expect((await spinText(more)).status).toBe(200);
  });
});

describe('malformed request bodies', () => {
  test('reads every text of JSONTestSuite correctly or refuses it without harm', async ({ skip }) => {
    skip(corporaMissing !== undefined, corporaMissing);
    for (const { name, bytes } of jsonParsingFiles()) {
      let isObject = false;
      if (name.startsWith('y_')) {
        const value: unknown = JSON.parse(bytes.toString());
        isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
      }
      for (const [path, limit, missing] of [
        ['/spin', 4096, 'KS-4102'],
        ['/par-sheets', 10_240, 'KS-4104'],
      ] as const) {
        const { status, body } = await client.partner('POST', path, partner.key, bytes);
        const seen = [name, path, status, body.errorCode];
        if (bytes.length > limit) expect(seen).toEqual([name, path, 413, 'KS-4101']);
        else if (name.startsWith('n_')) expect(seen).toEqual([name, path, 400, 'KS-4101']);
        else if (name.startsWith('y_'))
          expect(seen).toEqual([name, path, 400, isObject ? missing : 'KS-4101']);
        else expect(seen).toEqual([name, path, 400, expect.stringMatching(/^KS-410[124]$/)]);
      }
    }
    expect((await spin({ playerId: 'after' })).status).toBe(200);
  });

  test('reads or refuses deeply nested JSON up to the body limit without harm', async () => {
    const deep = `{"gameId":${gameId},"playerId":"deep","wagerUsd":0.25,"x":${'['.repeat(1900)}${']'.repeat(1900)}}`;
    expect((await spinText(deep)).status).toBe(200);
    const open = await spinText('{"a":'.repeat(800));
    expect([open.status, open.body.errorCode]).toEqual([400, 'KS-4101']);
    const sheet = await client.partner('POST', '/par-sheets', partner.key, '['.repeat(10_000));
    expect([sheet.status, sheet.body.errorCode]).toEqual([400, 'KS-4101']);
  });
});

test('creates no player for a refused request, and the ledger has every player that Redis has', async () => {
  expect((await spin({ playerId: 'last' })).status).toBe(200);
  const mine = `${partner.partnerId}:`;
  const fields = (await redis.hkeys('{c0}:players')).filter((field) => field.startsWith(mine));
  await until(async () => {
    const rows = await sql<{ player_id: string }[]>`
      SELECT DISTINCT player_id FROM ledger WHERE partner_id = ${partner.partnerId}`;
    return rows.length === fields.length && rows.every((row) => fields.includes(`${mine}${row.player_id}`));
  }, 'ledger and Redis have the same players');
});

describe('display names of games', () => {
  test('refuses each display name by the rule, or lists it unchanged', async () => {
    const own = await client.newPartner();
    const upload = await client.partner('POST', '/par-sheets', own.key, parSheet('classic-3-reel'));
    // The service runs without the worker role here, because hundreds of games need no outcomes.
    await service.stop();
    service = await startService(stores, { CELLS: '1', ROLES: 'http' });
    client = service;
    const strings = [...OWN_STRINGS, ...(corporaMissing === undefined ? naughtyStrings() : [])];
    const kept: Record<string, string> = {};
    await eachOf(strings, async (displayName, index) => {
      const configName = `NAME_${index}`;
      const body = { parSheetId: upload.body.parSheetId, displayName, configName };
      const answer = await client.partner('POST', '/games', own.key, body);
      if (isAllowed(displayName)) {
        expect([answer.status, answer.body.displayName]).toEqual([201, displayName]);
        kept[configName] = displayName;
      } else {
        expect([displayName, answer.status, answer.body.errorCode]).toEqual([displayName, 400, 'KS-4101']);
      }
    });
    const list = await client.partner<{ games: { configName: string; displayName: string }[] }>(
      'GET',
      '/games',
      own.key,
    );
    expect(list.body.games).toHaveLength(Object.keys(kept).length);
    const listed = list.body.games.map(({ configName, displayName }) => [configName, displayName]);
    expect(Object.fromEntries(listed)).toEqual(kept);
  });
});
