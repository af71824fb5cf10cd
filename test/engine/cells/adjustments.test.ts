/**
 * Tests balance adjustments: each adjustment is recorded before it is made, is made once, and appears in the
 * ledger like every other entry.
 */
import type { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { audit } from '../../../src/books/audit/audit.js';
import { checkpointPlayers } from '../../../src/engine/recovery/recoveries.store.js';
import { readOutbox } from '../../../src/engine/redis/cellRecords.js';
import { cellKey, outboxKey, playersKey } from '../../../src/engine/redis/keys.js';
import { adjustmentKey } from '../../../src/engine/redis/requestHashes.js';
import { EpochError } from '../../../src/engine/redis/scriptErrors.js';
import { Scripts } from '../../../src/engine/redis/scripts.js';
import { SPIN_STATUS } from '../../../src/engine/redis/statuses.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import type { Sql } from '../../../src/postgres/connection.js';
import { freshStores } from '../../setup/freshStores.js';
import { booksHold } from '../../support/books.js';
import { adjustOnce } from '../../support/cellCommands.js';
import type { Answer, TestPartner } from '../../support/client.js';
import { type OpenNodes, openNodes, rawRedis } from '../../support/redis.js';
import { boundKey } from '../../support/requestSegments.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { ownStores, type TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

type Service = Awaited<ReturnType<typeof startService>>;
interface Adjusted extends Record<string, unknown> {
  playerId: string;
  balanceUsd: number;
  adjustmentId: string;
}

const adjustedOf = async (id: number) =>
  (await sql`SELECT adjustments, amount_micros::bigint FROM adjustment_days WHERE partner_id = ${id}`)[0];
const WAGER = 0.25;
const FRONT = { ROLES: 'http', SPIN_DEADLINE_MS: '4000' };
let stores: Pick<TestStores, 'redisUrl' | 'databaseUrl' | 'drop'>;
let sql: postgres.Sql<{ bigint: bigint }>;
let ownSql: Sql;
let redis: Redis;
let nodes: OpenNodes;
let service: Service;

async function open(): Promise<void> {
  sql = postgres(stores.databaseUrl, { max: 2, types: { bigint: postgres.BigInt }, onnotice: () => {} });
  ownSql = connectPostgres(stores.databaseUrl, { max: 2, name: 'test', onError: () => {} });
  redis = rawRedis(stores.redisUrl);
  nodes = await openNodes(stores.redisUrl);
}

async function close(): Promise<void> {
  await service?.stop();
  redis?.disconnect();
  nodes?.close();
  await sql?.end();
  await ownSql?.end();
  await stores?.drop();
}

const pathOf = (partnerId: number | string, playerId: string): string =>
  `/partners/${partnerId}/players/${encodeURIComponent(playerId)}/adjustments`;
const adjust = (partnerId: number, playerId: string, amountUsd: unknown, requestId: string, more = {}) =>
  service.operator<Adjusted>('POST', pathOf(partnerId, playerId), {
    amountUsd,
    reason: 'goodwill',
    requestId,
    ...more,
  });
const spin = (partner: TestPartner, gameId: number, playerId: string, requestId?: string) =>
  service.spin<{ spinId: string }>(partner.key, { gameId, playerId, wagerUsd: WAGER, requestId });
const balanceOf = async (partner: TestPartner, playerId: string): Promise<unknown> =>
  (await service.partner('GET', `/players/${playerId}`, partner.key)).body.balanceUsd;
const codeOf = ({ status, body }: Answer<Record<string, unknown>>) => [status, body.errorCode];

const bookedOf = async (partnerId: number, requestId: string) => [
  ...(await sql`SELECT * FROM ledger WHERE kind = 3 AND partner_id = ${partnerId} AND request_id = ${requestId}`),
];
const intentsOf = async (partnerId: number) => [
  ...(await sql`SELECT * FROM adjustments WHERE partner_id = ${partnerId} ORDER BY intent_id`),
];
const auditLogOf = async (partnerId: number) => [
  ...(await sql`SELECT actor, action, subject, before, after FROM audit_log
    WHERE subject LIKE ${`player:${partnerId}:%`} ORDER BY audit_id`),
];
const outboxIsEmpty = async (): Promise<boolean> => {
  const cells = await sql`SELECT cell FROM cells`;
  const lengths = await Promise.all(cells.map(({ cell }) => redis.xlen(outboxKey(cell as number))));
  return lengths.every((length) => length === 0);
};
const allBooked = () => until(outboxIsEmpty, 'all is booked');
const cellOf = async (partnerId: number): Promise<number> =>
  (await sql`SELECT cell FROM partners WHERE partner_id = ${partnerId}`)[0]!.cell as number;

async function audited(): Promise<string[]> {
  const { interrupted, checks } = await audit(ownSql, nodes.nodes, {
    limit: 100,
    onProgress: () => {},
  });
  expect(interrupted).toBeUndefined();
  return checks.flatMap(({ name, listed }) => listed.map(({ problem }) => `${name}: ${problem}`));
}

describe('balance adjustments by an operator', () => {
  beforeAll(async () => {
    stores = await freshStores();
    await open();
    service = await startService(stores);
  });
  afterAll(close);

  test('an adjustment changes the balance up or down by its amount and is recorded with its reason', async () => {
    const partner = await service.newPartner({ openingBalanceUsd: 10 });
    const { partnerId } = partner;
    const up = await adjust(partnerId, 'Ünï/code 🎰', 2.000001, 'up', { reason: 'line 1\n\tline 2 🎁' });
    expect([up.status, up.body]).toEqual([
      200,
      {
        playerId: 'Ünï/code 🎰',
        balanceUsd: 12.000001,
        adjustmentId: expect.stringMatching(/^[0-9a-f]{32}$/),
      },
    ]);
    const down = await adjust(partnerId, 'Ünï/code 🎰', -12.5, 'down');
    expect([down.status, down.body.balanceUsd]).toEqual([200, -0.499999]);
    expect(await balanceOf(partner, encodeURIComponent('Ünï/code 🎰'))).toBe(-0.499999);
    await allBooked();
    const entries = await sql`
      SELECT kind, entry_number, wager_micros, credit_micros, balance_micros, outcome_index, game_id, outcome_code, request_id
      FROM ledger WHERE partner_id = ${partnerId} ORDER BY entry_id`;
    const rest = { wager_micros: 0n, outcome_index: 0n, game_id: 0, outcome_code: 0, entry_number: 1 };
    expect([...entries]).toEqual([
      { ...rest, kind: 2, credit_micros: 10_000_000n, balance_micros: 10_000_000n, request_id: null },
      { ...rest, kind: 3, credit_micros: 2_000_001n, balance_micros: 12_000_001n, request_id: 'up' },
      { ...rest, kind: 3, credit_micros: -12_500_000n, balance_micros: -499_999n, request_id: 'down' },
    ]);
    expect(await adjustedOf(partnerId)).toMatchObject({ adjustments: 2n, amount_micros: -10_499_999n });
    const intent = { requestId: 'up', amountMicros: 2_000_001, reason: 'line 1\n\tline 2 🎁' };
    expect(await auditLogOf(partnerId)).toMatchObject([
      {
        actor: 'operator',
        action: 'player.adjust',
        subject: `player:${partnerId}:Ünï/code 🎰`,
        before: null,
        after: intent,
      },
      { action: 'player.adjust', after: { requestId: 'down', amountMicros: -12_500_000 } },
    ]);
    await booksHold(sql);
    expect(await audited()).toEqual([]);
  });

  test('an adjustment creates a new player, who can then spin under balance mode enforce', async () => {
    const partner = await service.newPartner({ environment: 'production', balanceMode: 'enforce' });
    const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
    expect(codeOf(await spin(partner, gameId, 'p'))).toEqual([400, 'KS-4225']);
    expect((await adjust(partner.partnerId, 'p', WAGER, 'first')).body.balanceUsd).toBe(WAGER);
    const spun = await spin(partner, gameId, 'p');
    expect(spun.status).toBe(200);
    const list = await service.partner<{ total: number; spins: object[] }>(
      'GET',
      '/players/p/spins',
      partner.key,
    );
    expect(list.body).toMatchObject({ total: 1, spins: [{ spinId: spun.body.spinId }] });
    await booksHold(sql);
  });

  test('an adjustment is made once, however often it is requested at the same time or later', async () => {
    const partner = await service.newPartner({ openingBalanceUsd: 10 });
    const { partnerId } = partner;
    const answers = await Promise.all(Array.from({ length: 64 }, () => adjust(partnerId, 'p', 1.5, 'r')));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    const [first] = answers;
    expect(first!.body.balanceUsd).toBe(11.5);
    // A retry returns the balance after its own adjustment, not the current balance.
    await adjust(partnerId, 'p', 1, 'other');
    expect((await adjust(partnerId, 'p', 1.5, 'r')).text).toBe(first!.text);
    await allBooked();
    expect((await adjust(partnerId, 'p', 1.5, 'r')).text).toBe(first!.text);
    expect(await bookedOf(partnerId, 'r')).toHaveLength(1);
    expect(await auditLogOf(partnerId)).toHaveLength(2);
    expect(await balanceOf(partner, 'p')).toBe(12.5);
  });

  test('refuses an adjustment whose requestId belongs to a different adjustment (KS-4111)', async () => {
    const partner = await service.newPartner({ openingBalanceUsd: 10 });
    const { partnerId } = partner;
    expect((await adjust(partnerId, 'p', 1, 'r')).status).toBe(200);
    for (const other of [
      adjust(partnerId, 'p', 1.000001, 'r'),
      adjust(partnerId, 'p', -1, 'r'),
      adjust(partnerId, 'q', 1, 'r'),
      adjust(partnerId, 'p', 1, 'r', { reason: 'another' }),
    ]) {
      expect(codeOf(await other)).toEqual([409, 'KS-4111']);
    }
    expect(await balanceOf(partner, 'p')).toBe(11);
    expect(codeOf(await service.partner('GET', '/players/q', partner.key))).toEqual([404, 'KS-4204']);
    const another = await service.newPartner({ openingBalanceUsd: 10 });
    expect((await adjust(another.partnerId, 'p', -1, 'r')).body.balanceUsd).toBe(9);
  });

  test('refuses an adjustment below zero under balance mode enforce (KS-4225), and accepts its retry once the balance suffices', async () => {
    const partner = await service.newPartner({ openingBalanceUsd: 5, balanceMode: 'enforce' });
    const { partnerId } = partner;
    expect(codeOf(await adjust(partnerId, 'p', -5.000001, 'r'))).toEqual([400, 'KS-4225']);
    expect(codeOf(await service.partner('GET', '/players/p', partner.key))).toEqual([404, 'KS-4204']);
    expect((await adjust(partnerId, 'p', 1, 'known')).body.balanceUsd).toBe(6);
    await allBooked();
    const cell = await cellOf(partnerId);
    const state = async () => [
      await redis.hgetBuffer(playersKey(cell), `${partnerId}:p`),
      await redis.hgetBuffer(cellKey(cell), 'last'),
      (await sql`SELECT 1 FROM ledger WHERE partner_id = ${partnerId}`).length,
      (await intentsOf(partnerId)).length,
    ];
    const before = await state();
    const refused = await Promise.all(
      Array.from({ length: 16 }, () => adjust(partnerId, 'p', -6.000001, 'r')),
    );
    for (const answer of refused) expect(codeOf(answer)).toEqual([400, 'KS-4225']);
    expect(await outboxIsEmpty()).toBe(true);
    expect(await state()).toEqual(before);
    const log = await auditLogOf(partnerId);
    const count = (action: string) => log.filter((entry) => entry.action === action).length;
    // Every recorded intent was withdrawn by a refusal, except the one that took effect.
    expect(count('player.adjust')).toBe(count('player.adjust.refused') + 1);
    expect(log.at(-1)).toMatchObject({
      action: 'player.adjust.refused',
      before: { requestId: 'r', amountMicros: -6_000_001, reason: 'goodwill' },
      after: { refusal: 'insufficientBalance' },
    });
    expect(await audited()).toEqual([]);

    // A refusal binds neither the amount nor the refusal itself to the requestId.
    await adjust(partnerId, 'p', 0.000001, 'more');
    expect((await adjust(partnerId, 'p', -6.000001, 'r')).body.balanceUsd).toBe(0);
    expect(codeOf(await adjust(partnerId, 'p', -0.000001, 's'))).toEqual([400, 'KS-4225']);
    expect((await adjust(partnerId, 'p', 3, 's')).body.balanceUsd).toBe(3);
  });

  test('an adjustment that is refused to one caller and made for another concurrently takes effect once', async () => {
    const { partnerId } = await service.newPartner({ openingBalanceUsd: 0, balanceMode: 'enforce' });
    const debit = (i: number) => adjust(partnerId, 'p', -1, `debit-${i}`);
    const told = new Map<number, Set<string>>();
    let round = 0;
    const ask = async (i: number): Promise<void> => {
      const answer = await debit(i);
      if (answer.status !== 200) expect(codeOf(answer)).toEqual([400, 'KS-4225']);
      else told.set(i, (told.get(i) ?? new Set()).add(answer.text));
    };
    // Each debit is requested six times at once while the credit that it needs is made.
    while (told.size < 8) {
      await Promise.all([
        ...Array.from({ length: 48 }, (_, i) => ask(i % 8)),
        ...(round < 8 ? [adjust(partnerId, 'p', 1, `credit-${round}`)] : []),
      ]);
      round++;
      expect(round).toBeLessThan(50);
    }
    for (const [i, texts] of told) {
      texts.add((await debit(i)).text);
      expect(texts.size).toBe(1);
    }
    await allBooked();
    expect((await intentsOf(partnerId)).length).toBe(16);
    const rows = await sql`SELECT min(balance_micros)::int AS least, count(*)::int AS count FROM ledger
      WHERE partner_id = ${partnerId} AND kind = 3`;
    expect([...rows]).toEqual([{ least: 0, count: 16 }]);
    expect(await audited()).toEqual([]);
  });

  test('makes a credit under balance mode enforce even if the balance remains below zero', async () => {
    const partner = await service.newPartner({ openingBalanceUsd: 0 });
    const { partnerId } = partner;
    expect((await adjust(partnerId, 'p', -5, 'down')).body.balanceUsd).toBe(-5);
    await service.operator('PATCH', `/partners/${partnerId}`, { balanceMode: 'enforce' });
    expect((await adjust(partnerId, 'p', 2, 'up')).body.balanceUsd).toBe(-3);
  });

  test('refuses an adjustment that would exceed the maximum balance (KS-4101), and makes one of the maximum amount exactly', async () => {
    const { partnerId } = await service.newPartner({ openingBalanceUsd: 0 });
    expect((await adjust(partnerId, 'p', 9e9, 'most')).body.balanceUsd).toBe(9e9);
    const over = await adjust(partnerId, 'p', 0.000001, 'over');
    expect([...codeOf(over), (over.body.details as { path: string }[])[0]!.path]).toEqual([
      400,
      'KS-4101',
      '/amountUsd',
    ]);
    expect((await intentsOf(partnerId)).map((intent) => intent.request_id)).toEqual(['most']);
    for (const [i, amount] of [-9e9, -9e9, 9e9, 9e9].entries())
      expect((await adjust(partnerId, 'p', amount, `swing-${i}`)).status).toBe(200);
    // A double can't distinguish this number from the next integer.
    const exact = await service.operator(
      'POST',
      pathOf(partnerId, 'q'),
      '{"requestId":"exact","reason":"r","amountUsd":-8999999999.999999}',
    );
    expect(exact.status).toBe(200);
    await allBooked();
    const [row] = await sql`SELECT balance_micros FROM ledger WHERE partner_id = ${partnerId}
      AND player_id = 'q' AND kind = 3`;
    expect(row!.balance_micros).toBe(-8_999_999_999_999_999n);
    expect(await adjustedOf(partnerId)).toMatchObject({ adjustments: 6n, amount_micros: 1n });
    expect(await audited()).toEqual([]);
  });

  test('refuses a faulty adjustment with a list of all its faults and changes nothing', async () => {
    const { partnerId } = await service.newPartner();
    const good = { amountUsd: 1, reason: 'r', requestId: 'r' };
    const cases: [body: unknown, paths: string[], playerId?: string][] = [
      [
        { amountUsd: 0, reason: '', requestId: '' },
        ['/amountUsd', '/playerId', '/reason', '/requestId'],
        'a\u0007',
      ],
      ['{"amountUsd":1.00000000000000000001,"reason":"r","requestId":"r"}', ['/amountUsd']],
      ['{"amountUsd":1e999,"reason":"r","requestId":"r"}', ['/amountUsd']],
      ['{"amountUsd":-0,"reason":"r","requestId":"r"}', ['/amountUsd']],
      [{ ...good, playerId: 'fine' }, ['/playerId'], 'x'.repeat(129)],
    ];
    for (const [body, paths, playerId = 'p'] of cases) {
      const answer = await service.operator<{ errorCode: string; details: { path: string }[] }>(
        'POST',
        pathOf(partnerId, playerId),
        body,
      );
      const found = [
        answer.status,
        answer.body.errorCode,
        answer.body.details?.map(({ path }) => path).sort(),
      ];
      expect(found, JSON.stringify(body)).toEqual([400, 'KS-4101', paths]);
    }
    expect(await intentsOf(partnerId)).toEqual([]);
    const longest = { ...good, reason: '🎁'.repeat(2000), requestId: '🎁'.repeat(128) };
    expect((await service.operator('POST', pathOf(partnerId, '🎁'.repeat(128)), longest)).status).toBe(200);
  });

  test('makes an adjustment for a deactivated partner', async () => {
    const { partnerId } = await service.newPartner({ openingBalanceUsd: 1 });
    await service.operator('PATCH', `/partners/${partnerId}`, { isActive: false });
    expect((await adjust(partnerId, 'p', 1, 'r')).body.balanceUsd).toBe(2);
  });

  test('an adjustment and a spin with the same requestId are independent, and neither is returned for the other', async () => {
    const partner = await service.newPartner();
    const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
    const first = await adjust(partner.partnerId, 'p', 1, 'same');
    const spun = await spin(partner, gameId, 'p', 'same');
    expect(spun.status).toBe(200);
    expect((await spin(partner, gameId, 'p', 'other')).status).toBe(200);
    const second = await adjust(partner.partnerId, 'p', 1, 'other');
    expect(second.status).toBe(200);
    expect((await adjust(partner.partnerId, 'p', 1, 'same')).text).toBe(first.text);
    expect((await spin(partner, gameId, 'p', 'same')).text).toBe(spun.text);
    for (const { body } of [first, second]) {
      const shown = await service.partner('GET', `/spins/${body.adjustmentId}`, partner.key);
      expect(codeOf(shown)).toEqual([404, 'KS-4215']);
    }
    expect((await service.partner('GET', `/spins/${spun.body.spinId}`, partner.key)).status).toBe(200);
    await allBooked();
    await booksHold(sql);
  });

  test('an adjustment counts against no rate limit and leaves the funding unchanged', async () => {
    const partner = await service.newPartner({ spinRateLimit: 2, apiRateLimit: 1, fundingUsd: 1e6 });
    const cell = await cellOf(partner.partnerId);
    for (let i = 0; i < 5; i++) expect((await adjust(partner.partnerId, 'p', 1, `r${i}`)).status).toBe(200);
    expect(await redis.hexists(`{c${cell}}:partners`, String(partner.partnerId))).toBe(0);
  });

  test('pages of spins leave out adjustments, wherever and however many there are', async () => {
    const partner = await service.newPartner({ openingBalanceUsd: 1000 });
    const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
    const { partnerId, key } = partner;
    const newest: string[] = [];
    let adjusted = 0;
    const adjustments = async (count: number): Promise<void> => {
      await Promise.all(Array.from({ length: count }, () => adjust(partnerId, 'p', 0.01, `a${adjusted++}`)));
    };
    // Entry n + 1 is the n-th spin. Only each 64th entry has an index entry, so spins 63 and 127 have one.
    const after: Record<number, number> = {
      1: 2,
      5: 1,
      62: 3,
      63: 90,
      64: 1,
      100: 7,
      126: 2,
      127: 40,
      130: 3,
    };
    await adjustments(3);
    for (let n = 1; n <= 130; n++) {
      const spun = await spin(partner, gameId, 'p');
      expect(spun.status).toBe(200);
      newest.unshift(spun.body.spinId);
      await adjustments(after[n] ?? 0);
    }
    expect(adjusted).toBe(152);
    const page = async (number: number, limit: number) => {
      const { body } = await service.partner<{ spins: { spinId: string }[]; total: number }>(
        'GET',
        `/players/p/spins?page=${number}&limit=${limit}`,
        key,
      );
      expect(body.total).toBe(130);
      return body.spins.map(({ spinId }) => spinId);
    };
    for (const limit of [1, 3, 64, 67, 100]) {
      const pages = Math.ceil(130 / limit) + 1;
      for (let i = 0; i < pages; i++) {
        const shown = await page(i + 1, limit);
        expect(shown, `page ${i + 1} of ${limit}`).toEqual(newest.slice(i * limit, (i + 1) * limit));
      }
    }
    await booksHold(sql);
  });

  test('adjustments balance in the double-entry ledger, and the audit finds a manipulated adjustment', async () => {
    await allBooked();
    const [totals] = await sql`
      SELECT count(*) FILTER (WHERE sum <> 0 OR sides <> 2)::int AS unbalanced, sum(sum)::text AS total
      FROM (SELECT sum(amount_micros) AS sum, count(*) AS sides FROM postings GROUP BY entry_id) AS entry`;
    expect(totals).toEqual({ unbalanced: 0, total: '0' });
    const accounts = await sql`
      SELECT split_part(account, ':', 1) AS account, -sum(amount_micros)::bigint AS amount
      FROM postings WHERE account LIKE 'adjustment:%' GROUP BY 1`;
    const days = await sql`SELECT sum(amount_micros)::bigint AS amount FROM adjustment_days`;
    expect([...accounts]).toEqual([{ account: 'adjustment', amount: days[0]!.amount }]);
    expect(await audited()).toEqual([]);

    const [{ id, partner, request }] = (await sql`
      SELECT entry_id AS id, partner_id AS partner, request_id AS request FROM ledger WHERE kind = 3
      ORDER BY entry_id LIMIT 1`) as unknown as [{ id: bigint; partner: number; request: string }];
    const tampered = async (harm: Promise<unknown>, mend: () => Promise<unknown>): Promise<string[]> => {
      await harm;
      const found = await audited();
      await mend();
      expect(await audited()).toEqual([]);
      return [...new Set(found)].sort();
    };
    const amount = (by: number) => sql`
      UPDATE ledger SET credit_micros = credit_micros + ${by}, balance_micros = balance_micros + ${by}
      WHERE entry_id = ${id}`;
    expect(await tampered(amount(5), () => amount(-5))).toEqual([
      'balances: the balance does not follow from the previous balance',
      'double-entry: adjustment_days.amount_micros is not their sum in the ledger',
      'requests: the amount of the adjustment differs from the requested amount',
      'requests: the bound balance differs from the entry',
      'requests: the bound fingerprint does not match the request',
    ]);
    const [intent] =
      await sql`SELECT * FROM adjustments WHERE partner_id = ${partner} AND request_id = ${request}`;
    expect(
      await tampered(
        sql`DELETE FROM adjustments WHERE partner_id = ${partner} AND request_id = ${request}`,
        () =>
          sql`INSERT INTO adjustments (partner_id, request_id, player_id, amount_micros, reason)
            VALUES (${partner}, ${request}, ${intent!.player_id}, ${intent!.amount_micros}, 'r')`,
      ),
    ).toEqual(['requests: the adjustment has no recorded request of an operator']);
    const wager = (micros: number) => sql`UPDATE ledger SET wager_micros = ${micros} WHERE entry_id = ${id}`;
    expect(await tampered(wager(1), () => wager(0))).toContain(
      'double-entry: an adjustment must not have a wager, index, game or outcome',
    );
    const number = (by: number) =>
      sql`UPDATE ledger SET entry_number = entry_number + ${by} WHERE entry_id = ${id}`;
    expect(await tampered(number(1), () => number(-1))).toContain(
      "balances: the numbers of the player's entries are not consecutive",
    );
    const key = await boundKey(redis, await cellOf(partner), adjustmentKey(partner, request));
    const bound = await redis.hgetBuffer(key, adjustmentKey(partner, request));
    expect(
      await tampered(redis.hdel(key, adjustmentKey(partner, request)), () =>
        redis.hset(key, adjustmentKey(partner, request), bound!),
      ),
    ).toEqual(['requests: a requestId of the ledger is not bound in Redis']);
  });

  test('after a wipe of Redis, adjustments keep their responses, balances and pages', async () => {
    const partner = await service.newPartner({ openingBalanceUsd: 10 });
    const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
    const { partnerId, key } = partner;
    const answers = new Map<string, string>();
    const make = async (playerId: string, requestId: string): Promise<void> => {
      const answer = await adjust(partnerId, playerId, 1.25, requestId);
      expect(answer.status).toBe(200);
      answers.set(`${playerId} ${requestId}`, answer.text);
    };
    await make('p', 'before-spin');
    const spun = await spin(partner, gameId, 'p', 'before-spin');
    await make('only-adjusted', 'only');
    await allBooked();
    while ((await checkpointPlayers(ownSql, 0)) !== undefined);
    // The newest adjustments have the same entry number as the entry in the player checkpoint.
    await make('p', 'newest-1');
    await make('p', 'newest-2');
    await make('new', 'newest-3');
    await allBooked();
    const player = async (id: string) => (await service.partner('GET', `/players/${id}`, key)).text;
    const before = await Promise.all(['p', 'only-adjusted', 'new'].map(player));
    const rows = async () => (await sql`SELECT count(*) AS count FROM ledger`)[0]!.count as bigint;
    const count = await rows();
    // The inserted intent was never carried out, and it is so old that Redis may have released its requestId.
    await sql`INSERT INTO adjustments (partner_id, request_id, player_id, amount_micros, reason, created_at)
      VALUES (${partnerId}, 'old', 'p', 1000000, 'goodwill', now() - interval '2 days')`;

    await redis.flushdb();
    for (const [named, text] of answers) {
      const [playerId, requestId] = named.split(' ') as [string, string];
      expect((await adjust(partnerId, playerId, 1.25, requestId)).text).toBe(text);
    }
    // Replays come from Postgres, so /statusz may not know of the wipe yet.
    await until(
      async () => (await service.partner('GET', '/players/p', key)).status === 200,
      'the cell is rebuilt',
    );
    expect(await Promise.all(['p', 'only-adjusted', 'new'].map(player))).toEqual(before);
    expect((await spin(partner, gameId, 'p', 'before-spin')).text).toBe(spun.text);
    // Redis holds the request ids of adjustments again, separate from those of spins.
    for (const key of ['before-spin', 'newest-2', 'newest-3'])
      await boundKey(redis, await cellOf(partnerId), adjustmentKey(partnerId, key));
    expect(await rows()).toBe(count);
    expect((await adjust(partnerId, 'p', 1, 'old')).status).toBe(200);
    expect((await adjust(partnerId, 'p', -1, 'after')).status).toBe(200);
    await allBooked();
    await booksHold(sql);
    expect(await audited()).toEqual([]);
    while ((await checkpointPlayers(ownSql, 0)) !== undefined);
    const stale = await sql`
      SELECT player_id FROM player_checkpoints c WHERE entry_id <>
        (SELECT max(entry_id) FROM ledger l WHERE l.partner_id = c.partner_id AND l.player_id = c.player_id)`;
    expect([...stale]).toEqual([]);
  });
});

describe('adjustments whose response was lost', () => {
  let partnerId: number;

  beforeAll(async () => {
    stores = await freshStores();
    await open();
    const whole = await startService(stores);
    await until(
      async () => (await whole.request('GET', '/statusz')).status === 200,
      'every cell is ready to be dealt from',
    );
    await whole.stop();
    // No worker is running, so no entry is committed.
    service = await startService(stores, { ...FRONT, OUTBOX_MAX_ENTRIES: '4' });
  });
  afterAll(close);
  beforeEach(async () => {
    const partner = await service.newPartner({ openingBalanceUsd: 10, balanceMode: 'enforce' });
    ({ partnerId } = partner);
  });

  const records = async () => {
    const batches = (await redis.xrangeBuffer(outboxKey(await cellOf(partnerId)), '-', '+')) as [
      Buffer,
      Buffer[],
    ][];
    return batches.flatMap(([, fields]) => readOutbox(fields[1]!));
  };
  const booking = async (run: () => Promise<unknown>): Promise<void> => {
    const worker = await startService(stores, { ROLES: 'worker' });
    try {
      await allBooked();
      await run();
    } finally {
      await worker.stop();
    }
  };

  test('a retried adjustment is answered from Redis before its commit and from the ledger afterwards', async () => {
    const first = await adjust(partnerId, 'p', 1, 'r');
    expect(first.status).toBe(200);
    expect((await adjust(partnerId, 'p', 1, 'r')).text).toBe(first.text);
    expect((await records()).map(({ kind }) => kind)).toEqual(['opening', 'adjustment']);
    await booking(async () => {
      await redis.unlink(...(await redis.keys('{c*}:idem:*')));
      expect((await adjust(partnerId, 'p', 1, 'r')).text).toBe(first.text);
    });
    expect(await bookedOf(partnerId, 'r')).toHaveLength(1);
    await booksHold(sql);
  });

  test('a retry carries out an adjustment of which only the intent was recorded', async () => {
    await sql`INSERT INTO adjustments (partner_id, request_id, player_id, amount_micros, reason)
      VALUES (${partnerId}, 'r', 'p', 1000000, 'goodwill')`;
    expect(codeOf(await adjust(partnerId, 'p', 2, 'r'))).toEqual([409, 'KS-4111']);
    expect((await adjust(partnerId, 'p', 1, 'r')).body.balanceUsd).toBe(11);
    expect(await records()).toHaveLength(2);
  });

  test('a retry decides on an adjustment again if its refused intent was not withdrawn', async () => {
    expect(codeOf(await adjust(partnerId, 'p', -11, 'r'))).toEqual([400, 'KS-4225']);
    // The inserted row is in the state in which a process leaves it if the process ends before it withdraws a
    // refused intent.
    const [{ last_value: last }] =
      (await sql`SELECT last_value FROM adjustments_intent_id_seq`) as unknown as [{ last_value: bigint }];
    await sql`INSERT INTO adjustments (partner_id, request_id, intent_id, player_id, amount_micros, reason)
      OVERRIDING SYSTEM VALUE VALUES (${partnerId}, 'r', ${last}, 'p', -11000000, 'goodwill')`;
    expect(codeOf(await adjust(partnerId, 'p', -11, 'r'))).toEqual([400, 'KS-4225']);
    expect(await intentsOf(partnerId)).toEqual([]);
    expect((await adjust(partnerId, 'p', 1, 'more')).status).toBe(200);
    await sql`INSERT INTO adjustments (partner_id, request_id, intent_id, player_id, amount_micros, reason)
      OVERRIDING SYSTEM VALUE VALUES (${partnerId}, 'r', ${last}, 'p', -11000000, 'goodwill')`;
    expect((await adjust(partnerId, 'p', -11, 'r')).body.balanceUsd).toBe(0);
    expect((await intentsOf(partnerId)).map(({ request_id }) => request_id)).toEqual(['more', 'r']);
  });

  test('does not repeat an adjustment whose requestId Redis has released before the commit', async () => {
    const first = await adjust(partnerId, 'p', 1, 'r');
    expect(first.status).toBe(200);
    await redis.unlink(...(await redis.keys('{c*}:idem:*')));
    await sql`UPDATE adjustments SET created_at = now() - interval '2 days'
      WHERE partner_id = ${partnerId}`;
    expect(codeOf(await adjust(partnerId, 'p', 1, 'r'))).toEqual([503, 'KS-5002']);
    expect(await records()).toHaveLength(2);
    await booking(async () => {
      expect((await adjust(partnerId, 'p', 1, 'r')).text).toBe(first.text);
    });
    expect(await bookedOf(partnerId, 'r')).toHaveLength(1);
  });

  test('refuses an adjustment while the outbox is full (KS-5002) and makes it on a retry once there is room', async () => {
    for (const requestId of ['a', 'b', 'c'])
      expect((await adjust(partnerId, 'p', 1, requestId)).status).toBe(200);
    const refused = await adjust(partnerId, 'p', 1, 'd');
    expect([...codeOf(refused), refused.headers.get('retry-after')]).toEqual([503, 'KS-5002', '2']);
    expect(await records()).toHaveLength(4);
    expect((await intentsOf(partnerId)).map(({ request_id }) => request_id)).toEqual(['a', 'b', 'c']);
    await booking(async () => {
      expect((await adjust(partnerId, 'p', 1, 'd')).body.balanceUsd).toBe(14);
      await allBooked();
    });
    await booksHold(sql);
    expect((await auditLogOf(partnerId)).at(-2)).toMatchObject({ after: { refusal: 'outboxFull' } });
  });

  test('a late adjustment call changes nothing if its intent was refused to another call or its epoch has ended', async () => {
    const scripts = new Scripts(nodes.nodes, {
      outboxMax: { entries: 100, bytes: 1_000_000 },
    });
    const cell = await cellOf(partnerId);
    const [row] = await sql`
      SELECT dataset_id || ':' || epoch AS epoch FROM cells, installation WHERE cell = ${cell}`;
    const epoch = String(row!.epoch);
    const call = {
      cell,
      newestMove: undefined,
      epoch,
      intentId: 7,
      partnerId,
      playerId: 'p',
      requestId: 'r',
      amountMicros: -10_000_001,
      openingBalanceMicros: 10_000_000,
      enforcesBalance: true,
    };
    const run = (request: typeof call) => adjustOnce(scripts, request);
    const refused = { status: SPIN_STATUS.insufficientBalance, entryId: 0n, afterMicros: 0 };
    expect(await run(call)).toEqual(refused);
    expect(await run({ ...call, intentId: 8, requestId: 'more', amountMicros: 1 })).toMatchObject({
      status: 0,
    });
    const before = await records();
    for (const intentId of [7, 6])
      expect(await run({ ...call, intentId })).toEqual({ ...refused, status: SPIN_STATUS.lapsed });
    await expect(run({ ...call, intentId: 8, epoch: `${epoch}0` })).rejects.toThrow(EpochError);
    expect(await records()).toEqual(before);
    const done = await run({ ...call, intentId: 8 });
    expect(done).toMatchObject({ status: SPIN_STATUS.dealt, afterMicros: 0 });
    expect(await run({ ...call, intentId: 9 })).toEqual(done);
    const other = await run({ ...call, intentId: 9, amountMicros: 1 });
    expect(other.status).toBe(SPIN_STATUS.conflict);
    expect((await records()).slice(2)).toMatchObject([
      {
        kind: 'adjustment',
        entryNumber: 1,
        previousId: before[1]!.id,
        creditMicros: -10_000_001,
        requestId: 'r',
      },
    ]);
  });

  test('with ACK=ledger, answers an adjustment only once it is committed', async () => {
    await service.stop();
    service = await startService(stores, { ACK: 'ledger' });
    const { partnerId: own } = await service.newPartner({ openingBalanceUsd: 1 });
    for (const requestId of ['a', 'b', 'c']) {
      expect((await adjust(own, 'p', 1, requestId)).status).toBe(200);
      expect(await bookedOf(own, requestId)).toHaveLength(1);
    }
    await service.stop();
    service = await startService(stores, { ...FRONT, ACK: 'ledger', SPIN_DEADLINE_MS: '2000' });
    const unbooked = await adjust(own, 'p', 1, 'd');
    expect([...codeOf(unbooked), unbooked.headers.get('retry-after')]).toEqual([409, 'KS-4110', '2']);
    await booking(async () => {
      expect((await adjust(own, 'p', 1, 'd')).body.balanceUsd).toBe(5);
    });
  });
});

describe('adjustments during an outage of a store', () => {
  test('an adjustment during an outage is unknown (KS-4110) or refused (KS-5002), and its retry gets the result', async () => {
    const own = await ownStores();
    stores = own;
    try {
      await open();
      service = await startService(stores, { SPIN_DEADLINE_MS: '2500' });
      const { partnerId } = await service.newPartner({ openingBalanceUsd: 10 });
      expect((await adjust(partnerId, 'p', 1, 'first')).status).toBe(200);
      await allBooked();

      await own.redis.freeze();
      expect(codeOf(await adjust(partnerId, 'p', 1, 'frozen'))).toEqual([409, 'KS-4110']);
      await own.redis.thaw();
      let told = await adjust(partnerId, 'p', 1, 'frozen');
      await until(async () => {
        told = await adjust(partnerId, 'p', 1, 'frozen');
        return told.status === 200;
      }, 'Redis answers again');
      expect(told.body.balanceUsd).toBe(12);

      await own.redis.stop();
      expect(codeOf(await adjust(partnerId, 'p', 1, 'stopped'))).toEqual([503, 'KS-5002']);
      await own.redis.start();
      await until(
        async () => (await adjust(partnerId, 'p', 1, 'stopped')).body.balanceUsd === 13,
        'Redis is served from again',
      );

      await allBooked();
      await own.postgres.stop();
      expect(codeOf(await adjust(partnerId, 'p', 1, 'no-intent'))).toEqual([503, 'KS-5002']);
      expect(await outboxesAreEmpty()).toBe(true);
      await own.postgres.start();
      await until(
        async () => (await adjust(partnerId, 'p', 1, 'no-intent')).body.balanceUsd === 14,
        'Postgres answers again',
      );
      await allBooked();
      await booksHold(sql);
      expect((await intentsOf(partnerId)).length).toBe(4);
    } finally {
      await close();
    }
  });

  /** Checks the outboxes in Redis without a query to Postgres. */
  const outboxesAreEmpty = async (): Promise<boolean> => {
    const keys = await redis.keys('{c*}:outbox');
    const lengths = await Promise.all(keys.map((key) => redis.xlen(key)));
    return lengths.every((length) => length === 0);
  };
});
