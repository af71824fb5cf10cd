/**
 * `npm run chaos -- backup`: backs up both stores as docs/backup.md says, continues with spins, tickets and
 * blackjack rounds, loses stores, restores them, and compares the result with every answer to a client. Needs
 * the programs of a Postgres server (Debian: `postgresql`).
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { ENTRY_KINDS } from '../../src/domain/ledgerEntry.js';
import { Cleanup } from '../support/cleanup.js';
import type { TestPartner } from '../support/client.js';
import { cliOf, ROOT } from '../support/root.js';
import { act, deal, dealUntil, isPlaying, newTable, play, playOut } from '../support/rounds.js';
import type { ServerProcess } from '../support/serverProcess.js';
import { environment, spawnService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import { type OwnStores, ownStores } from '../support/stores.js';
import { until } from '../support/wait.js';
import { ArchivedPostgres } from './archivedPostgres.js';

const SPINS = 300;
const TICKETS = 20;
const TICKET_USD = 1;
/** Number of spins that are answered while Postgres is away, so that they wait in Redis. */
const WAITING = 40;
const ROUNDS = 20;
const run = promisify(execFile);
const cleanup = new Cleanup();
/** Kinds of ledger entries that deal an outcome: spins, including tickets, and blackjack deals. */
const KINDS_DEALT = [ENTRY_KINDS.spin.code, ENTRY_KINDS.roundDeal.code].join();

class Drill {
  /** The answer to each requestId of a spin or ticket. */
  readonly answers = new Map<string, { readonly gameId: number; readonly text: string }>();
  /** Finished rounds by id, with the state that was shown at their end. */
  readonly rounds = new Map<string, { readonly phase: string; readonly text: string }>();
  /**
   * The ledger entry of every outcome, ticket and shoe that a response contained, by the seed of its block
   * and its position in the block.
   */
  readonly #shown = new Map<string, string>();
  /** Settings of some of the passes. */
  settings: NodeJS.ProcessEnv = {};
  service!: ServerProcess;
  partner!: TestPartner;
  gameId!: number;
  raffleId!: number;
  tableId!: number;

  constructor(
    readonly stores: OwnStores,
    readonly postgres: ArchivedPostgres,
  ) {}

  get env(): NodeJS.ProcessEnv {
    const urls = { redisUrl: this.stores.redisUrl, databaseUrl: this.postgres.url };
    return environment(urls, { ACK: 'ledger', CELLS: '1', SPIN_DEADLINE_MS: '3000', ...this.settings });
  }

  async start(): Promise<void> {
    this.service = await spawnService(this.env);
    cleanup.add(() => this.service.stop());
  }

  spin(requestId: string, gameId = this.gameId) {
    const wagerUsd = gameId === this.raffleId ? TICKET_USD : 0.25;
    return this.service.client.spin(this.partner.key, { gameId, playerId: 'p', wagerUsd, requestId });
  }

  /** Creates the games, and waits until all of them can be dealt from. */
  async register(): Promise<void> {
    const { client } = this.service;
    this.partner = await client.newPartner({ openingBalanceUsd: 1_000_000 });
    this.gameId = await client.newGame(this.partner.key, parSheet('classic-3-reel'));
    this.tableId = await newTable(client, this.partner.partnerId);
    const made = await client.operator<{ gameConfigId: number }>(
      'POST',
      `/partners/${this.partner.partnerId}/raffles`,
      {
        displayName: 'Raffle',
        configName: 'RAFFLE',
        ticketPriceUsd: TICKET_USD,
        poolSize: 1000,
        prizes: [{ prizeName: 'Cup', prizeTier: 1, valueUsd: 5, count: 100 }],
      },
    );
    this.raffleId = made.body.gameConfigId;
    await until(async () => (await this.spin('opens', this.raffleId)).status === 200, 'the raffle is open');
  }

