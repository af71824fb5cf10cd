/**
 * Tests cells of a running installation: adding, choosing and draining cells, and moving partners between
 * them. Front end and worker are separate processes.
 */
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshStores } from '../../setup/freshStores.js';
import { booksHold } from '../../support/books.js';
import type { TestPartner } from '../../support/client.js';
import { command } from '../../support/command.js';
import { auditFindings, setUp } from '../../support/communal.js';
import { expectWithin } from '../../support/expectWithin.js';
import { movePartner } from '../../support/moves.js';
import { dealUntil, newTable, playOut } from '../../support/rounds.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { environment, spawnService, startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const SETTINGS = { CELLS: '1' };

let stores: TestStores;
let sql: postgres.Sql<{ bigint: bigint }>;
let front: Awaited<ReturnType<typeof startService>>;
let worker: ServerProcess;

beforeAll(async () => {
  stores = await freshStores();
  sql = postgres(stores.databaseUrl, { max: 2, types: { bigint: postgres.BigInt }, onnotice: () => {} });
  worker = await spawnService(environment(stores, { ...SETTINGS, ROLES: 'worker' }));
  front = await startService(stores, { ...SETTINGS, ROLES: 'http' });
});

afterAll(async () => {
  await worker.end('SIGKILL').catch(() => {});
  await front?.stop();
  await sql.end();
  await stores.drop();
});

interface Cell {
  readonly cell: number;
  readonly owner: string | null;
  readonly isDraining: boolean;
  readonly partners: number;
}
const cells = async (): Promise<Cell[]> =>
  (await front.operator<{ cells: Cell[] }>('GET', '/cells')).body.cells;
const create = (slug: string, cell?: number) =>
  front.operator<{ cell: number; details: unknown }>('POST', '/partners', {
    slug,
    name: slug,
    environment: 'sandbox',
    ...(cell === undefined ? {} : { cell }),
  });
const FAULT = [400, 'KS-4101'];
const faultOf = ({ status, body }: { status: number; body: unknown }) => [
  status,
  (body as { errorCode?: string }).errorCode,
];

test('adds cells to an installation that began with one cell while it deals spins, and deals from the new cells at once', async () => {
  const first = await front.newPartner({ openingBalanceUsd: 1000 });
  const gameId = await front.newGame(first.key, parSheet('classic-3-reel'));
  let isOver = false;
  const statuses = new Set<number>();
  const spinning = (async () => {
    for (let i = 0; !isOver; i++)
      statuses.add((await front.spin(first.key, { gameId, playerId: `p${i % 5}`, wagerUsd: 0.25 })).status);
  })();
  const added = await front.operator('POST', '/cells', { count: 3 });
  expect([added.status, added.body]).toEqual([201, { added: [1, 2, 3] }]);
  await until(
    async () => (await cells()).every(({ owner }) => owner !== null),
    'the worker has the new cells',
  );
  // New partners are assigned to the cells with the fewest partners.
  const others = await Promise.all(['b', 'c', 'd'].map((slug) => front.newPartner({ slug })));
  for (const partner of others) {
    const game = await front.newGame(partner.key, parSheet('classic-3-reel'));
    const answer = await front.spin(partner.key, { gameId: game, playerId: 'p', wagerUsd: 0.25 });
    expect(answer.status, answer.text).toBe(200);
  }
  isOver = true;
  await spinning;
  expect([...statuses]).toEqual([200]);
  expect((await cells()).map(({ partners }) => partners)).toEqual([1, 1, 1, 1]);
  const tooMany = await front.operator('POST', '/cells', { count: 253 });
  expect(faultOf(tooMany)).toEqual(FAULT);
  expect((await cells()).length).toBe(4);
});

test("an operator can choose a partner's cell, but not a draining cell, and the last cell can't be drained", async () => {
  expect((await create('chosen', 2)).body.cell).toBe(2);
  const drain = (cell: number, isDraining: boolean) =>
    front.operator('PATCH', `/cells/${cell}`, { isDraining });
  expect((await drain(2, true)).status).toBe(204);
  expect((await cells()).map(({ isDraining }) => isDraining)).toEqual([false, false, true, false]);
  for (const cell of [2, 4, 256]) expect(faultOf(await create('refused', cell))).toEqual(FAULT);
  for (const cell of [0, 1]) expect((await drain(cell, true)).status).toBe(204);
  // Only cell 3 accepts new partners, because the other cells are being drained. Without that, new partners
  // could also be assigned to the other cells, which have no more partners than cell 3.
  for (const slug of ['e', 'f', 'g']) expect((await create(slug)).body.cell).toBe(3);
  expect(faultOf(await drain(3, true))).toEqual(FAULT);
  expect(faultOf(await drain(4, true))).toEqual([404, 'KS-4215']);
  expect((await drain(2, false)).status).toBe(204);
  expect((await create('h', 2)).body.cell).toBe(2);
  const actions = await sql<{ action: string }[]>`
    SELECT action FROM audit_log WHERE action LIKE 'cell%' ORDER BY audit_id`;
  expect(actions.map(({ action }) => action)).toEqual(['cells.add', ...Array(4).fill('cell.drain')]);
  await until(async () => (await auditFindings(stores)).length === 0, 'the audit is clean');
  await booksHold(sql);
});

