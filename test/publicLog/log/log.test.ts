/** Tests the public log of a service: proofs for each kind of game, its public data, and voided outcomes. */
import { createHash } from 'node:crypto';
import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseCheckpoint } from '../../../src/domain/publicLog/checkpoints.js';
import { LabelScan } from '../../../src/domain/publicLog/logEntries.js';
import { parseNote } from '../../../src/domain/publicLog/notes.js';
import { recordsOf, tilePath } from '../../../src/domain/publicLog/tiles.js';
import { leafHash, MemoryTree } from '../../../src/domain/publicLog/tree.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { noteAuditHead } from '../../../src/publicLog/log/publicLog.store.js';
import { examine, verify } from '../../../verifier/verify.mjs';
import { world } from '../../setup/world.js';
import { auditFindings } from '../../support/communal.js';
import { dealUntil, newTable, play, playOut, type RoundAnswer } from '../../support/rounds.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';
import { expectHistories } from './histories.js';

/**
 * An attacker with all rights in Postgres changes the actor of the first audit entry and rebuilds the hash
 * chain, which is then consistent again.
 */
const REWRITTEN = `
  ALTER TABLE audit_log DISABLE TRIGGER ALL;
  DO $$
  DECLARE entry audit_log; previous bytea;
  BEGIN
    FOR entry IN SELECT * FROM audit_log ORDER BY audit_id LOOP
      IF entry.audit_id = 1 THEN
        entry.actor := reverse(entry.actor);
        UPDATE audit_log SET actor = entry.actor WHERE audit_id = 1;
      END IF;
      previous := audit_hash(previous, entry);
      UPDATE audit_log SET hash = previous WHERE audit_id = entry.audit_id;
    END LOOP;
  END $$;
  ALTER TABLE audit_log ENABLE TRIGGER ALL`;

interface Proof {
  outcome: { index: number; code: number; nonce: string };
  shoe: { seed: string | null };
  logIndex: number;
  tlogProof: string;
  [member: string]: unknown;
}

const { stores, sql } = world();
let service: Awaited<ReturnType<typeof startService>>;
let partner: { key: string; partnerId: number };
let logKey: string;
beforeAll(async () => {
  service = await startService(stores, { CELLS: '2' });
  partner = await service.newPartner({ openingBalanceUsd: 1000 });
  const [row] = await sql<{ vkeys: string[] }[]>`SELECT vkeys FROM logs`;
  logKey = row!.vkeys[0]!;
});
afterAll(async () => {
  await service?.stop();
});

const ask = <T = Record<string, unknown>>(path: string) =>
  service.request<T>('GET', `/api/partner/v1${path}`, { key: partner.key });
const checkpoint = async (): Promise<string> => (await service.request('GET', '/log/checkpoint')).text;
const bytesOf = (path: string): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    request(`${service.base}/log/${path}`, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('end', () => resolve(Buffer.concat(parts)));
    })
      .on('error', reject)
      .end();
  });
const readTile = async (path: string): Promise<Uint8Array> => bytesOf(path);