  /** Spins, buys tickets and completes rounds until the requested number of answers has arrived. */
  async play(name: string, { hasRaffle = true } = {}): Promise<void> {
    const { client } = this.service;
    await until(async () => (await this.spin(`${name}-first`)).status === 200, `${name}: dealt from`);
    const wanted = [...Array(SPINS).fill(this.gameId), ...Array(hasRaffle ? TICKETS : 0).fill(this.raffleId)];
    for (const [i, gameId] of wanted.entries()) {
      const { status, text } = await this.spin(`${name}-${i}`, gameId);
      assert.equal(status, 200, text);
      this.answers.set(`${name}-${i}`, { gameId, text });
    }
    const dealt = async (player: string) => deal(client, this.partner.key, this.tableId, player);
    await until(async () => (await dealt(`${name}-first`)).status === 201, `${name}: rounds are dealt`);
    for (let i = 0; i < ROUNDS; i++) {
      const { status, text, body } = await dealt(`${name}-${i}`);
      assert.equal(status, 201, text);
      const { roundId } = await playOut(client, this.partner.key, body);
      this.rounds.set(roundId, { phase: name, text: (await this.round(roundId)).text });
    }
    await this.nothingIsDealtAgain();
  }

  round(roundId: string) {
    return play(this.service.client, this.partner.key, 'GET', `/rounds/${roundId}`);
  }

  /** Checks that every answered spin and ticket, and every finished round, is unchanged. */
  async replay(names: readonly string[]): Promise<void> {
    for (const [requestId, { gameId, text }] of this.answers) {
      if (!names.some((name) => requestId.startsWith(name))) continue;
      const again = await this.spin(requestId, gameId);
      assert.deepEqual([again.text, again.headers.get('idempotent-replayed')], [text, 'true'], requestId);
    }
    for (const [roundId, { phase, text }] of this.rounds)
      if (names.includes(phase)) assert.equal((await this.round(roundId)).text, text);
  }

