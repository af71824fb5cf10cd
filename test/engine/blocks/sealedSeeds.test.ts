/**
 * Tests that outcomes that are not dealt yet are sealed in Postgres: a dump of Postgres does not reveal them,
 * but every process that has the key can deal, prove and audit them.
 */
import { execFile } from 'node:child_process';
import { createDecipheriv } from 'node:crypto';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { checkParSheet } from '../../../src/domain/par.js';
import { newBoxKey, SecretBox } from '../../../src/domain/secretBox.js';
import { drawBlock } from '../../../workers/drawBlock.js';
import { freshStores } from '../../setup/freshStores.js';
import { cliOf, ROOT } from '../../support/root.js';
import { deal, newTable } from '../../support/rounds.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const [a, b] = [newBoxKey(), newBoxKey()];
const NEXT = 10_000;
/**
 * Length of a piece of packed outcomes that the test searches for, in bytes. It is so long that no two pieces
 * are equal by chance. Seeds and nonces are searched for as a whole.
 */
const PIECE = 64;

interface Row {
  game_id: number;
  from_index: number;
  seed: Buffer;
  nonce: Buffer;
  outcomes: Buffer;
  sealed: string | null;
}

/** Opens a sealed block with independent code, written after docs/internals.md. */
function opened({ sealed, ...row }: Row, keys: readonly string[]): Row {
  if (sealed === null) return { sealed, ...row };
  const key = Buffer.from(new SecretBox(keys).open(sealed), 'base64');
  const column = (number: number, bytes: Buffer): Buffer => {
    const counter = Buffer.alloc(16);
    counter[0] = number;
    return createDecipheriv('aes-256-ctr', key, counter).update(bytes);
  };
  const { seed, nonce, outcomes } = row;
  return {
    ...row,
    sealed,
    seed: column(1, seed),
    nonce: column(2, nonce),
    outcomes: column(3, outcomes),
  };
}

/** Returns every row of every table as text in the form of a dump, with bytes in hexadecimal. */
async function dumpOf(books: postgres.Sql): Promise<string> {
  const tables = await books<{ name: string }[]>`
    SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    WHERE relkind = 'r' AND nspname = 'public'`;
  let dump = '';
  for (const { name } of tables) {
    for (const { line } of await books.unsafe<{ line: string }[]>(`SELECT t::text AS line FROM ${name} t`))
      dump += `${line}\n`;
  }
  return dump;
}

/** Returns the seeds, nonces and outcomes of these blocks that a dump contains. */
function shown(dump: string, blocks: readonly Row[]): string[] {
  return blocks.flatMap(({ game_id: game, seed, nonce, outcomes }) => {
    const pieces = Array.from({ length: Math.floor(outcomes.length / PIECE) }, (_, i) =>
      outcomes.subarray(i * PIECE, (i + 1) * PIECE),
    );
    const seeds = Array.from({ length: seed.length / 32 }, (_, i) => seed.subarray(i * 32, (i + 1) * 32));
    const secrets = [...seeds, ...(nonce.length === 0 ? [] : [nonce]), ...pieces];
    const isShown = (bytes: Buffer): boolean =>
      dump.includes(bytes.toString('hex')) || dump.includes(bytes.toString('base64'));
    return secrets.filter(isShown).map(() => `game ${game}`);
  });
}

