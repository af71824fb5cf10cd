/** Cells of a running installation: added, chosen for a partner, drained. Front end and worker are two processes. */
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshStores } from '../setup/freshStores.js';
import { booksHold } from '../support/books.js';
import { auditFindings } from '../support/communal.js';
import type { ServerProcess } from '../support/serverProcess.js';
import { environment, spawnService, startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { TestStores } from '../support/stores.js';
import { until } from '../support/wait.js';

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
    ...{ slug, name: slug, environment: 'sandbox' },
    ...(cell === undefined ? {} : { cell }),
  });
const FAULT = [400, 'KS-4101'];
const faultOf = ({ status, body }: { status: number; body: unknown }) => [
  status,
  (body as { errorCode?: string }).errorCode,
];

test('cells are added while an installation that began with one cell spins, and are dealt from at once', async () => {
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
  // New partners spread over the cells that have the fewest.
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

test('an operator chooses the cell of a partner; one that drains takes none, and the last one never drains', async () => {
  expect((await create('chosen', 2)).body.cell).toBe(2);
  const drain = (cell: number, isDraining: boolean) =>
    front.operator('PATCH', `/cells/${cell}`, { isDraining });
  expect((await drain(2, true)).status).toBe(204);
  expect((await cells()).map(({ isDraining }) => isDraining)).toEqual([false, false, true, false]);
  for (const cell of [2, 4, 256]) expect(faultOf(await create('refused', cell))).toEqual(FAULT);
  for (const cell of [0, 1]) expect((await drain(cell, true)).status).toBe(204);
  // Cell 3 takes whoever comes, though others have no more partners than it.
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

test('a process may start with the CELLS that the database began with, not with more than it has', async () => {
  const other = await startService(stores, { CELLS: '1', ROLES: 'http' });
  await other.stop();
  await expect(startService(stores, { CELLS: '5', ROLES: 'http' })).rejects.toThrow(/CELLS is 5/);
});