test('a process may start with the initial value of CELLS, but not with more cells than the database has', async () => {
  const other = await startService(stores, { CELLS: '1', ROLES: 'http' });
  await other.stop();
  await expect(startService(stores, { CELLS: '5', ROLES: 'http' })).rejects.toThrow(/CELLS is 5/);
});

interface Sent {
  readonly body: { gameId: number; playerId: string; wagerUsd: number; requestId: string };
  readonly text: string;
}

/**
 * Spins continuously with several clients at once and retries each spin until its response has status 200.
 */
function keepSpinning(key: string, games: readonly number[], name: string) {
  let isOver = false;
  const sent: Sent[] = [];
  const refusals: string[] = [];
  let longestMs = 0;
  const clients = Array.from({ length: 8 }, async (_, client) => {
    for (let i = 0; !isOver; i++) {
      const requestId = `${name}-${client}-${i}`;
      const body = { gameId: games[i % games.length]!, playerId: `p${i % 7}`, wagerUsd: 0.25, requestId };
      const since = performance.now();
      let answer = await front.spin(key, body);
      while (answer.status !== 200) {
        refusals.push(`${answer.status} ${answer.text}`);
        answer = await front.spin(key, body);
      }
      longestMs = Math.max(longestMs, performance.now() - since);
      sent.push({ body, text: answer.text });
    }
  });
  return {
    sent,
    end: async () => {
      isOver = true;
      await Promise.all(clients);
      return { sent, refusals, longestMs };
    },
  };
}

async function replaysHold(key: string, sent: readonly Sent[]): Promise<void> {
  for (const { body, text } of sent) {
    const again = await front.spin(key, body);
    expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([text, 'true']);
  }
}

/** The partner has every kind of game and record that a cell can hold. */
test('a moved partner keeps its balances, blocked players, pots, raffles and open rounds, and no outcome is voided', async () => {
  const partner = await front.newPartner({ openingBalanceUsd: 100, cell: 2, spinRateLimit: 100_000 });
  const path = `/partners/${partner.partnerId}`;
  const slot = await front.newGame(partner.key, parSheet('classic-3-reel'));
  await setUp(front, slot);
  const table = await newTable(front, partner.partnerId);
  const prizes = [{ prizeName: 'Car', prizeTier: 6, valueUsd: 5, count: 1 }];
  const terms = { ticketPriceUsd: 1, poolSize: 10, prizes };
  const raffle = await front.api.newRaffle(partner.partnerId, 'moved-raffle', terms);
  const spin = (gameId: number, playerId: string, requestId: string, wagerUsd = 0.25) =>
    front.spin(partner.key, { gameId, playerId, wagerUsd, requestId });
  for (let i = 0; i < 60; i++) expect((await spin(slot, `p${i % 4}`, `s-${i}`)).status).toBe(200);
  const ticket = await spin(raffle, 'p0', 'ticket', 1);
  expect(ticket.status, ticket.text).toBe(200);
  const round = await dealUntil(front, partner.key, table, 'r', ({ status }) => status === 'OPEN');
  const adjustment = { amountUsd: 5, reason: 'goodwill', requestId: 'a-1' };
  const adjusted = await front.operator('POST', `${path}/players/p2/adjustments`, adjustment);
  const blocked = await front.operator('PATCH', `${path}/players/p3`, { status: 'BLOCKED', reason: 'r' });
  expect([adjusted.status, blocked.status]).toEqual([200, 200]);
  const balances = () =>
    Promise.all(
      [0, 1, 2, 3].map(async (i) => (await front.partner('GET', `/players/p${i}`, partner.key)).text),
    );
  const progress = async () => (await front.operator('GET', `/games/${slot}/communal`)).text;
  const before = [await balances(), await progress()];
  await movePartner(front, partner.partnerId, 3);
  expect([await balances(), await progress()]).toEqual(before);
  expect((await spin(slot, 'p3', 'blocked')).body.errorCode).toBe('KS-4115');
  expect((await spin(raffle, 'p0', 'ticket', 1)).text).toBe(ticket.text);
  expect((await front.operator('POST', `${path}/players/p2/adjustments`, adjustment)).text).toBe(
    adjusted.text,
  );
  for (let i = 1; i < 10; i++) expect((await spin(raffle, 'p0', `ticket-${i}`, 1)).status).toBe(200);
  const sold = await spin(raffle, 'p0', 'one-more', 1);
  expect(sold.body.errorCode, sold.text).toBe('KS-4218');
  expect((await playOut(front, partner.key, round)).status).toBe('SETTLED');
  const [given] = await sql<{ voids: number }[]>`
    SELECT count(*)::int AS voids FROM voids WHERE game_id = ${slot}`;
  expect(given!.voids).toBe(0);
  for (let i = 0; i < 60; i++) expect((await spin(slot, `p${i % 3}`, `t-${i}`)).status).toBe(200);
  // The entry in the audit log has the partner's data before the change, including the cell that the partner
  // left.
  for (const dealing of ['OFF', 'ON']) {
    const switched = await front.operator('PATCH', path, { dealing });
    expect([switched.status, switched.body.dealing], switched.text).toEqual([200, dealing]);
  }
  await until(async () => (await auditFindings(stores)).length === 0, 'the audit is clean');
  await booksHold(sql);
});