test('a dump of Postgres does not reveal any outcome that is dealt next, before and after the key is replaced', async () => {
  const stores = await freshStores();
  const books = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  let service = await startService(stores, { CELLS: '1' });
  onTestFinished(async () => {
    await service.stop();
    await books.end();
    await stores.drop();
  });
  const { key, partnerId } = await service.newPartner();
  const body = parSheet('classic-3-reel');
  const gameId = await service.newGame(key, body);
  const tableId = await newTable(service, partnerId);
  const raffle = await service.operator<{ gameConfigId: number }>('POST', `/partners/${partnerId}/raffles`, {
    displayName: 'R',
    configName: 'SEALED',
    ticketPriceUsd: 1,
    poolSize: 1000,
    prizes: [{ prizeName: 'Car', prizeTier: 6, valueUsd: 100, count: 400 }],
  });
  expect(raffle.status).toBe(201);
  const raffleId = raffle.body.gameConfigId;
  await service.operator('POST', `/games/${gameId}/blocks`, { count: 5 });
  const blocks = async (keys: readonly string[]): Promise<Row[]> => {
    const rows = await books<Row[]>`
      SELECT game_id, from_index::int, seed, nonce, outcomes, sealed FROM blocks b
      WHERE to_index > coalesce((SELECT next_index FROM game_progress p WHERE p.game_id = b.game_id), 0)
      ORDER BY game_id, from_index`;
    return rows.map((row) => opened(row, keys));
  };
  const outcomesOf = (rows: readonly Row[], id: number): Buffer =>
    Buffer.concat(rows.filter(({ game_id }) => game_id === id).map(({ outcomes }) => outcomes));
  await until(async () => {
    const rows = await blocks([]);
    return outcomesOf(rows, gameId).length >= NEXT * 2 && outcomesOf(rows, raffleId).length > 0;
  }, 'all games have blocks');
  const restart = async (keys: string): Promise<void> => {
    await service.stop();
    service = await startService(stores, { CELLS: '1', SEEDS_KEY: keys });
  };

  // Without a key the blocks are not sealed, so this search must find them. It proves that the search works.
  const plain = await blocks([]);
  expect(shown(await dumpOf(books), plain).length).toBeGreaterThan(NEXT / 32);

  await restart(a);
  const taken = await blocks([a]);
  const texts = (rows: readonly Row[]): string[] =>
    rows.map(({ game_id, from_index, seed, nonce, outcomes }) =>
      [game_id, from_index, ...[seed, nonce, outcomes].map((bytes) => bytes.toString('hex'))].join(),
    );
  const known = new Set(texts(taken));
  expect(texts(plain).filter((text) => !known.has(text)).length).toBe(0);
  expect(new Set(taken.map(({ game_id }) => game_id))).toEqual(new Set([gameId, tableId, raffleId]));
  expect(shown(await dumpOf(books), taken)).toEqual([]);

  // The game continues both with the blocks that were sealed before and with blocks that are made now.
  const checked = checkParSheet(body);
  const sheet = 'sheet' in checked ? checked.sheet : expect.fail('the sheet is faulty');
  const spin = () => service.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25 });
  await until(async () => (await spin()).status === 200, 'the game deals');
  for (let i = 0; i < 20; i++) expect((await spin()).status).toBe(200);
  await until(async () => (await deal(service, key, tableId, 'p')).status === 201, 'the table deals');
  await service.operator('POST', `/games/${gameId}/blocks`, { count: 2 });
  const count = (rows: readonly Row[]) => rows.filter(({ game_id }) => game_id === gameId).length;
  await until(async () => count(await blocks([a])) > count(taken), 'blocks are made');
  const rows = await blocks([a]);
  expect(rows.every(({ sealed }) => sealed?.startsWith('v1.'))).toBe(true);
  for (const { game_id, seed, outcomes } of rows.filter(({ game_id }) => game_id === gameId)) {
    const drawn = drawBlock(sheet, seed, outcomes.length / 2);
    expect(Buffer.from(drawn.buffer).equals(outcomes), `game ${game_id}`).toBe(true);
  }
  expect(shown(await dumpOf(books), rows)).toEqual([]);
  await until(async () => {
    const [row] = await books`SELECT 1 FROM ledger WHERE game_id = ${gameId} AND outcome_index = 15`;
    return row !== undefined;
  }, 'the spins are booked');
  const dealt = await books<{ code: number; at: number }[]>`
    SELECT outcome_code AS code, outcome_index::int AS at FROM ledger WHERE game_id = ${gameId} AND kind = 1 ORDER BY entry_id`;
  const next = outcomesOf(taken, gameId);
  for (const { code, at } of dealt) expect(code).toBe(next.readUInt16LE(at * 2));

  // When a key is replaced, only the data keys are encrypted again.
  await restart(`${b},${a}`);
  const replaced = await blocks([b]);
  expect(replaced.length).toBeGreaterThan(taken.length - 1);
  await restart(b);
  expect((await spin()).status).toBe(200);
  const audited = (more: NodeJS.ProcessEnv) =>
    promisify(execFile)(process.execPath, [cliOf(ROOT), 'audit', '--redraw'], {
      env: { PATH: process.env.PATH, REDIS_URL: stores.redisUrl, DATABASE_URL: stores.databaseUrl, ...more },
    });
  await service.stop();
  await expect(audited({ SEEDS_KEY: b })).resolves.toMatchObject({
    stdout: expect.stringContaining('CLEAN'),
  });
  const refused = await audited({ SEEDS_KEY: a }).catch((error: { stdout: string; stderr: string }) => error);
  expect(refused.stdout + refused.stderr).toMatch(/SEEDS_KEY lacks the key [0-9a-f]{8}/);
  expect(refused.stdout).not.toMatch(/^CLEAN/m);
  for (const settings of [{ SEEDS_KEY: a }, {}]) {
    await expect(startService(stores, { CELLS: '1', ...settings })).rejects.toThrow(
      /^SEEDS_KEY lacks the key [0-9a-f]{8}, with which blocks in this database are encrypted \(\d+ of them\)\. Start a worker with both keys/,
    );
  }
}, 300_000);
