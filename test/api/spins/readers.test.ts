/**
 * Checks that all readers of the ledger agree: histories, the ledger by time, CSV, statements, reports and
 * totals. They must agree for all kinds of entries, before and after a move of the partner.
 */
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Spindle } from '../../../clients/typescript/src/index.js';
import { SpinBody } from '../../../src/api/spins/contract.js';
import { verifySettlements } from '../../../src/books/settlement/verify.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { freshStores } from '../../setup/freshStores.js';
import type { TestPartner } from '../../support/client.js';
import { auditFindings, type Bonus, micros, setUp } from '../../support/communal.js';
import { csvRecords } from '../../support/csv.js';
import { movePartner } from '../../support/moves.js';
import { dealUntil, newTable, playOut } from '../../support/rounds.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const FUNDED = 100_000_000n;
const RULES = {
  enabled: true,
  triggerInterval: 10,
  triggerSplitPct: 40,
  communitySplitPct: 60,
  tiers: [
    { tierLevel: 1, tierName: 'Mini', triggerAtSpins: 10, amountUsd: '0.50' },
    { tierLevel: 2, tierName: 'Grand', triggerAtSpins: 1000, amountUsd: '5.00' },
  ],
};
/** Player ids that a spreadsheet would run as formulas. */
const PLAYERS = ['=1+1', '+2', '-3 "quoted"', '@4', 'alice'];

interface Spin extends Omit<SpinBody, 'playerId'> {
  readonly spinId: string;
  readonly createdAt: string;
  readonly playerId?: string;
  /** Outcome index of the spin; null for a forced outcome. */
  readonly outcomeIndex: number | null;
  readonly outcome: { readonly payoutUsd: number; readonly prizeTier: number };
  readonly presentation: { readonly type: 'slot' | 'raffle' };
  readonly balance: { readonly balanceUsd: number };
  readonly communityBonus: Bonus | null;
  readonly sandbox?: { readonly forced: true };
}
interface Page {
  readonly spins: readonly Spin[];
  readonly total: number;
  readonly nextCursor: string | null;
}
interface Operated {
  readonly queue: { readonly consumed: number; readonly outcomesReady: number; readonly readyBlocks: number };
  readonly totals: { readonly spins: number };
}
interface Pot {
  readonly progress: number;
  readonly budgetUsd: string;
  readonly paidUsd: string;
}

let stores: TestStores;
let service: Awaited<ReturnType<typeof startService>>;
let partner: TestPartner;
let slot: number;
let raffle: number;
/** The responses to the spins, by spin id. */
const answered = new Map<string, Spin>();
let forcedId: string;

const get = async <Body>(path: string): Promise<Body> => {
  const answer = await service.partner<Body>('GET', path, partner.key);
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
};
const shown = async <Body>(path: string): Promise<Body> => {
  const answer = await service.operator<Body>('GET', path);
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
};

async function spin(playerId: string, gameId = slot, requestId?: string): Promise<Spin> {
  const wagerUsd = gameId === raffle ? 1 : 0.25;
  const answer = await service.spin<Spin>(partner.key, { gameId, playerId, wagerUsd, requestId });
  expect(answer.status, answer.text).toBe(200);
  answered.set(answer.body.spinId, answer.body);
  return answer.body;
}

beforeAll(async () => {
  stores = await freshStores();
  service = await startService(stores, { CELLS: '2' });
  partner = await service.newPartner({ openingBalanceUsd: 1000, cell: 0 });
  slot = await service.newGame(partner.key, parSheet('classic-3-reel'));
  raffle = await service.api.newRaffle(partner.partnerId, 'cup', {
    ticketPriceUsd: 1,
    poolSize: 20,
    prizes: [{ prizeName: 'Cup', prizeTier: 1, valueUsd: 5, count: 2 }],
  });
  const table = await newTable(service, partner.partnerId);
  await setUp(service, slot, RULES, '100.00');
  const path = `/partners/${partner.partnerId}/players`;
  for (let i = 0; i < 60; i++)
    await spin(PLAYERS[i % PLAYERS.length]!, slot, i % 3 === 0 ? `=${i}` : undefined);
  for (const playerId of PLAYERS) {
    await spin(playerId, raffle, `@${playerId}`);
    const body = { amountUsd: 1.5, reason: 'gift', requestId: `-${playerId}` };
    const to = `${path}/${encodeURIComponent(playerId)}/adjustments`;
    expect((await service.operator('POST', to, body)).status).toBe(200);
  }
  const choice = { gameId: slot, playerId: 'alice', combinationIndex: 13 };
  expect((await service.partner('POST', '/sandbox/next-outcome', partner.key, choice)).status).toBe(200);
  forcedId = (await spin('alice')).spinId;
  await playOut(service, partner.key, await dealUntil(service, partner.key, table, 'alice', () => true));
  for (let i = 0; i < 25; i++) await spin(PLAYERS[i % 2]!, slot);
}, 120_000);
afterAll(async () => {
  await service?.stop();
  await stores?.drop();
});

