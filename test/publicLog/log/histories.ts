/**
 * Plays a slot game, a raffle and a blackjack table, and checks the log's entries of each of these games with
 * `spindle verify --history`.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type Given, verifyHistory } from '../../../src/cli/verifyHistory.js';
import { examineBlock } from '../../../verifier/verify.mjs';
import { printedBy } from '../../support/printed.js';
import { dealUntil, newTable, playOut } from '../../support/rounds.js';
import type { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

export async function expectHistories(
  service: Awaited<ReturnType<typeof startService>>,
  partner: { readonly key: string; readonly partnerId: number },
  logKey: string,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'spindle-history-'));
  const file = (name: string, value: string): string => {
    writeFileSync(join(folder, name), value);
    return join(folder, name);
  };
  const sheet = parSheet('classic-3-reel');
  const gameId = await service.newGame(partner.key, sheet);
  const spin = (id: number, wagerUsd = 0.25) =>
    service.spin(partner.key, { gameId: id, playerId: 'history', wagerUsd });
  for (let i = 0; i < 5; i++) await spin(gameId);
  await service.operator('POST', `/games/${gameId}/rotate`, { reason: 'the history is looked at' });
  const prizes = [{ prizeName: 'Mug', prizeTier: 2, valueUsd: 1, count: 3 }];
  const table = { ticketPriceUsd: 1, poolSize: 8, prizes };
  const raffle = await service.api.newRaffle(partner.partnerId, 'history-raffle', table);
  for (let i = 0; i < table.poolSize; i++) expect((await spin(raffle, 1)).status).toBe(200);
  const today = new Date().toISOString().slice(0, 10);
  const report = await service.operator('POST', `/partners/${partner.partnerId}/settlements/${today}`);
  expect(report.body).toMatchObject({ logCheckpoint: expect.stringContaining('\n\n— ') });
  const isRevealed = async (id: number) =>
    (
      await service.request<{ blocks: { status: string }[] }>('GET', `/api/partner/v1/games/${id}/blocks`, {
        key: partner.key,
      })
    ).body.blocks[0]?.status === 'EXHAUSTED';
  await until(async () => (await isRevealed(gameId)) && (await isRevealed(raffle)), 'blocks are exhausted');
  await expectBlock(service, partner.key, gameId, { logKey, sheet });
  const about = { url: service.base, keyFile: file('key', partner.key), logKey, json: true };
  const check = async (given: Partial<Given>): Promise<Record<string, unknown>> => {
    const { status, out } = await printedBy(() => verifyHistory(undefined, { ...about, ...given }));
    return { ...(JSON.parse(out) as Record<string, unknown>), status };
  };
  const state = join(folder, 'state');
  const slots = { game: gameId, sheet: file('sheet', JSON.stringify(sheet)), sample: 3, state };
  for (let again = 0; again < 2; again++) {
    const found = await check(slots);
    expect(found).toMatchObject({ status: 0, isProven: true, faults: [], reports: 1 });
    expect(found.spins).toBeGreaterThan(0);
    expect(found.revealed).toBeGreaterThan(0);
  }
  const pool = { game: raffle, table: file('table', JSON.stringify(table)), sample: 2 };
  expect(await check(pool)).toMatchObject({ status: 0, faults: [], revealed: 1, unrevealed: 0 });
  const tables = await newTable(service, partner.partnerId);
  const open = await dealUntil(service, partner.key, tables, 'history', ({ status }) => status === 'OPEN');
  await playOut(service, partner.key, open);
  const shoes = await check({ game: tables, sample: 20 });
  expect(shoes).toMatchObject({ status: 0, faults: [], revealed: 0 });
  expect(shoes.spins).toBeGreaterThan(0);
  const other = file('sheet', JSON.stringify(parSheet('double-strike')));
  expect(await check({ ...slots, state: undefined, sheet: other } as never)).toMatchObject({
    status: 1,
    faults: expect.arrayContaining(['number 0: the hash of the sheet differs from the log']),
  });
  rmSync(folder, { recursive: true });
}

/** Checks that the verifier accepts a revealed block, and rejects a changed one. */
async function expectBlock(
  service: Awaited<ReturnType<typeof startService>>,
  key: string,
  gameId: number,
  { logKey, sheet }: { readonly logKey: string; readonly sheet: unknown },
): Promise<void> {
  const { body } = await service.request<Record<string, string>>(
    'GET',
    `/api/partner/v1/games/${gameId}/blocks/0?outcomes=true`,
    { key },
  );
  const logKeys = [logKey];
  expect(await examineBlock(body, { logKeys })).toEqual([]);
  expect(await examineBlock(body, { logKeys, sheet })).toEqual([]);
  const faultsOf = async (change: object) => examineBlock({ ...body, ...change }, { logKeys, sheet });
  expect(await faultsOf({ salt: '0'.repeat(64) })).toEqual([expect.stringMatching(/^logged: /)]);
  expect(await faultsOf({ logIndex: 0 })).toEqual([expect.stringMatching(/^logged: /)]);
  expect(await faultsOf({ reveal: null })).toEqual(['number 0: the block is not revealed']);
  expect(await faultsOf({ entry: `${body.entry} ` })).toEqual([
    expect.stringMatching(/^logged: /),
    expect.stringMatching(/^entry: /),
  ]);
  expect(await examineBlock(body, { logKeys, sheet: parSheet('double-strike') })).toEqual([
    'math: the hash of the sheet differs from the log',
  ]);
}