  /**
   * Checks that no position in a block belongs to two ledger entries, including entries that a restore has
   * lost.
   */
  async nothingIsDealtAgain(): Promise<void> {
    const dealt = await this.query<{ place: string; id: string }>(`
      SELECT l.game_id || ':' || outcome_index || ':' || md5(b.seed) AS place, entry_id::text AS id
      FROM ledger l JOIN blocks b ON b.game_id = l.game_id AND outcome_index >= from_index AND outcome_index < to_index
      WHERE kind IN (${KINDS_DEALT})`);
    const again = dealt.filter(({ place, id }) => (this.#shown.get(place) ?? id) !== id);
    assert.deepEqual(again, [], 'dealt again');
    for (const { place, id } of dealt) this.#shown.set(place, id);
  }

  get shown(): number {
    return this.#shown.size;
  }

  /**
   * Runs a `spindle` command.
   * @returns its output, whatever its exit status
   */
  async command(...words: string[]): Promise<string> {
    const { PATH } = process.env;
    const options = { env: { PATH, ...this.env }, cwd: ROOT };
    const { stdout, stderr } = await run(process.execPath, [cliOf(ROOT), ...words], options).catch(
      (error: { stdout: string; stderr: string }) => error,
    );
    return stdout + stderr;
  }

  /** Spins while Postgres is away. The answers wait in Redis. */
  async playWithoutPostgres(name: string): Promise<void> {
    for (let i = 0; i < WAITING; i++) {
      const { status, text } = await this.spin(`${name}-waits-${i}`);
      assert.equal(status, 200, text);
      this.answers.set(`${name}-waits-${i}`, { gameId: this.gameId, text });
    }
  }

  /** Asks `spindle recover` what to do, and does it. */
  async followAdvice(): Promise<string> {
    const said = await this.command('recover');
    const [, words] = /^Recommended: npx spindle (.*)$/m.exec(said) ?? [];
    assert.ok(words !== undefined, said);
    await this.command(...words.split(' '), '--yes');
    return words;
  }

  async isWell(): Promise<void> {
    const status = async () => (await this.service.client.request('GET', '/statusz')).status;
    await until(async () => (await status()) === 200, '/statusz is 200');
  }

  async names(problem: string): Promise<void> {
    const named = async () =>
      (await this.service.client.request('GET', '/statusz')).text.includes(`"name":"${problem}"`);
    await until(named, `/statusz names ${problem}`);
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
  // Other users can't enter the folder of the embedded stores. This server runs as another user, so it gets a
  // folder of its own.
  const folder = await mkdtemp(join(tmpdir(), 'spindle-drill-'));
  await chmod(folder, 0o755);
  cleanup.add(() => rm(folder, { recursive: true, force: true }));
  const server = await ArchivedPostgres.begin(join(folder, 'archived'));
  cleanup.add(() => server.stop());
  const it = new Drill(stores, server);
  await it.start();
  await it.register();
  await it.play('before');
  const open = await dealUntil(it.service.client, it.partner.key, it.tableId, 'open', isPlaying);
  await stores.copyRedis();
  await server.backUp();
  await it.play('after');
  assert.equal((await playOut(it.service.client, it.partner.key, open)).status, 'SETTLED');
  await it.service.stop();
  say(
    `backed up; ${it.answers.size} spins and tickets answered and ${it.rounds.size} rounds played, half of them after the backup`,
  );
  await redisIsLost(it);
  await postgresIsLost(it, open.roundId);
}

/** Restores Redis from the backup or starts it empty, while Postgres is unchanged. */
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

/**
 * Walks the steps of the page in each order: the worker is started before or after the command. Postgres gets
 * a new timeline, or the position file is damaged, while answered spins wait in Redis. All of them are kept.
 */
async function ordersOfTheSteps(it: Drill): Promise<void> {
  const { postgres: server, stores } = it;
  const file = join(stores.dataDir, 'position', 'position.json');
  it.settings = { ACK: 'redis', POSITION_FILE: file };
  const names: string[] = [];
  for (const loss of ['timeline', 'damaged'] as const)
    for (const order of ['worker-first', 'command-first'] as const) {
      const name = `${loss}-${order}`;
      names.push(name);
      await it.start();
      await it.play(name, { hasRaffle: false });
      await it.isWell();
      await server.stop();
      await it.playWithoutPostgres(name);
      await it.service.stop();
      if (loss === 'timeline') await server.restoreFromArchive();
      else {
        await server.start();
        await writeFile(file, '');
      }
      if (order === 'worker-first') {
        await it.start();
        await it.names(loss === 'timeline' ? 'stores-restored' : 'copy-unreadable');
      }
      assert.equal(await it.followAdvice(), 'recover --without POSITION_FILE');
      if (order === 'command-first') await it.start();
      await it.isWell();
      await it.replay(['before', 'after', 'older-redis', 'no-redis', 'archive', ...names]);
      await it.auditIsClean();
      await it.service.stop();
      say(`${loss}, ${order}: ${WAITING} spins that waited in Redis are kept; audit CLEAN`);
    }
  it.settings = {};
  assert.match(await it.command('recover', '--without', 'POSITION_FILE', '--yes'), /given up/);
}

/**
 * Restores Postgres in several ways.
 * @param openId a round that is open in the backup, and that was completed after the backup
 */
async function postgresIsLost(it: Drill, openId: string): Promise<void> {
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

  await ordersOfTheSteps(it);

  await server.restoreDump();
  const refused = await it.command('recover', '--check');
  assert.match(refused, /older copy/);
  say('Postgres from the dump, Redis as it was: refused, and not dealt from');

  await stores.redis.stop();
  await stores.wipeRedis();
  await stores.redis.start();
  const recovered = await it.command('recover', '--restored', '--yes');
  assert.match(recovered, /rebuilt/);
  await it.start();
  await until(
    async () => (await it.round(openId)).body.status === 'VOIDED',
    'the round that was open in the dump is voided',
  );
  const acted = await act(it.service.client, it.partner.key, openId, 'stand', 1);
  assert.equal(acted.status, 409, acted.text);
  await it.play('dump', { hasRaffle: false });
  await it.replay(['before']);
  const ticket = await it.spin('dump-ticket', it.raffleId);
  assert.deepEqual([ticket.status, ticket.body.errorCode], [400, 'KS-4202']);
  await it.auditIsClean();
  await it.service.stop();
  say(
    `Postgres from the dump, no Redis, recover --restored: what came since the dump is lost; of ${it.shown} outcomes, tickets and shoes that were shown none is dealt again; the raffle is suspended, the open round voided; audit CLEAN`,
  );
}

try {
  await drill();
} finally {
  await cleanup.run();
}