describe('proofs of dealt outcomes', () => {
  test('proves a slot spin with its PAR sheet and response, and that its block was logged before it was dealt', async () => {
    const sheet = parSheet('classic-3-reel');
    const gameId = await service.newGame(partner.key, sheet);
    const seen = await checkpoint();
    const spins = [];
    for (let i = 0; i < 12; i++) {
      spins.push(await service.spin(partner.key, { gameId, playerId: 'slots', wagerUsd: 0.25 }));
    }
    const codes = new Set<number>();
    const nonces = new Set<string>();
    for (const [place, { status, body }] of spins.entries()) {
      expect(status).toBe(200);
      const proof = await ask<Proof>(`/spins/${(body as { spinId: string }).spinId}/proof`);
      expect(proof.status).toBe(200);
      expect(proof.body.outcome.index).toBe(place);
      codes.add(proof.body.outcome.code);
      nonces.add(proof.body.outcome.nonce);
      const options = { logKeys: [logKey], sheet, spin: body, seen: [seen], readTile };
      const { faults, since } = await examine(proof.body, options);
      expect(faults).toEqual([]);
      expect(since).toBe(parseCheckpoint(parseNote(seen).text).size);
      expect(Buffer.byteLength(proof.text)).toBeLessThan(5120);
      const operator = await service.operator('GET', `/spins/${(body as { spinId: string }).spinId}/proof`);
      expect(operator.body).toMatchObject({ format: 'spindle proof v1', logIndex: proof.body.logIndex });
    }
    expect(codes.size).toBeGreaterThan(1);
    expect(nonces.size).toBe(spins.length);
  });

  test('proves a raffle ticket with its prize table', async () => {
    const table = {
      ticketPriceUsd: 1,
      poolSize: 300,
      prizes: [{ prizeName: 'Mug', prizeTier: 2, valueUsd: 1, count: 100 }],
    };
    const gameId = await service.api.newRaffle(partner.partnerId, 'proven-raffle', table);
    const { body } = await service.spin(partner.key, { gameId, playerId: 'raffle', wagerUsd: 1 });
    const proof = await ask<Proof>(`/spins/${(body as { spinId: string }).spinId}/proof`);
    expect(await verify(proof.body, { logKeys: [logKey], spin: body, table })).toEqual([]);
  });

  test('proves the shoe of a blackjack round, and contains its seed once the round has ended', async () => {
    const gameId = await newTable(service, partner.partnerId);
    const open = await dealUntil(service, partner.key, gameId, 'shoes', ({ status }) => status === 'OPEN');
    const { roundId } = open;
    const holds = async (round: RoundAnswer): Promise<void> => {
      const proof = await play<Proof>(service, partner.key, 'GET', `/rounds/${roundId}/proof`);
      expect(proof.status).toBe(200);
      const read = await play<{ table: { rules: unknown } }>(
        service,
        partner.key,
        'GET',
        `/rounds/${roundId}`,
      );
      const options = { logKeys: [logKey], rules: read.body.table.rules, spin: round };
      expect(await verify(proof.body, options)).toEqual([]);
      expect(proof.body.shoe.seed === null).toBe(round.status === 'OPEN');
    };
    await holds(open);
    const ended = await playOut(service, partner.key, open);
    await holds(ended);
  });

  test('gives no proof of a spin whose stored block differs from the logged one', async () => {
    const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
    const { body } = await service.spin(partner.key, { gameId, playerId: 'kept', wagerUsd: 0.25 });
    const path = `/spins/${(body as { spinId: string }).spinId}/proof`;
    const flip = () =>
      sql`UPDATE blocks SET outcomes = set_bit(outcomes, 3, 1 - get_bit(outcomes, 3)) WHERE game_id = ${gameId} AND from_index = 0`;
    await flip();
    expect((await ask(path)).body).toMatchObject({ errorCode: 'KS-5001' });
    await flip();
    expect(await verify((await ask<Proof>(path)).body, { logKeys: [logKey] })).toEqual([]);
  });

  test("refuses a proof of a spin that is unknown, another partner's, or a forced outcome", async () => {
    const other = await service.newPartner({ environment: 'sandbox' } as never);
    const gameId = await service.newGame(other.key, parSheet('classic-3-reel'));
    const { body } = await service.spin(other.key, { gameId, playerId: 'p', wagerUsd: 0.25 });
    const { spinId } = body as { spinId: string };
    expect((await ask(`/spins/${spinId}/proof`)).body).toMatchObject({ errorCode: 'KS-4215' });
    expect((await ask(`/spins/${'0'.repeat(32)}/proof`)).body).toMatchObject({ errorCode: 'KS-4215' });
    expect((await ask(`/games/${gameId}/blocks`)).body).toMatchObject({ errorCode: 'KS-4006' });
    const asOther = (method: string, path: string, sent?: unknown) =>
      service.request<Record<string, unknown>>(method, `/api/partner/v1${path}`, {
        key: other.key,
        body: sent,
      });
    await asOther('POST', '/sandbox/next-outcome', { gameId, playerId: 'p', combinationIndex: 1 });
    const forced = await service.spin(other.key, { gameId, playerId: 'p', wagerUsd: 0.25 });
    expect(forced.body).toMatchObject({ sandbox: { forced: true } });
    const refused = await asOther('GET', `/spins/${(forced.body as { spinId: string }).spinId}/proof`);
    expect(refused).toMatchObject({
      status: 404,
      body: { errorCode: 'KS-4219', details: [{ reason: 'FORCED' }] },
    });
  });
});