/** Reads the whole ledger by time, page by page. */
async function feed(filter = ''): Promise<Spin[]> {
  const spins: Spin[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const after = cursor === '' ? '' : `&cursor=${cursor}`;
    const page: Page = await get<Page>(`/spins?limit=7${filter}${after}`);
    spins.push(...page.spins);
    cursor = page.nextCursor;
  }
  return spins;
}

/** Reads an export as CSV rows with unquoted fields (RFC 4180). */
async function csv(filter = ''): Promise<Record<string, string>[]> {
  const answer = await service.request('GET', `/api/partner/v1/spins?limit=20${filter}`, {
    key: partner.key,
    headers: { Accept: 'text/csv' },
  });
  expect(answer.status, answer.text).toBe(200);
  return csvRecords(answer.text);
}

const SENT = Object.keys(SpinBody.properties) as (keyof SpinBody)[];
const rowOf = (each: Spin) => ({
  ...Object.fromEntries(SENT.map((name) => [name, `${each[name] ?? ''}`])),
  spinId: each.spinId,
  createdAt: each.createdAt,
  payoutUsd: `${each.outcome.payoutUsd}`,
  prizeTier: `${each.outcome.prizeTier}`,
  balanceUsd: `${each.balance.balanceUsd}`,
  sandbox: each.sandbox === undefined ? '' : 'forced',
  outcomeIndex: `${each.outcomeIndex ?? ''}`,
});

const day = new Date().toISOString().slice(0, 10);

test('shows each kind of spin in CSV as in JSON, and in both as in the response to the spin', async () => {
  const spins = await feed();
  expect(spins.map(({ spinId }) => spinId).sort()).toEqual([...answered.keys()].sort());
  const kinds = new Set(
    spins.map(({ presentation, communityBonus, sandbox }) =>
      [presentation.type, communityBonus?.isTriggerPlayer, sandbox?.forced].join(),
    ),
  );
  expect([...kinds]).toEqual(
    expect.arrayContaining(['raffle,,', 'slot,,', 'slot,,true', 'slot,false,', 'slot,true,']),
  );
  for (const each of spins) expect(each).toMatchObject(answered.get(each.spinId)!);
  expect(await csv()).toEqual(spins.map(rowOf));
  for (const each of spins.filter(({ communityBonus }) => communityBonus !== null).slice(0, 4))
    expect(await get<Spin>(`/spins/${each.spinId}`)).toEqual(each);
});

