/**
 * `npm run test:referees`: lets third-party code check a log that the service served, namely sumdb/note and
 * sumdb/tlog of golang.org/x/mod (Debian: `golang-go golang-golang-x-mod-dev`). Skipped with a message if Go
 * or the package is not installed.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseCheckpoint } from '../../src/domain/publicLog/checkpoints.js';
import { parseNote } from '../../src/domain/publicLog/notes.js';
import { recordsOf, TILE_WIDTH, tilePath } from '../../src/domain/publicLog/tiles.js';
import { freshStores } from '../setup/freshStores.js';
import { ROOT } from '../support/root.js';
import { startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import type { TestStores } from '../support/stores.js';

/** Folder where Debian installs the sources of Go packages. The variable GO_SOURCES overrides it. */
const SOURCES = process.env.GO_SOURCES ?? '/usr/share/gocode';
const GAMES = 20;
const isThere =
  spawnSync('go', ['version']).status === 0 &&
  existsSync(join(SOURCES, 'src', 'golang.org', 'x', 'mod', 'sumdb', 'tlog'));
if (!isThere) process.stderr.write('The log is not judged by x/mod: Go or golang.org/x/mod is not there\n');

describe.skipIf(!isThere)('a log that the service served', () => {
  let stores: TestStores;
  let service: Awaited<ReturnType<typeof startService>>;
  let served: {
    Vkey: string;
    Checkpoints: string[];
    Records: string[];
    TlogProof: string;
    ProvenIndex: number;
  };
  const folder = mkdtempSync(join(tmpdir(), 'spindle-referees-'));

  beforeAll(async () => {
    stores = await freshStores();
    service = await startService(stores, { CELLS: '2' });
    served = await serveLog();
  });
  afterAll(async () => {
    await service?.stop();
    await stores?.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  const checkpoint = async (): Promise<string> => (await service.request('GET', '/log/checkpoint')).text;

  /** Creates games one after the other, with a spin each, so that the log grows with each checkpoint. */
  async function serveLog(): Promise<typeof served> {
    const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
    const [log] = await sql<{ vkeys: string[] }[]>`SELECT vkeys FROM logs`;
    await sql.end();
    const { key } = await service.newPartner({ openingBalanceUsd: 1000 });
    const checkpoints = new Set<string>();
    let spinId = '';
    for (let i = 0; i < GAMES; i++) {
      const gameId = await service.newGame(key, parSheet('classic-3-reel'));
      const { status, body } = await service.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25 });
      expect(status).toBe(200);
      spinId = (body as { spinId: string }).spinId;
      checkpoints.add(await checkpoint());
    }
    const path = `/api/partner/v1/spins/${spinId}/proof`;
    const proof = await service.request<{ tlogProof: string; logIndex: number }>('GET', path, { key });
    expect(proof.status).toBe(200);
    const newest = await checkpoint();
    checkpoints.delete(newest);
    const { size } = parseCheckpoint(parseNote(newest).text);
    return {
      Vkey: log!.vkeys[0]!,
      Checkpoints: [...checkpoints, newest],
      Records: (await readRecords(size)).map((record) => record.toString('base64')),
      TlogProof: proof.body.tlogProof,
      ProvenIndex: proof.body.logIndex,
    };
  }

  async function readRecords(size: number): Promise<Buffer[]> {
    const records: Buffer[] = [];
    for (let index = 0; index * TILE_WIDTH < size; index++) {
      const width = Math.min(TILE_WIDTH, size - index * TILE_WIDTH);
      const answer = await fetch(`${service.base}/log/${tilePath({ level: 'entries', index, width })}`);
      expect(answer.status).toBe(200);
      records.push(...recordsOf(Buffer.from(await answer.arrayBuffer()))!);
    }
    return records;
  }

  function judged(log: typeof served): { status: number | null; out: string; error: string } {
    const { PATH, HOME } = process.env;
    const env = { PATH, HOME, GO111MODULE: 'off', GOPATH: SOURCES, GOCACHE: join(folder, 'cache') };
    const program = join(ROOT, 'test', 'referees', 'main.go');
    const input = JSON.stringify(log);
    const { status, stdout, stderr } = spawnSync('go', ['run', program], { env, input, encoding: 'utf8' });
    return { status, out: stdout, error: stderr };
  }

  test('golang.org/x/mod opens and verifies a log that the service served', () => {
    const { status, out, error } = judged(served);
    expect([status, error]).toEqual([0, '']);
    expect(out).toBe(`${served.Records.length} records, ${served.Checkpoints.length} checkpoints, 1 proof\n`);
    expect(served.Records.length).toBeGreaterThan(GAMES);
    process.stdout.write(`x/mod checked ${out}`);
  });

  test('golang.org/x/mod rejects a served log with a changed record, checkpoint or proof', () => {
    const { Records, Checkpoints, TlogProof } = served;
    const record = Buffer.from(Records[2]!, 'base64');
    record[20]! ^= 1;
    const broken = [
      { ...served, Records: Records.with(2, record.toString('base64')) },
      { ...served, Checkpoints: Checkpoints.with(0, Checkpoints[0]!.replace(/^(.*\n)\d+/, '$11')) },
      { ...served, TlogProof, ProvenIndex: served.ProvenIndex - 1 },
    ];
    for (const log of broken) expect(judged(log).status).toBe(1);
  });
});