describe('reads of the public log', () => {
  test('serves the public log as a tree of its records, with every published tile at every width', async () => {
    const { size, root } = parseCheckpoint(parseNote(await checkpoint()).text);
    const bundle = await bytesOf(tilePath({ level: 'entries', index: 0, width: size }));
    const records = recordsOf(bundle)!;
    const leaves = records.map(leafHash);
    expect(new MemoryTree(leaves).root().equals(root)).toBe(true);
    for (let width = 1; width <= size; width++) {
      const tile = await bytesOf(tilePath({ level: 0, index: 0, width }));
      expect(tile.equals(Buffer.concat(leaves.slice(0, width)))).toBe(true);
    }
    for (const path of [
      'tile/0/000.p/255',
      'tile/0/000',
      'tile/0/x000/000.p/1',
      'tile/64/000.p/1',
      'nothing',
    ]) {
      const answer = await service.request('GET', `/log/${path}`);
      expect([path, answer.status, answer.headers.get('cache-control')]).toEqual([path, 404, 'no-store']);
    }
    const head = await service.request('HEAD', '/log/tile/0/000.p/1');
    expect([head.status, head.text, head.headers.get('content-length')]).toEqual([200, '', '32']);
    expect(head.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect((await service.request('GET', '/log/policy')).text).toBe(`log ${logKey}\nquorum none\n`);
    expect(JSON.parse(records[0]!.toString('utf8', 1))).toMatchObject({ type: 'genesis', vkey: logKey });
  });

  test('logs each block and void of a game once, and holders of its label key can identify them', async () => {
    const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
    await service.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25 });
    const rotated = await service.operator('POST', `/games/${gameId}/rotate`, { reason: 'seen by somebody' });
    expect(rotated.status).toBe(200);
    const { voidedFrom, voidedTo } = rotated.body as { voidedFrom: number; voidedTo: number };
    const listed = () =>
      ask<{ labelKey: string; labelKeyHash: string; blocks: Record<string, unknown>[]; nextCursor: null }>(
        `/games/${gameId}/blocks?limit=100`,
      );
    await until(async () => {
      const { blocks } = (await listed()).body;
      const isBehind = blocks.some((each) => Number(each.fromIndex) >= voidedTo && each.type === 'block');
      // The void and the new block may be published in either order.
      return isBehind && blocks.some(({ type }) => type === 'void');
    }, 'what was voided and the block behind it are published');
    const { body } = await listed();
    expect(body.blocks.map(({ number }) => number)).toEqual(body.blocks.map((_, at) => at));
    const voided = body.blocks.find(({ type }) => type === 'void');
    expect(voided).toMatchObject({ fromIndex: voidedFrom, toIndex: voidedTo, status: 'VOID' });
    const next = body.blocks.find(({ type, fromIndex }) => type === 'block' && fromIndex === voidedTo)!;
    expect(next).toMatchObject({ status: 'SEALED' });
    expect(
      createHash('sha256')
        .update('spindle label key v1\n')
        .update(Buffer.from(body.labelKey, 'hex'))
        .digest('hex'),
    ).toBe(body.labelKeyHash);
    const { size } = parseCheckpoint(parseNote(await checkpoint()).text);
    const records = recordsOf(await bytesOf(tilePath({ level: 'entries', index: 0, width: size })))!;
    const scan = new LabelScan(Buffer.from(body.labelKey, 'hex'));
    for (const [at, record] of records.entries()) scan.take(at, record);
    expect(scan.result().faults).toEqual([]);
    const places = [...scan.result().places].slice(0, body.blocks.length);
    expect(places).toEqual(body.blocks.map(({ number, logIndex }) => [number, logIndex]));
    // A void uses up its block, which is then revealed.
    const detail = await ask<{ reveal: { seed: string; nonce: string }; outcomes: string; entry: string }>(
      `/games/${gameId}/blocks/0?outcomes=true`,
    );
    expect(detail.body, detail.text).toMatchObject({ number: 0, status: 'EXHAUSTED', type: 'block' });
    const entry = JSON.parse(detail.body.entry);
    const secret = createHash('sha256')
      .update('spindle secret v1\n')
      .update(Buffer.from(detail.body.reveal.nonce + detail.body.reveal.seed, 'hex'));
    expect(secret.digest('hex')).toBe(entry.secretHash);
    expect(Buffer.from(detail.body.outcomes, 'base64').length).toBe(2 * entry.count);
    const sealed = await ask(`/games/${gameId}/blocks/${next.number}`);
    expect(sealed.body).toMatchObject({ status: 'SEALED', reveal: null });
    expect((await ask(`/games/${gameId}/blocks/9999`)).body).toMatchObject({ errorCode: 'KS-4215' });
    const page = await ask<{ blocks: unknown[]; nextCursor: number }>(`/games/${gameId}/blocks?limit=1`);
    expect([page.body.blocks.length, page.body.nextCursor]).toEqual([1, 0]);
  });

  test('`spindle verify --history` finds the whole history of a slot game, a raffle and a table in the public log', () =>
    expectHistories(service, partner, logKey));

  test('deals a block only once a published checkpoint covers it', async () => {
    const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
    const queue = async () =>
      (await service.operator<{ queue: { outcomesReady: number } }>('GET', `/games/${gameId}`)).body.queue
        .outcomesReady;
    const reserve = async () =>
      1 +
      Number(
        (await sql`SELECT min_ready_blocks AS n FROM partners WHERE partner_id = ${partner.partnerId}`)[0]!.n,
      );
    const isWaiting = async () => {
      const [row] = await sql`
        SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%UPDATE logs%'`;
      return row !== undefined;
    };
    const leased = async () =>
      (await sql`SELECT 1 FROM log_entries WHERE game_id = ${gameId} AND log_index IS NULL`).length;
    await until(
      async () => (await queue()) >= (await reserve()) * 2048 && (await leased()) === 0,
      'the reserve is full',
    );
    const before = await queue();
    await sql.begin(async (tx) => {
      await tx`SELECT 1 FROM logs FOR UPDATE`;
      const asked = await service.operator('POST', `/games/${gameId}/blocks`, { count: 1 });
      expect(asked.status).toBe(202);
      await until(async () => (await leased()) === 1 && (await isWaiting()), 'a block waits for the log');
      expect(await queue()).toBe(before);
      const dealt = await service.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25 });
      expect(dealt.status).toBe(200);
    });
    await until(async () => (await queue()) > before, 'it is loaded then');
  });

  test("serves no part of the log's tree that is not published", async () => {
    const { size } = parseCheckpoint(parseNote(await checkpoint()).text);
    const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
    // The entry is appended and signed, but its checkpoint is not published. A worker publishes signed
    // checkpoints unless the log is halted.
    await sql`UPDATE logs SET halt = 'test', halt_note = 'test'`;
    await sql`UPDATE log_checkpoints SET published_at = NULL WHERE size > ${size}`;
    expect((await service.request('GET', `/log/tile/0/000.p/${size}`)).status).toBe(200);
    expect((await service.request('GET', `/log/tile/0/000.p/${size + 1}`)).status).toBe(404);
    expect((await service.request('GET', `/log/tile/entries/000.p/${size + 1}`)).status).toBe(404);
    expect((await ask<{ blocks: unknown[] }>(`/games/${gameId}/blocks`)).body.blocks).toEqual([]);
    await sql`UPDATE log_checkpoints SET published_at = now() WHERE size > ${size}`;
    await sql`UPDATE logs SET halt = NULL, halt_note = NULL`;
  });

  test('the audit finds the public log clean, and detects a changed record or tile', async () => {
    const found = async (): Promise<string[]> =>
      (await auditFindings(stores)).map((each) => (each as { problem: string }).problem);
    const own = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
    for (const day of ['2026-01-01', '2026-01-01', '2026-01-02']) await noteAuditHead(own, day);
    await own.end();
    const waiting = () => sql`SELECT FROM log_notices WHERE log_index IS NULL`;
    await until(async () => (await waiting()).length === 0, 'the audit log is in the public log');
    expect(await sql`SELECT FROM log_notices WHERE name LIKE 'audit %'`).toHaveLength(2);
    // A running service would append to the changed tile, so it is stopped.
    await service.stop();
    expect(await found()).toEqual([]);
    await sql.unsafe(REWRITTEN);
    expect(new Set(await found())).toEqual(new Set(['the public log has another hash for this entry']));
    await sql.unsafe(REWRITTEN);
    expect(await found()).toEqual([]);
    const changes: [table: string, column: string, where: string, problem: string][] = [
      ['log_tiles', 'bytes', 'level = 0', 'a tile does not match the records'],
      ['log_entries', 'salt', 'number = 0', 'the opening of an entry does not match the log'],
    ];
    for (const [table, column, where, problem] of changes) {
      const flip = `UPDATE ${table} SET ${column} = set_byte(${column}, 5, get_byte(${column}, 5) # 1) WHERE ${where}`;
      await sql.unsafe(flip);
      expect(await found()).toContain(problem);
      await sql.unsafe(flip);
    }
    const first = '(SELECT min(size) FROM log_checkpoints)';
    await sql.unsafe(`UPDATE log_checkpoints SET note = replace(note, '/log', '/lag') WHERE size = ${first}`);
    expect(await found()).toContain('a checkpoint names another log or size');
    await sql.unsafe(`UPDATE log_checkpoints SET note = replace(note, '/lag', '/log') WHERE size = ${first}`);
    expect(await found()).toEqual([]);
    service = await startService(stores, { CELLS: '2' });
  });
});
