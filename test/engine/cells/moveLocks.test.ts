/**
 * Tests that the spins of a moving partner never wait for a database lock: they are answered while the move
 * waits, and the move completes once the lock is released.
 */
import postgres from 'postgres';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { freshStores } from '../../setup/freshStores.js';
import { booksHold } from '../../support/books.js';
import { Cleanup } from '../../support/cleanup.js';
import { auditFindings } from '../../support/communal.js';
import { type LoggedService, startLogged } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

/**
 * Deadline for spins, in ms. It is longer than a move may delay a partner and shorter than a statement may
 * wait for a lock.
 */
const SPIN_DEADLINE_MS = '5000';
const FAILED_MOVE = 'partner move failed, will retry';

const cleanup = new Cleanup();
let stores: TestStores;
let sql: postgres.Sql<{ bigint: bigint }>;
let service: LoggedService;

beforeAll(async () => {
  stores = await freshStores();
  cleanup.add(() => stores.drop());
  sql = postgres(stores.databaseUrl, { max: 3, types: { bigint: postgres.BigInt }, onnotice: () => {} });
  cleanup.add(() => sql.end());
  service = await startLogged(stores, { CELLS: '2', SPIN_DEADLINE_MS });
  cleanup.add(() => service.running.stop());
});
afterAll(() => cleanup.run());

test.each([
  // The move request reads this row, and the switch to the new cell writes it.
  ['the row of the partner', 'SELECT 1 FROM partners FOR NO KEY UPDATE'],
  ['the number of changes', 'SELECT pg_advisory_xact_lock(7310001)'],
  ['the checkpoints of players', 'LOCK TABLE player_checkpoints IN SHARE ROW EXCLUSIVE MODE'],
])(
  'a partner whose move waits for a lock of %s is dealt to in its old cell and moves afterwards',
  async (what, lock) => {
    const partner = await service.newPartner({ slug: what.replaceAll(' ', '-'), openingBalanceUsd: 1000 });
    const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
    const path = `/partners/${partner.partnerId}`;
    const { cell } = (await service.operator<{ cell: number }>('GET', path)).body;
    type Moves = {
      moves: { switchedAt: string | null; finishedAt: string | null; failure: string | null }[];
    };
    const newest = async () => (await service.operator<Moves>('GET', `${path}/moves`)).body.moves[0]!;
    const failedBefore = service.lines.filter(({ msg }) => msg === FAILED_MOVE).length;
    const failures = (): number =>
      service.lines.filter(({ msg }) => msg === FAILED_MOVE).length - failedBefore;

    const holding = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
    onTestFinished(() => holding.end({ timeout: 0 }));
    await holding`BEGIN`;
    // The request for the move takes this lock briefly itself, so it must be sent before the test takes the
    // lock.
    const isOfChanges = lock.includes('advisory');
    if (!isOfChanges) await holding.unsafe(lock);
    const begun = await service.operator('POST', `${path}/move`, { cell: 1 - cell });
    expect(begun.status, begun.text).toBe(202);
    if (isOfChanges) await holding.unsafe(lock);
    const refused: string[] = [];
    let spins = 0;
    await until(async () => {
      const spin = { gameId, playerId: `p${spins++ % 5}`, wagerUsd: 0.25 };
      const { status, text } = await service.spin(partner.key, spin);
      if (status !== 200) refused.push(text);
      return failures() >= 2;
    }, 'the move was tried twice');
    expect(refused).toEqual([]);
    expect((await newest()).switchedAt).toBe(null);
    await holding`ROLLBACK`;

    await until(async () => (await newest()).finishedAt !== null, 'the move is finished');
    expect((await newest()).failure).toBe(null);
    expect((await service.spin(partner.key, { gameId, playerId: 'p0', wagerUsd: 0.25 })).status).toBe(200);
    await until(async () => (await auditFindings(stores)).length === 0, 'the audit is clean');
    await booksHold(sql);
  },
);

test('a flush that closes a raffle and a partner move that needs the same locks do not deadlock', async () => {
  const partner = await service.newPartner({ openingBalanceUsd: 1000 });
  const path = `/partners/${partner.partnerId}`;
  const { cell } = (await service.operator<{ cell: number }>('GET', path)).body;
  const holding = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  onTestFinished(() => holding.end({ timeout: 0 }));
  await holding`BEGIN`;
  await holding`SELECT 1 FROM cells FOR NO KEY UPDATE`;
  expect((await service.operator('POST', `${path}/move`, { cell: 1 - cell })).status).toBe(202);
  const waiting = () => sql`
    SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FROM cells WHERE cell IN%'`;
  await until(async () => (await waiting()).length > 0, 'the switch waits for its cells');
  // A flush that closes a raffle requests this lock while it holds the lock of the cell. In case of a
  // deadlock Postgres would abort either the flush or the move.
  await holding`SELECT pg_advisory_xact_lock(7310001)`;
  await holding`ROLLBACK`;
  const isFinished = async (): Promise<boolean> => {
    const { body } = await service.operator<{ moves: { finishedAt: string | null }[] }>(
      'GET',
      `${path}/moves`,
    );
    return body.moves[0]!.finishedAt !== null;
  };
  await until(isFinished, 'the move is finished');
});
