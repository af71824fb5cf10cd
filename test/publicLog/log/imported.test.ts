/**
 * Tests how the public log continues after Postgres was restored to an older state: by importing a copy of
 * the log or by starting a new log.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { verifyHistory } from '../../../src/cli/verifyHistory.js';
import { parseNote, signerKeyOf, signerOf, vkeyOf } from '../../../src/domain/publicLog/notes.js';
import { recordsOf } from '../../../src/domain/publicLog/tiles.js';
import { hashOfOrigin } from '../../../src/publicLog/log/forkEvidence.js';
import { verify } from '../../../verifier/verify.mjs';
import { auditFindings } from '../../support/communal.js';
import { printedBy } from '../../support/printed.js';
import { deal, dealUntil, newTable } from '../../support/rounds.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';
import {
  checkpoint,
  flushRedis,
  folder,
  keepDatabase,
  key,
  logged,
  noteInCopy,
  noteInRedis,
  ORIGIN,
  openPartner,
  partner,
  restoreDatabase,
  run,
  service,
  sizeOf,
  spin,
  spindleLog,
  sql,
  statusz,
  stores,
  useFreshStores,
} from './restoredLog.js';

useFreshStores();

describe('a public log after a restore of Postgres', () => {
  const PRIZES = [{ prizeName: 'Mug', prizeTier: 2, valueUsd: 1, count: 10 }];
  const TABLE = { ticketPriceUsd: 1, poolSize: 100, prizes: PRIZES };
  const sheet = parSheet('classic-3-reel');
  /** Outcomes, tickets and shoes that were ever dealt, as `game:index`. */
  let shown: Set<string>;
  let slot: number;
  let raffle: number;
  let table: number;
  let players = 0;

  const shownNow = async (): Promise<string[]> =>
    (
      await sql<
        { at: string }[]
      >`SELECT game_id || ':' || outcome_index AS at FROM ledger WHERE kind IN (1, 6)`
    ).map((row) => row.at);

  async function playAll(times: number, withRaffle = true): Promise<string[]> {
    const spinIds: string[] = [];
    for (let i = 0; i < times; i++) {
      const answer = await spin(slot);
      expect(answer.status, answer.text).toBe(200);
      spinIds.push((answer.body as unknown as { spinId: string }).spinId);
      if (withRaffle) {
        const ticket = await service.spin(partner.key, { gameId: raffle, playerId: 'p', wagerUsd: 1 });
        expect(ticket.status, ticket.text).toBe(200);
        spinIds.push((ticket.body as unknown as { spinId: string }).spinId);
      }
      await dealUntil(service, partner.key, table, `player-${++players}`, () => true);
    }
    await until(async () => (await service.metric('spindle_outbox_entries')) === 0, 'all is booked');
    return spinIds;
  }

  const proof = async (spinId: string): Promise<unknown> =>
    (await service.request('GET', `/api/partner/v1/spins/${spinId}/proof`, { key: partner.key })).body;

  /**
   * Deals outcomes and saves the database. Then deals more outcomes, so that new blocks are logged, and
   * restores the saved database.
   * @returns the spins in the restored database
   */
  async function forgotten(more: NodeJS.ProcessEnv, isKnown: () => Promise<string>): Promise<string[]> {
    shown = new Set();
    await run(more);
    await openPartner(10_000);
    slot = await service.newGame(partner.key, sheet);
    raffle = await service.api.newRaffle(partner.partnerId, 'restored-raffle', TABLE);
    table = await newTable(service, partner.partnerId);
    const spinIds = await playAll(5);
    await service.running.stop();
    await keepDatabase();
    await run(more);
    await playAll(5);
    for (let i = 0; i < 3; i++) {
      await service.operator('POST', `/games/${slot}/rotate`, { reason: 'more blocks are logged' });
      await until(async () => (await spin(slot)).status === 200, 'the slot has its next block');
    }
    await service.newGame(partner.key, sheet);
    await until(async () => (await service.metric('spindle_outbox_entries')) === 0, 'all is booked');
    for (const at of await shownNow()) shown.add(at);
    await until(
      async () => (await isKnown()).startsWith(parseNote(await checkpoint()).text),
      'it is known outside',
    );
    await service.running.stop();
    await restoreDatabase();
    if (more.LOG_COPY_DIR !== undefined) await flushRedis();
    await run(more);
    expect((await statusz()).missing).toContain('spindle log import');
    return spinIds;
  }

  /**
   * Checks that outcomes dealt from now on were never dealt before, that all proofs are valid, that the audit
   * finds no fault, and that the history is proven.
   */
  async function expectGoesOn(spinIds: readonly string[], vkey: string): Promise<void> {
    await until(async () => (await statusz()).status === 200, 'it goes on without a restart');
    const before = new Set(await shownNow());
    await until(async () => (await spin(slot)).status === 200, 'the slot has its next block');
    const dealt = () => deal(service, partner.key, table, `player-${++players}`);
    await until(async () => (await dealt()).status === 201, 'the table has its next shoes');
    const again = await service.spin(partner.key, { gameId: raffle, playerId: 'p', wagerUsd: 1 });
    expect(again.body.errorCode).toBe('KS-4202');
    const spins = await playAll(3, false);
    const later = (await shownNow()).filter((at) => !before.has(at));
    expect(later.length).toBeGreaterThan(3);
    expect(later.filter((at) => shown.has(at))).toEqual([]);
    for (const spinId of [...spinIds, ...spins])
      expect(await verify(await proof(spinId), { logKeys: [vkeyOf(key), vkey] }), spinId).toEqual([]);
    expect(await auditFindings(stores)).toEqual([]);
  }

  /**
   * Checks that `spindle verify --history` finds no fault in each game, and that its output gives the
   * expected log as the predecessor of the current log.
   */
  async function expectHistory(
    logKey: string,
    games: readonly number[],
    before: object | null,
  ): Promise<void> {
    const keyFile = join(folder, 'key');
    await writeFile(keyFile, partner.key);
    const sheetFile = join(folder, 'sheet');
    await writeFile(sheetFile, JSON.stringify(sheet));
    for (const game of games) {
      const { status, out } = await printedBy(() =>
        verifyHistory(undefined, {
          url: service.base,
          keyFile,
          logKey,
          json: true,
          sample: 3,
          game,
          ...(game === slot ? { sheet: sheetFile } : {}),
        } as never),
      );
      expect(JSON.parse(out)).toMatchObject({ faults: [], isProven: true, before });
      expect(status).toBe(0);
    }
  }

  test('continues dealing after a restore of Postgres with an import of LOG_COPY_DIR', async () => {
    const copy = join(folder, 'copy');
    const more = { LOG_COPY_DIR: copy };
    const spinIds = await forgotten(more, noteInCopy);
    const note = await noteInCopy();
    const shownLog = await spindleLog(more, 'show');
    expect(JSON.parse(shownLog.out)).toMatchObject({
      halted: expect.stringContaining('LOG_COPY_DIR'),
      isDealing: false,
    });
    expect(shownLog.status).toBe(1);
    const done = await spindleLog(more, 'import', '--from', copy, '--yes');
    expect(done.status, done.out).toBe(0);
    expect((await spindleLog(more, 'check', '--note', join(copy, 'checkpoint'))).status).toBe(0);
    await expectGoesOn(spinIds, vkeyOf(key));
    expect(sizeOf(await checkpoint())).toBeGreaterThan(sizeOf(note));
    const file = join(folder, 'kept-note');
    await writeFile(file, note);
    expect((await spindleLog(more, 'check', '--note', file)).status).toBe(0);
    const listed = await service.request<{ blocks: { type: string; status: string }[] }>(
      'GET',
      `/api/partner/v1/games/${slot}/blocks?limit=100`,
      { key: partner.key },
    );
    expect(listed.body.blocks.filter(({ status }) => status === 'LOST').length).toBeGreaterThan(1);
    await expectHistory(vkeyOf(key), [slot, table, raffle], null);
    const actions = await sql<
      { action: string }[]
    >`SELECT action FROM audit_log WHERE action LIKE 'log.%' ORDER BY audit_id`;
    expect(actions.map(({ action }) => action)).toEqual(['log.halt', 'log.import']);
    await service.running.stop();
    await run(more);
    expect((await statusz()).status).toBe(200);
    expect((await spin(slot)).status).toBe(200);
    expect(await logged()).toMatchObject({ halt: null });
  });

  test('continues dealing with a new log after Postgres was restored and no copy of the old log is left', async () => {
    const spinIds = await forgotten({}, noteInRedis);
    const old = await checkpoint();
    const origin = 'spindle.example/another';
    const refused = await spindleLog({}, 'begin', '--origin', origin, '--reason', 'no copy', '--yes');
    expect(refused).toMatchObject({
      status: 2,
      out: expect.stringContaining('LOG_KEY contains no key with the name'),
    });
    const another = signerOf(origin, 'log', Buffer.alloc(32, 23));
    const more = { LOG_KEY: signerKeyOf(another), LOG_ORIGIN: origin };
    const begun = await spindleLog(more, 'begin', '--origin', origin, '--reason', 'no copy is left', '--yes');
    expect(begun.status, begun.out).toBe(0);
    await service.running.stop();
    await run(more);
    await expectGoesOn(spinIds, vkeyOf(another));
    // The verifier reports that it did not examine the predecessor of the current log.
    const numbers = expect.any(Number);
    await expectHistory(vkeyOf(another), [slot, table], { origin: ORIGIN, size: sizeOf(old), numbers });
    const at = `/log/${hashOfOrigin(ORIGIN)}`;
    expect((await service.request('GET', `${at}/checkpoint`)).text).toBe(old);
    expect((await service.request('GET', `${at}/tile/0/000.p/2`)).status).toBe(200);
    expect((await service.request('GET', `/log/${'0'.repeat(64)}/checkpoint`)).status).toBe(404);
    const [genesis] = recordsOf(
      Buffer.from(await (await fetch(`${service.base}/log/tile/entries/000.p/1`)).arrayBuffer()),
    )!;
    expect(JSON.parse(genesis!.subarray(1).toString())).toMatchObject({
      type: 'genesis',
      origin,
      previous: { origin: ORIGIN, size: sizeOf(old) },
    });
    expect(await logged()).toMatchObject({ halt: null });
  });
});