test('exports player and request ids to CSV unchanged, or with an apostrophe if that is requested', async () => {
  const rows = await csv('&escapeFormulas=true');
  expect(new Set(rows.map((row) => row.playerId))).toEqual(
    new Set(PLAYERS.map((playerId) => (playerId === 'alice' ? playerId : `'${playerId}`))),
  );
  expect(rows.map((row) => row.requestId!.replace(/^'/, ''))).toEqual(
    (await csv('&escapeFormulas=false')).map((row) => row.requestId),
  );
  for (const filter of ['&escapeFormulas=yes', '&escapeFormulas=']) {
    const refused = await service.partner('GET', `/spins?limit=1${filter}`, partner.key);
    expect([refused.status, refused.body.errorCode]).toEqual([400, 'KS-4101']);
  }
});

test("pages through a player's spins and tickets, and lists the player's bonus shares separately", async () => {
  const client = new Spindle({ baseUrl: service.base, apiKey: partner.key });
  for (const playerId of PLAYERS) {
    const path = `/players/${encodeURIComponent(playerId)}`;
    const own = (await feed(`&playerId=${encodeURIComponent(playerId)}`)).reverse();
    for (const limit of [1, 4, 100]) {
      const pages: Spin[] = [];
      for (let page = 1; pages.length < own.length; page++) {
        const { spins, total } = await get<Page>(`${path}/spins?page=${page}&limit=${limit}`);
        expect(total).toBe(own.length);
        expect(spins).toHaveLength(Math.min(limit, own.length - pages.length));
        pages.push(...spins);
      }
      expect(pages).toEqual(own.map(({ playerId: _, ...rest }) => rest));
      const { spins } = await get<Page>(
        `${path}/spins?page=${Math.ceil(own.length / limit) + 1}&limit=${limit}`,
      );
      expect(spins).toEqual([]);
    }
    const listed: string[] = [];
    for await (const { spinId } of client.playerSpins(playerId)) listed.push(spinId);
    expect(listed).toEqual(own.map(({ spinId }) => spinId));
    const { bonuses, total } = await get<{ bonuses: unknown[]; total: number }>(
      `${path}/community-bonuses?limit=100`,
    );
    expect(total).toBe(bonuses.length);
    const statement = await shown<{ entries: { kind: string; spinId: string | null }[] }>(
      `/partners/${partner.partnerId}${path}/statement?limit=100`,
    );
    const { entries } = statement;
    expect(entries.filter(({ kind }) => kind === 'communalShare')).toHaveLength(total);
    expect(entries.flatMap(({ spinId }) => spinId ?? [])).toEqual(own.map(({ spinId }) => spinId));
  }
});

/**
 * Has every member of the schema, so that a new one joins the tests by itself. It gets a text; if it takes no
 * text, the service refuses the spin until the member has a value here.
 */
const fullBody = (words: string, textOf = (name: keyof SpinBody) => `${words} ${name}`): SpinBody => ({
  ...(Object.fromEntries(SENT.map((name) => [name, textOf(name)])) as unknown as Required<SpinBody>),
  gameId: slot,
  wagerUsd: 0.25,
});
const post = async (body: SpinBody) => {
  const answer = await service.spin<Spin & { errorCode?: string }>(partner.key, body);
  if (answer.status === 200 && answer.headers.get('idempotent-replayed') === null)
    answered.set(answer.body.spinId, answer.body);
  return answer;
};

const longest = (name: keyof SpinBody): string => {
  const { pattern } = SpinBody.properties[name] as { pattern?: string };
  return '𝄞'.repeat(Number(/\{1,(\d+)\}/.exec(pattern ?? '{1,1}')![1]));
};
const withoutId = ({ requestId: _, ...others }: SpinBody): SpinBody => others;
const BODIES: readonly (readonly [string, () => SpinBody])[] = [
  ['plain texts', () => fullBody('plain')],
  ['other letters', () => fullBody('ünusual')],
  ['the longest texts', () => fullBody('longest', longest)],
  ['no requestId', () => withoutId(fullBody('without an id'))],
];

test.each(BODIES)(
  'every reader shows each member that a partner sent with a spin, with %s',
  async (_, bodyOf) => {
    const sent = bodyOf();
    const { playerId, wagerUsd, ...others } = sent;
    const { status, text, body } = await post(sent);
    expect(status, text).toBe(200);
    const [player, request] = [playerId, sent.requestId ?? 'nothing'].map(encodeURIComponent);
    const partnerPath = `/partners/${partner.partnerId}`;
    const { spins: requested } = await shown<{ spins: { spin: Spin }[] }>(
      `${partnerPath}/requests?requestId=${request}`,
    );
    // The answer waits until the spin is in the ledger.
    const spin = await get<Spin>(`/spins/${body.spinId}`);
    const sql = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
    const rows = await sql`
      SELECT * FROM ledger WHERE partner_id = ${partner.partnerId} AND player_id = ${playerId} AND wager_micros > 0`;
    await sql.end();
    expect({
      ledger: rows,
      spin,
      feed: await feed(`&playerId=${player}`),
      csv: await csv(`&playerId=${player}`),
      history: (await get<Page>(`/players/${player}/spins`)).spins,
      recall: (await get<{ games: unknown[] }>(`/players/${player}/recall`)).games,
      lookUp: await shown(`/spins/${body.spinId}`),
      requested,
    }).toMatchObject({
      ledger: [{ ...others, playerId, wagerMicros: BigInt(wagerUsd * 1e6) }],
      spin: sent,
      feed: [sent],
      csv: [Object.fromEntries(Object.entries(sent).map(([name, value]) => [name, `${value}`]))],
      history: [{ ...others, wagerUsd }],
      recall: [{ ...others, wagerUsd }],
      lookUp: { spin: sent },
      requested: sent.requestId === undefined ? [] : [{ spin: sent }],
    });
  },
);

test('a ticket is bound to its requestId alone, whatever else was sent with it', async () => {
  const sent = { ...fullBody('ticket'), gameId: raffle, wagerUsd: 1 };
  expect((await post(sent)).status).toBe(200);
  const sql = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
  const rows = await sql<
    { requestId: string }[]
  >`SELECT request_id FROM ticket_requests WHERE game_id = ${raffle}`;
  await sql.end();
  expect(rows.map(({ requestId }) => requestId)).toContain(sent.requestId);
});

/**
 * What happens to a repeated spin if one member has another value (docs/contract.md §8.4). A member that only
 * describes the spin may change.
 */
const OF_ANOTHER_VALUE: Record<string, string> = {
  ...Object.fromEntries(SENT.map((name) => [name, 'replayed'])),
  gameId: 'KS-4111',
  playerId: 'KS-4111',
  wagerUsd: 'KS-4111',
  requestId: 'dealt',
};

/** Repeats an answered spin unchanged, then with another value of each member. */
async function expectRepetitions(words: string, answer: string): Promise<void> {
  const sent = fullBody(words);
  const outcomeOf = async (body: SpinBody) => {
    const { status, text, headers, body: response } = await post(body);
    if (status !== 200) return response.errorCode;
    if (headers.get('idempotent-replayed') === null) return 'dealt';
    return text === answer ? 'replayed' : text;
  };
  expect(await outcomeOf(sent)).toBe('replayed');
  const others = { ...fullBody(`not ${words}`), gameId: raffle, wagerUsd: 0.5 };
  const outcomes: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(others))
    outcomes[name] = await outcomeOf({ ...sent, [name]: value });
  expect(outcomes).toEqual(OF_ANOTHER_VALUE);
}

test('a repeated spin with another game, player or wager gets KS-4111', async () => {
  const { text } = await post(fullBody('once'));
  await expectRepetitions('once', text);
});

test('marks a forced spin, and shows no sealed block or outcome index for it', async () => {
  const found = await shown<Record<string, unknown>>(`/spins/${forcedId}`);
  expect(found).toMatchObject({
    spin: { spinId: forcedId, sandbox: { forced: true } },
    entry: { kind: 'forcedSpin', outcomeIndex: null },
    block: null,
  });
  const drawn = [...answered.values()].find(({ sandbox }) => sandbox === undefined)!;
  expect(await shown(`/spins/${drawn.spinId}`)).toMatchObject({
    spin: { spinId: drawn.spinId },
    entry: { kind: 'spin', outcomeIndex: expect.any(Number) },
    block: { commitment: expect.any(String) },
  });
});

test('shows the state of one moment in each answer while spins are dealt: budget and paid, queue and totals', async () => {
  let isOver = false;
  const playing = Promise.all(
    PLAYERS.map(async (playerId) => {
      while (!isOver) await spin(playerId);
    }),
  );
  try {
    let before = 0;
    const firstProgress = (await shown<Pot>(`/games/${slot}/communal`)).progress;
    await until(async () => {
      const pot = await shown<Pot>(`/games/${slot}/communal`);
      expect(micros(pot.budgetUsd) + micros(pot.paidUsd)).toBe(FUNDED);
      const { queue, totals } = await shown<Operated>(`/games/${slot}`);
      expect(queue.consumed).toBe(totals.spins);
      expect(queue.readyBlocks).toBeGreaterThan(0);
      expect(totals.spins).toBeGreaterThanOrEqual(before);
      before = totals.spins;
      return pot.progress > firstProgress + 100;
    }, '100 spins are counted');
  } finally {
    isOver = true;
    await playing;
  }
  const { tiers } = await get<{ tiers: { progressPct: number | null }[] }>(
    `/games/${slot}/communal/progress`,
  );
  const { progress } = await shown<Pot>(`/games/${slot}/communal`);
  expect(tiers.map(({ progressPct }) => progressPct)).toEqual([
    null,
    Math.floor((progress % 1000) / 100) * 10,
  ]);
});

test('every reader still shows all earlier entries, and later ones, after a partner moves to an idle cell', async () => {
  const all = async () => ({
    feed: await feed(),
    csv: await csv(),
    history: await get<Page>('/players/alice/spins?limit=100'),
    spin: await get<Spin>(`/spins/${forcedId}`),
    statement: await shown<{ entries: unknown[] }>(
      `/partners/${partner.partnerId}/players/alice/statement?limit=100`,
    ),
    game: (await shown<Operated>(`/games/${slot}`)).totals,
    pot: await shown<Pot>(`/games/${slot}/communal`),
  });
  const { text: answer } = await post(fullBody('bound'));
  const before = await all();
  await movePartner(service, partner.partnerId, 1);
  expect(await all()).toEqual(before);
  const made = await service.operator<{ reportStatus: string; ledgerTo: string; totalSpins: number }>(
    'POST',
    `/partners/${partner.partnerId}/settlements/${day}`,
  );
  expect([made.status, made.body.reportStatus]).toEqual([201, 'PENDING']);
  const sql = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
  const books = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  try {
    expect((await verifySettlements(sql, partner.partnerId)).differences).toEqual([]);
    const [{ newest }] = (await books`
      SELECT max(entry_id)::text AS newest FROM ledger WHERE partner_id = ${partner.partnerId}`) as never as [
      { newest: string },
    ];
    expect(BigInt(made.body.ledgerTo)).toBeGreaterThan(BigInt(newest));
  } finally {
    await Promise.all([sql.end(), books.end()]);
  }
  await expectRepetitions('bound', answer);
  const next = await spin('alice');
  expect((await feed()).at(-1)!.spinId).toBe(next.spinId);
  expect((await csv()).at(-1)!.spinId).toBe(next.spinId);
  expect(await get<Spin>(`/spins/${next.spinId}`)).toMatchObject(next);
  await until(async () => (await auditFindings(stores)).length === 0, 'the audit is clean');
});
