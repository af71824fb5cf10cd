/**
 * `npm run backup:drill`: backs both stores up as docs/backup.md says, goes on spinning, loses stores, restores them, and holds what comes of
 * it against what every client was answered. Needs the programs of a Postgres server (Debian: `postgresql`).
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { Cleanup } from '../support/cleanup.js';
import type { TestPartner } from '../support/client.js';
import { ROOT } from '../support/root.js';
import type { ServerProcess } from '../support/serverProcess.js';
import { environment, spawnService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import { type OwnStores, ownStores } from '../support/stores.js';
import { until } from '../support/wait.js';
import { ArchivedPostgres } from './archivedPostgres.js';

const SPINS = 300;
const run = promisify(execFile);
const cleanup = new Cleanup();

class Drill {
  /** What each requestId was answered. */
  readonly answers = new Map<string, string>();
  service!: ServerProcess;
  partner!: TestPartner;
  gameId!: number;

  constructor(
    readonly stores: OwnStores,
    readonly postgres: ArchivedPostgres,
  ) {}

  get env(): NodeJS.ProcessEnv {
    const urls = { redisUrl: this.stores.redisUrl, databaseUrl: this.postgres.url };
    return environment(urls, { ACK: 'ledger', CELLS: '1', SPIN_DEADLINE_MS: '3000' });
  }

  async start(): Promise<void> {
    this.service = await spawnService(this.env);
    cleanup.add(() => this.service.stop());
  }

  spin(requestId: string) {
    return this.service.client.spin(this.partner.key, {
      gameId: this.gameId,
      playerId: 'p',
      wagerUsd: 0.25,
      requestId,
    });
  }

  /** Spins until as many are answered as are asked for. */
  async play(name: string): Promise<void> {
    await until(async () => (await this.spin(`${name}-first`)).status === 200, `${name}: dealt from`);
    for (let i = 0; i < SPINS; i++) {
      const { status, text } = await this.spin(`${name}-${i}`);
      assert.equal(status, 200, text);
      this.answers.set(`${name}-${i}`, text);
    }
  }

  /** Every answered spin is still what it was. */
  async replay(names: readonly string[]): Promise<void> {
    for (const [requestId, text] of this.answers) {
      if (!names.some((name) => requestId.startsWith(name))) continue;
      const again = await this.spin(requestId);
      assert.deepEqual([again.text, again.headers.get('idempotent-replayed')], [text, 'true'], requestId);
    }
  }

  /** `spindle …`. @returns its output, whatever its exit status. */
  async command(...words: string[]): Promise<string> {
    const { PATH } = process.env;
    const options = { env: { PATH, ...this.env }, cwd: ROOT };
    const { stdout, stderr } = await run(
      process.execPath,
      [join(ROOT, 'dist/src/cli.js'), ...words],
      options,
    ).catch((error: { stdout: string; stderr: string }) => error);
    return stdout + stderr;
  }

  async auditIsClean(): Promise<void> {
    await until(
      async () => /\bCLEAN/.test((await this.command('audit')).replace('NOT CLEAN', '')),
      'the audit is clean',
    );
  }

  async query<T extends object>(text: string): Promise<T[]> {
    const sql = postgres(this.postgres.url, { max: 1, onnotice: () => {} });
    const rows = await sql.unsafe<T[]>(text);
    await sql.end();
    return [...rows];
  }
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function drill(): Promise<void> {
  const stores = await ownStores();
  cleanup.add(() => stores.drop());
  const server = await ArchivedPostgres.begin(join(stores.dataDir, 'archived'));
  cleanup.add(() => server.stop());
  const it = new Drill(stores, server);
  await it.start();
  it.partner = await it.service.client.newPartner({ openingBalanceUsd: 1_000_000 });
  it.gameId = await it.service.client.newGame(it.partner.key, parSheet('classic-3-reel'));
  await it.play('before');
  await stores.copyRedis();
  await server.backUp();
  await it.play('after');
  await it.service.stop();
  say(`backed up; ${it.answers.size} spins answered, half of them after the backup`);
  await redisIsLost(it);
  await postgresIsLost(it);
}

/** Postgres is as it was. */
async function redisIsLost(it: Drill): Promise<void> {
  const { stores } = it;
  await stores.redis.stop();
  await stores.restoreRedis();
  await stores.redis.start();
  await it.start();
  await it.play('older-redis');
  await it.replay(['before', 'after']);
  await it.auditIsClean();
  await it.service.stop();
  say('Redis from the backup, Postgres as it was: rebuilt; nothing lost; audit CLEAN');

  await stores.redis.stop();
  await stores.wipeRedis();
  await stores.redis.start();
  await it.start();
  await it.play('no-redis');
  await it.replay(['before', 'after', 'older-redis']);
  await it.auditIsClean();
  await it.service.stop();
  say('no Redis, Postgres as it was: rebuilt; nothing lost; audit CLEAN');
}

async function postgresIsLost(it: Drill): Promise<void> {
  const { stores, postgres: server } = it;
  await server.archive();
  await server.stop('SIGKILL');
  await server.restoreFromArchive();
  await it.start();
  await it.play('archive');
  await it.replay(['before', 'after', 'older-redis', 'no-redis']);
  await it.auditIsClean();
  await it.service.stop();
  say('Postgres from base backup and archive, Redis as it was: nothing lost; audit CLEAN');

  const seeds = (await it.query<{ seed: string }>(`SELECT encode(seed, 'hex') AS seed FROM blocks`)).map(
    ({ seed }) => seed,
  );
  await server.restoreDump();
  const refused = await it.command('recover', '--check');
  assert.match(refused, /older copy/);
  say('Postgres from the dump, Redis as it was: refused, and not dealt from');

  await stores.redis.stop();
  await stores.wipeRedis();
  await stores.redis.start();
  await it.start();
  const [newest] = await it.query<{ id: string }>('SELECT max(entry_id)::text AS id FROM ledger');
  await it.play('dump');
  await it.replay(['before']);
  await it.auditIsClean();
  const dealt = await it.query<{ seed: string }>(`
    SELECT DISTINCT encode(seed, 'hex') AS seed FROM ledger l JOIN blocks b
    ON b.game_id = l.game_id AND outcome_index >= from_index AND outcome_index < to_index WHERE entry_id > ${newest!.id}`);
  assert.ok(dealt.length > 0);
  assert.deepEqual(
    dealt.filter(({ seed }) => seeds.includes(seed)),
    [],
  );
  await it.service.stop();
  say(
    'Postgres from the dump, no Redis: rebuilt; spins since the dump are lost; no outcome of before is dealt again; audit CLEAN',
  );
}

try {
  await drill();
} finally {
  await cleanup.run();
}
