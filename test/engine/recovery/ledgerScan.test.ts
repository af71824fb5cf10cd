/**
 * Tests that cells that are rebuilt at the same time share one scan of the ledger, and that no cell blocks or
 * ends the scan of another.
 */
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { entryCell, firstIdAt } from '../../../src/domain/entryId.js';
import { LedgerScan } from '../../../src/engine/recovery/ledgerScan.js';
import { RECOVERED } from '../../../src/engine/recovery/recoveries.store.js';
import type { Sql } from '../../../src/postgres/connection.js';
import { world } from '../../setup/world.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const CELLS = 4;
const SPINS = 5;
const FROM = firstIdAt(0);

const { service, ownSql: sql } = world({ CELLS: String(CELLS) });
/** Number of transactions that were started. Each scan is one transaction. */
let scans = 0;
let counted: Sql;

beforeAll(async () => {
  counted = Object.assign(
    ((text: TemplateStringsArray, ...values: unknown[]) => sql(text, ...values)) as Sql,
    {
      ...sql,
      begin: <T>(run: Parameters<Sql['begin']>[0], mode?: string) => {
        scans++;
        return sql.begin(run, mode) as Promise<T>;
      },
    },
  );
  const cells = new Set<number>();
  while (cells.size < CELLS) {
    const { partnerId, key } = await service.newPartner();
    const [row] = await sql<{ cell: number }[]>`SELECT cell FROM partners WHERE partner_id = ${partnerId}`;
    if (cells.has(row!.cell)) continue;
    cells.add(row!.cell);
    const gameId = await service.newGame(key, parSheet('classic-3-reel'));
    for (let i = 0; i < SPINS; i++)
      expect((await service.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25 })).status).toBe(200);
  }
  const rows = async () => (await sql`SELECT 1 FROM ledger`).length;
  await until(async () => (await rows()) === CELLS * (SPINS + 1), 'all is booked');
});
beforeEach(() => {
  scans = 0;
});

const all = Array.from({ length: CELLS }, (_, cell) => cell);
const nothing = async (): Promise<void> => {};
/** Reads a cell from the scan. Returns the number of rows, and the cells that these rows belong to. */
async function read(
  scan: LedgerScan,
  cell: number,
  onRow: () => void = () => {},
): Promise<[number, number[]]> {
  const cells = new Set<number>();
  let rows = 0;
  await scan.read(
    cell,
    FROM,
    (row) => {
      cells.add(entryCell(row.big(RECOVERED.id)));
      rows++;
      onRow();
    },
    nothing,
  );
  return [rows, [...cells]];
}

test('one ledger scan serves all cells that are being rebuilt, and each cell gets only its own rows', async () => {
  const scan = new LedgerScan(counted);
  for (const cell of all) scan.begin(cell);
  const first = all.slice(1).map((cell) => read(scan, cell));
  expect(scans).toBe(0);
  const results = await Promise.all([read(scan, 0), ...first]);
  expect(results).toEqual(all.map((cell) => [SPINS + 1, [cell]]));
  expect(scans).toBe(1);
});

test('a ledger scan does not wait for a cell that turns out to need no rebuild', async () => {
  const scan = new LedgerScan(counted);
  for (const cell of all) scan.begin(cell);
  const reading = read(scan, 2);
  for (const cell of [0, 1, 3]) scan.end(cell);
  expect(await reading).toEqual([SPINS + 1, [2]]);
  expect(scans).toBe(1);
});

test('a reader that fails does not end the ledger scan of other cells', async () => {
  const scan = new LedgerScan(counted);
  for (const cell of all) scan.begin(cell);
  const fail = (): void => {
    throw new Error('a row of another form');
  };
  const results = await Promise.allSettled(
    all.map((cell) => read(scan, cell, cell === 1 ? fail : undefined)),
  );
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
  expect(scans).toBe(1);
});

test('a cell that hangs before a ledger scan delays the other cells only for a limited time', async () => {
  const scan = new LedgerScan(counted);
  for (const cell of all) scan.begin(cell);
  const results = await Promise.all([1, 2, 3].map((cell) => read(scan, cell)));
  expect(results).toEqual([1, 2, 3].map((cell) => [SPINS + 1, [cell]]));
  expect(scans).toBe(1);
});