test('a partner that moves to another cell and back while it spins has no spin refused, lost or dealt twice', async () => {
  const partner = await front.newPartner({ openingBalanceUsd: 1000, cell: 2 });
  const neighbour = await front.newPartner({ openingBalanceUsd: 1000, cell: 2 });
  const games = [
    await front.newGame(partner.key, parSheet('classic-3-reel')),
    await front.newGame(partner.key, parSheet('classic-3-reel')),
  ];
  const its = [await front.newGame(neighbour.key, parSheet('classic-3-reel'))];
  const spinning = keepSpinning(partner.key, games, 'moved');
  const beside = keepSpinning(neighbour.key, its, 'beside');
  await until(() => spinning.sent.length > 100, 'it spins');
  await movePartner(front, partner.partnerId, 3);
  const before = spinning.sent.length;
  await until(() => spinning.sent.length > before + 50, 'it spins in the new cell');
  // Request ids that were bound in the old cell are bound in the new cell, too.
  await replaysHold(
    partner.key,
    spinning.sent.slice(0, before).filter((_, i) => i % 10 === 0),
  );
  await movePartner(front, partner.partnerId, 2);
  const back = spinning.sent.length;
  await until(() => spinning.sent.length > back + 50, 'it spins in the cell that it left');
  const { sent, refusals, longestMs } = await spinning.end();
  const others = await beside.end();
  expect([...refusals, ...others.refusals]).toEqual([]);
  expectWithin(longestMs, 2000);
  await replaysHold(
    partner.key,
    sent.filter((_, i) => i % 10 === 0),
  );
  const dealt = async () => {
    const [row] = await sql<{ spins: number }[]>`
      SELECT count(*)::int AS spins FROM ledger WHERE kind = 1 AND partner_id = ${partner.partnerId}`;
    return row!.spins;
  };
  await until(async () => (await dealt()) >= sent.length, 'all is booked');
  expect(await dealt()).toBe(sent.length);
  await booksHold(sql);
  await until(async () => (await auditFindings(stores)).length === 0, 'the audit is clean');
  const [{ count }] = (await front
    .partner<{ spins: unknown[] }>('GET', `/players/p0/spins?limit=100`, partner.key)
    .then(({ body }) => [{ count: body.spins.length }])) as [{ count: number }];
  expect(count).toBe(100);
});

test('a drain moves all partners off a cell, waits for a move already in progress, and can be repeated', async () => {
  const added = await front.operator<{ added: number[] }>('POST', '/cells', { count: 1 });
  const [from] = added.body.added as [number];
  await until(async () => (await cells())[from]?.owner != null, 'the worker has the new cell');
  for (const cell of [0, 1])
    expect((await front.operator('PATCH', `/cells/${cell}`, { isDraining: false })).status).toBe(204);
  const partners: TestPartner[] = [];
  for (let made = 0; made < 3; made++) partners.push(await front.newPartner({ cell: from }));
  const begun = await front.operator('POST', `/partners/${partners[0]!.partnerId}/move`, { cell: 3 });
  expect(begun.status, begun.text).toBe(202);
  const args = ['cells', 'drain', String(from), '--move-partners'];
  const drained = await command(front, ...args);
  expect([drained.status, drained.out]).toEqual([0, `Cell ${from} accepts no new partners.\n`]);
  const cellOf = async ({ partnerId }: TestPartner) =>
    (await front.operator<{ cell: number }>('GET', `/partners/${partnerId}`)).body.cell;
  const where = await Promise.all(partners.map(cellOf));
  expect(where[0]).toBe(3);
  expect(where).not.toContain(from);
  expect((await cells())[from]).toMatchObject({ partners: 0, isDraining: true });
  expect((await command(front, ...args)).status).toBe(0);
  expect(await Promise.all(partners.map(cellOf))).toEqual(where);
  await until(async () => (await auditFindings(stores)).length === 0, 'the audit is clean');
});
