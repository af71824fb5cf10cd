/** Tests the built `spindle` command as operators use it, against a service that the test starts. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { settings } from '../../src/api/partners/contract.js';
import { verifyPool } from '../../src/cli/verifyPool.js';
import { world } from '../setup/world.js';
import { OPERATOR_KEY } from '../support/client.js';
import { cliOf, ROOT } from '../support/root.js';
import { constants } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import { until } from '../support/wait.js';

type Json = Record<string, unknown>;

interface Ended {
  readonly status: number;
  readonly out: string;
  readonly error: string;
}

const { service, partner, sql } = world(constants({ authFailureLimit: 1_000_000 }));
let gameId: number;
let folder: string;

/** Runs the command with only these settings in its environment, and none for a store. */
async function run(env: NodeJS.ProcessEnv, args: readonly string[], input = ''): Promise<Ended> {
  const child = spawn(process.execPath, [cliOf(ROOT), ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH, ...env },
  });
  child.stdin.end(input);
  const ended = { out: '', error: '' };
  child.stdout.on('data', (chunk: Buffer) => {
    ended.out += chunk;
  });
  child.stderr.on('data', (chunk: Buffer) => {
    ended.error += chunk;
  });
  const [status] = (await once(child, 'close')) as [number];
  return { status, ...ended };
}

const cli = (...args: string[]): Promise<Ended> =>
  run({ SPINDLE_URL: service.base, OPERATOR_API_KEY: OPERATOR_KEY }, args);

/** Returns the output of a command, which must exit with 0 and print no error. */
async function done(...args: string[]): Promise<string> {
  const { status, out, error } = await cli(...args);
  expect([args, status, error]).toEqual([args, 0, '']);
  return out;
}

/** Returns the value of a member in lines of names and values. */
const member = (out: string, name: string): string | undefined =>
  out
    .split('\n')
    .find((line) => line.startsWith(`${name} `))
    ?.slice(name.length)
    .trim();

const json = async <T = Json>(...args: string[]): Promise<T> =>
  JSON.parse(await done(...args, '--json')) as T;

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'spindle-cli-'));
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
});

afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
});

const created = ['--name', 'Käse & Söhne 遊技', '--environment', 'sandbox'];

describe.concurrent('spindle partner', () => {
  test('spindle partner creates, shows, lists, updates and deactivates partners', async () => {
    const given = ['--balance-mode', 'enforce', '--funding', '1000.50', '--opening-balance', '0.000001'];
    const out = await done('partner', 'create', '--slug', 'one', ...created, ...given);
    const partnerId = member(out, 'partnerId')!;
    expect(member(out, 'name')).toBe('Käse & Söhne 遊技');
    expect(member(out, 'isActive')).toBe('true');
    expect(member(out, 'openingBalanceUsd')).toBe('0.000001');
    expect(member(out, 'fundingUsd')).toBe('1000.50');
    expect(member(out, 'contactEmail')).toBe('-');

    const shown = await json('partner', 'show', partnerId);
    expect(shown).toMatchObject({ slug: 'one', fundingUsd: 1000.5, openingBalanceUsd: 1e-6 });
    // Tries every setting that is a whole number with its least value plus one.
    const numbers = Object.entries<{ type?: unknown; anyOf?: unknown; minimum?: number }>(settings)
      .filter(([, { type }]) => type === 'integer')
      .map(([name, { minimum }]) => [name, minimum! + 1] as const);
    const limits = numbers.flatMap(([name, value]) => [
      `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
      String(value),
    ]);
    const others = ['--large-win-threshold', '9.5', '--contact-email', 'a@b.c', '--name', 'Renamed'];
    const updated = await json('partner', 'update', partnerId, ...limits, ...others, '--funding', 'none');
    expect(updated).toEqual({
      ...shown,
      name: 'Renamed',
      ...Object.fromEntries(numbers),
      largeWinThresholdUsd: 9.5,
      contactEmail: 'a@b.c',
      fundingUsd: null,
    });
    expect(await json('partner', 'deactivate', partnerId, '--yes')).toEqual({ ...updated, isActive: false });
    const again = ['--active', 'true', '--contact-email', 'none'];
    expect(await json('partner', 'update', partnerId, ...again)).toEqual({ ...updated, contactEmail: null });
  });

  test('spindle partner list prints aligned columns', async () => {
    await service.newPartner({ slug: 'wide', name: 'Käse & Söhne 遊技', spinRateLimit: 300, fundingUsd: 20 });
    await service.newPartner({ slug: 'w', name: 'W', environment: 'production', spinRateLimit: 300 });
    const [listed, { partners }] = await Promise.all([
      done('partner', 'list'),
      json<{ partners: Json[] }>('partner', 'list'),
    ]);
    expect(partners).toContainEqual(expect.objectContaining({ slug: 'wide', fundingUsd: 20 }));
    const lines = listed.trimEnd().split('\n');
    expect(lines.length).toBeGreaterThan(3);
    expect(lines[0]).toMatch(
      /^ *id {2}slug +name +environment {2}cell {2}status {2}dealing {2} *spins a minute {2}balances {2} *opening balance USD {2} *funding USD$/,
    );
    const wide = lines.find((line) => line.includes(' wide '))!;
    expect(wide).toMatch(
      / wide +Käse & Söhne 遊技 +sandbox +\d +active +ON +300 {2}track +1000\.00 +20\.00$/,
    );
    // The two wide characters of the name take two columns each.
    expect(wide.indexOf('sandbox')).toBe(lines[0]!.indexOf('environment') - 2);
    expect(lines.find((line) => / w /.test(line))).toMatch(
      / production +\d +active +ON +300 {2}track +0\.00 +-$/,
    );
  });

  test('spindle partner prints the code and all details of a refusal, and exits with 1', async () => {
    const slug = ['--slug', 'Not A Slug', '--name', 'N', '--environment', 'moon', '--min-ready-blocks', '0'];
    const [missing, wrong, taken] = await Promise.all([
      cli('partner', 'show', '2000000000'),
      cli('partner', 'create', ...slug),
      service
        .newPartner({ slug: 'twice' })
        .then(() => cli('partner', 'create', '--slug', 'twice', ...created, '--json')),
    ]);
    expect(missing).toEqual({ status: 1, out: '', error: 'KS-4209 The partner is not found\n' });
    expect([taken.status, taken.out, taken.error.includes('KS-4211')]).toEqual([1, '', true]);
    expect([wrong.status, wrong.out]).toEqual([1, '']);
    expect(
      wrong.error
        .split('\n')
        .map((line) => line.trim().split(' ')[0])
        .sort(),
    ).toEqual(['', '/environment', '/minReadyBlocks', '/slug', 'KS-4101']);
  });
});

describe.concurrent('spindle key', () => {
  test('spindle key issues a key that is shown only once, lists keys without it, and revokes them', async () => {
    const { partnerId } = await service.newPartner();
    const id = String(partnerId);
    const issued = await cli('key', 'issue', id, '--name', 'first', '--expires', '2099-01-02T03:04:05Z');
    expect(issued.status).toBe(0);
    expect(issued.error).toBe('The key is shown only once. Save it now.\n');
    const apiKey = member(issued.out, 'apiKey')!;
    expect(apiKey).toMatch(/^ks_[\w-]{43}$/);
    expect((await service.partner('GET', '/version', apiKey)).status).toBe(200);
    const keyId = member(issued.out, 'keyId')!;
    const asJson = await cli('key', 'issue', id, '--json');
    expect(JSON.parse(asJson.out)).toMatchObject({ apiKey: expect.stringMatching(/^ks_/), name: null });

    expect(await done('key', 'revoke', id, keyId, '--yes')).toBe('The key is revoked.\n');
    expect((await service.partner('GET', '/version', apiKey)).status).toBe(401);
    const listed = await done('key', 'list', id);
    expect(listed).toMatch(/^ *id {2}name +begins with +status +created +expires +last used\n/);
    expect(listed).toMatch(
      new RegExp(` ${keyId}  first  ks_\\S{6} +revoked  \\S{24}  2099-01-02T03:04:05\\.000Z  \\S+\n`),
    );
    expect(listed).not.toContain(apiKey);
    const gone = await cli('key', 'revoke', id, '2000000000', '--yes');
    expect(gone).toEqual({ status: 1, out: '', error: expect.stringMatching(/^KS-4212 /) });
  });
});

describe.concurrent('spindle adjust', () => {
  test("spindle adjust adjusts any player's balance by the exact amount, once for each request id", async () => {
    const { partnerId, key } = await service.newPartner({ openingBalanceUsd: 100, balanceMode: 'enforce' });
    const adjust = (playerId: string, amount: string, ...words: string[]): Promise<Ended> =>
      cli('adjust', String(partnerId), playerId, '--amount', amount, '--reason', 'a test', '--yes', ...words);
    const first = await adjust('alice', '-12.50');
    const requestId = /^request id ([0-9a-f-]{36})\n$/.exec(first.error)![1]!;
    expect(first.status).toBe(0);
    expect(member(first.out, 'playerId')).toBe('alice');
    expect(member(first.out, 'balanceUsd')).toBe('87.50');
    const again = await adjust('alice', '-12.50', '--request-id', requestId);
    expect(again).toEqual(first);
    const balance = await service.partner('GET', '/players/alice', key);
    expect(balance.body.balanceUsd).toBe(87.5);

    // A client that normalizes URLs would request another path. The amount has more digits than a double can
    // distinguish.
    const [dots, refused, exact] = await Promise.all([
      adjust('..', '1', '--json'),
      adjust('bob', '-100.000001'),
      adjust('carol', '8999999799.999999', '--request-id', 'large'),
    ]);
    expect(JSON.parse(dots.out)).toMatchObject({ playerId: '..', balanceUsd: 101 });
    expect(refused).toMatchObject({ status: 1, out: '', error: expect.stringMatching(/\nKS-4225 /) });
    expect(exact.status).toBe(0);
    const [intent] = await sql`SELECT amount_micros FROM adjustments WHERE request_id = 'large'`;
    expect(intent).toEqual({ amount_micros: 8_999_999_799_999_999n });
  });
});

describe.concurrent('spindle game, blocks and sheet', () => {
  test('spindle shows, suspends and resumes a game, makes blocks, and retires a PAR sheet', async () => {
    const id = String(gameId);
    const shown = await done('game', 'show', id);
    expect(member(shown, 'gameConfigId')).toBe(id);
    expect(member(shown, 'wagerUsd')).toBe('0.25');
    expect(Number(member(shown, 'queue.outcomesReady'))).toBeGreaterThan(0);
    expect(await json('game', 'suspend', id, '--yes')).toMatchObject({
      gameConfigId: gameId,
      status: 'SUSPENDED',
    });
    expect(member(await done('game', 'resume', id), 'status')).toBe('ACTIVE');
    expect(await json('blocks', 'make', id)).toEqual({ gameConfigId: gameId, requested: 1 });
    const { parSheetId } = (await service.operator('GET', `/games/${id}`)).body;
    expect(await json('sheet', 'retire', String(parSheetId), '--yes')).toMatchObject({ status: 'RETIRED' });
    const none = await cli('sheet', 'retire', '2000000000', '--yes');
    expect(none).toMatchObject({ status: 1, error: expect.stringMatching(/^KS-4205 /) });
  });
});

const PRIZES = 'prizeName,prizeTier,valueUsd,count\n';
/** A CSV file with all features of RFC 4180: a BOM, CRLF, quotes, and a comma and a quote in a field. */
const CSV =
  '\ufeffprizeTier,prizeName,valueUsd,count\r\n5,"Gold, ""the"" first",1.10,1\r\n2,Silver,0.300000,3\r\n';
const RAFFLE = ['--name', 'Spring', '--price', '0.5', '--size', '12'];
let names = 0;
const config = (): string[] => ['--config', `R_${names++}`];

describe.concurrent('spindle raffle', () => {
  /** Creates a raffle from a file and waits until the raffle is sealed. */
  async function raffle(...words: string[]): Promise<Json & { gameConfigId: number }> {
    const made = await cli('raffle', 'create', String(partner.partnerId), ...words, '--wait', '--json');
    expect([made.status, made.error]).toEqual([
      0,
      expect.stringMatching(/^Raffle \d+ was created; waiting until its pool is sealed …\n$/),
    ]);
    return JSON.parse(made.out) as Json & { gameConfigId: number };
  }

  const pool = async (id: number) => {
    const answer = await service.partner<Json>('GET', `/games/${id}/pool`, partner.key);
    expect(answer.status).toBe(200);
    return answer;
  };

  test('creates a raffle from CSV, proves its sold pool with verify-pool, and detects tampering', async () => {
    const prizes = file('prizes.csv', CSV);
    const { gameConfigId, poolCommitment } = await raffle(...RAFFLE, ...config(), '--prizes', prizes);
    const sealed = await pool(gameConfigId);
    expect(sealed.body.prizes).toEqual([
      { prizeName: 'Gold, "the" first', prizeTier: 5, valueUsd: 1.1, count: 1 },
      { prizeName: 'Silver', prizeTier: 2, valueUsd: 0.3, count: 3 },
    ]);
    const open = await cli('verify-pool', file('open.json', sealed.text));
    expect(open).toEqual({
      status: 1,
      out: expect.stringMatching(/^NOT PROVEN\n {2}This raffle is still open[^\n]*\n$/),
      error: '',
    });

    for (let ticket = 0; ticket < 12; ticket++) {
      const spun = await service.spin(partner.key, { gameId: gameConfigId, playerId: 'p', wagerUsd: 0.5 });
      expect(spun.status).toBe(200);
    }
    await until(async () => (await pool(gameConfigId)).body.status === 'CLOSED', 'the raffle is closed');
    const shown = await done('raffle', 'show', String(gameConfigId));
    expect(member(shown, 'status')).toBe('CLOSED');
    expect(member(shown, 'ticketsRemaining')).toBe('0');
    expect(member(shown, 'poolCommitment')).toBe(poolCommitment);

    const { text, body } = await pool(gameConfigId);
    const commitment = poolCommitment as string;
    const closed = file('closed.json', text);
    const [proven, alone, piped, stated] = await Promise.all([
      run({}, ['verify-pool', closed, '--commitment', commitment.toUpperCase()]),
      run({}, ['verify-pool', closed]),
      run({}, ['verify-pool', '-'], text),
      run({}, ['verify-pool', closed, '--json', '--commitment', commitment]),
    ]);
    expect([proven.status, proven.error]).toEqual([0, '']);
    expect(proven.out).toMatch(
      new RegExp(
        `^PROVEN: game ${gameConfigId}, 12 tickets, 4 of them winning\n  commitment ${commitment}\n`,
      ),
    );
    expect(proven.out).toContain('so this is the sealed pool');
    expect(alone).toMatchObject({ status: 0, out: expect.stringContaining('Only this comparison proves') });
    expect(piped).toEqual(alone);
    expect(JSON.parse(stated.out)).toEqual({
      isProven: true,
      isAgainstPublished: true,
      gameConfigId,
      poolCommitment,
      faults: [],
    });

    const reveal = body.reveal as { seed: string; nonce: string; order: string };
    const order = Buffer.from(reveal.order, 'base64');
    const codes = Array.from({ length: 12 }, (_, place) => order.readUInt16LE(place * 2));
    const other = codes.findIndex((code) => code !== codes[0]);
    const swapped = Buffer.from(order);
    swapped.writeUInt16LE(codes[other]!, 0);
    swapped.writeUInt16LE(codes[0]!, other * 2);
    const turned = (hex: string): string => (hex[0] === '0' ? '1' : '0') + hex.slice(1);
    const prize = (more: Json): Json[] => [
      { ...(body.prizes as Json[])[0]!, ...more },
      (body.prizes as Json[])[1]!,
    ];
    const tampered: [string, Json, RegExp][] = [
      [
        'order swapped',
        { reveal: { ...reveal, order: swapped.toString('base64') } },
        /the commitment computed from this pool is .*\n.*place 0 has code .* computed from the seed/,
      ],
      ['a count changed', { prizes: prize({ count: 2 }) }, /is on 8 tickets, but the prize table has 7/],
      [
        'a prize more than tickets',
        { prizes: prize({ count: 10 }) },
        /\/prizes have 13 tickets in total, but poolSize is 12/,
      ],
      [
        'seed changed',
        { reveal: { ...reveal, seed: turned(reveal.seed) } },
        /the commitment computed from this pool/,
      ],
      [
        'nonce changed',
        { reveal: { ...reveal, nonce: turned(reveal.nonce) } },
        /the commitment computed from this pool/,
      ],
      [
        'commitment changed',
        { poolCommitment: turned(commitment) },
        /the commitment computed from this pool/,
      ],
      ['prize value changed', { prizes: prize({ valueUsd: 1.2 }) }, /the commitment computed from this pool/],
      ['price changed', { ticketPriceUsd: 0.25 }, /the commitment computed from this pool/],
      ['another game', { gameConfigId: gameConfigId + 1 }, /the commitment computed from this pool/],
      [
        'shape',
        { poolSize: '12', reveal: { ...reveal, seed: `${reveal.seed}zz`, order: 1 } },
        /\/poolSize must be an integer\n[\s\S]*\/reveal\/seed must be 32 bytes[\s\S]*\/reveal\/order must be a string/,
      ],
    ];
    for (const [what, change, found] of tampered) {
      const { faults } = verifyPool({ ...body, ...change });
      expect(faults.join('\n'), what).toMatch(found);
    }
    const path = file('tampered.json', JSON.stringify({ ...body, ...tampered[0]![1] }));
    const { status, out, error } = await run({}, ['verify-pool', path]);
    expect([status, error]).toEqual([1, '']);
    expect(out).toMatch(
      /^NOT PROVEN\n {2}the commitment computed from this pool .*\n {2}place 0 has code .* computed from the seed/,
    );

    // The file contains another valid pool, so only the published commitment reveals that the pool was
    // exchanged.
    const exchanged = await run({}, ['verify-pool', closed, '--commitment', turned(commitment)]);
    expect(exchanged).toMatchObject({
      status: 1,
      out: expect.stringMatching(/^NOT PROVEN\n {2}this is not the sealed pool: [^\n]*\n$/),
    });
    const wrong = [
      ['verify-pool', closed, '--commitment', 'abc'],
      ['verify-pool', join(folder, 'absent.json')],
    ];
    for (const ended of await Promise.all(wrong.map((args) => run({}, args)))) {
      expect(ended).toMatchObject({ status: 2, out: '', error: expect.stringMatching(/^spindle: /) });
    }
    expect(verifyPool(null).faults).toEqual(['The file must be an object']);
  });

  test('spindle raffle create reads prizes or a whole body from JSON, and options override the file', async () => {
    const prizes = [{ prizeName: 'Only', prizeTier: 6, valueUsd: 0.4, count: 12 }];
    const whole = { displayName: 'Autumn', configName: 'AUTUMN', ticketPriceUsd: 3, poolSize: 20, prizes };
    const [array, body] = await Promise.all([
      raffle(...RAFFLE, ...config(), '--prizes', file('prizes.json', JSON.stringify(prizes))),
      raffle('--price', '4.5', '--prizes', file('whole.json', JSON.stringify(whole))),
    ]);
    expect(array).toMatchObject({ displayName: 'Spring', poolSize: 12, minWagerUsd: 0.5 });
    expect(body).toMatchObject({
      displayName: 'Autumn',
      configName: 'AUTUMN',
      poolSize: 20,
      minWagerUsd: 4.5,
    });
    const out = await done(
      ...['raffle', 'create', String(partner.partnerId), ...RAFFLE, ...config()],
      ...['--prizes', join(folder, 'prizes.json')],
    );
    expect(member(out, 'gameType')).toBe('raffle');
    const slot = await cli('raffle', 'show', String(gameId));
    expect(slot).toEqual({ status: 1, out: '', error: `spindle: Game ${gameId} is not a raffle\n` });
  });

  test('spindle raffle create refuses a wrong file and prints each fault with its line', async () => {
    const wrong = file('wrong.csv', `${PRIZES}Gold,9,1.5,1\nSilver,two,0.1,1\n`);
    const refused = await cli(
      'raffle',
      'create',
      String(partner.partnerId),
      ...RAFFLE,
      ...config(),
      '--prizes',
      wrong,
    );
    expect(refused).toEqual({
      status: 1,
      out: '',
      error: [
        'spindle: The raffle was not created',
        `  ${wrong}:2: prizeTier must be <= 6`,
        `  ${wrong}:3: prizeTier must be a decimal number, not «two»\n`,
      ].join('\n'),
    });
    const [absent, incomplete] = await Promise.all([
      cli('raffle', 'create', '1', ...RAFFLE, ...config(), '--prizes', 'absent.csv'),
      cli('raffle', 'create', '1', '--size', '12', '--prizes', file('right.csv', CSV)),
    ]);
    expect(absent).toMatchObject({
      status: 2,
      error: expect.stringMatching(/^spindle: Cannot read absent\.csv: /),
    });
    expect(incomplete).toMatchObject({
      status: 2,
      error:
        'spindle: Missing values. Add them to the file, or use these options: --name, --config, --price\n',
    });
  });
});

describe.concurrent('the connection of spindle to the service', () => {
  test('spindle takes the address and the key from options, the settings or the data folder', async () => {
    const { port } = new URL(service.base);
    mkdirSync(join(folder, '.data'), { recursive: true });
    file('.data/operator-api-key', `${OPERATOR_KEY}\n`);
    const keyFile = ['--key-file', file('own-key', `${OPERATOR_KEY}\n`)];
    const wrongKey = { OPERATOR_API_KEY: 'a-key-that-nobody-has' };
    const list = ['partner', 'list'];
    const ended = await Promise.all([
      run({ PORT: port }, list),
      run({ PORT: port, HOST: '0.0.0.0' }, list),
      run({ PORT: '1', SPINDLE_URL: `${service.base}/` }, list),
      run({ PORT: '1', ...wrongKey }, [...list, '--url', service.base, ...keyFile]),
      run({ PORT: port, ...wrongKey }, list),
    ]);
    expect(ended.map(({ status }) => status)).toEqual([0, 0, 0, 0, 1]);
    expect(ended[4]!.error).toBe('KS-4002 The API key is not valid\n');
  });

  test('spindle names the address of a server that is unreachable or does not answer like the service, and exits with 1', async () => {
    const server = createServer((_, response) => response.writeHead(502).end('<html>'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const elsewhere = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const key = ['--key-file', file('key', OPERATOR_KEY)];
    const adjustment = ['adjust', '1', 'p', '--amount', '1', '--reason', 'r', '--yes'];
    const [away, strange, unknown, repeated] = await Promise.all([
      run({}, ['partner', 'list', '--url', 'http://127.0.0.1:1', ...key]),
      run({}, ['partner', 'list', '--url', elsewhere, ...key]),
      run({}, [...adjustment, '--url', 'http://127.0.0.1:1', ...key]),
      run({}, [...adjustment, '--url', elsewhere, ...key, '--request-id', 'again']),
    ]);
    server.close();
    expect(away).toEqual({
      status: 1,
      out: '',
      error:
        'spindle: The service at http://127.0.0.1:1 is not responding: connect ECONNREFUSED 127.0.0.1:1\n  If the address is wrong, set SPINDLE_URL or use --url\n',
    });
    expect(strange).toMatchObject({
      status: 1,
      error: expect.stringContaining(`${elsewhere} answers with HTTP 502`),
    });
    // A request without an answer can be repeated, because its request id was printed before it was sent.
    const requestId = /^request id ([0-9a-f-]{36})\n/.exec(unknown.error)?.[1];
    expect(unknown.error).toContain(
      `\nIt is unknown whether the balance changed. Repeat the command with --request-id '${requestId}', which changes the balance only once.\n`,
    );
    expect([unknown.status, repeated.status]).toEqual([1, 1]);
    expect(repeated.error).toMatch(/^request id again\n/);
  });

  test('spindle exits with 2 on wrong usage, and never prints a key', async () => {
    const strange = file('strange-key', 'secret\u00e4\n');
    const wrong: [string[], RegExp][] = [
      [['partner', 'bogus'], /unknown command 'bogus'/],
      [['partner', 'show'], /missing required argument 'PARTNER'/],
      [['partner', 'show', 'X'], /PARTNER must be the id or slug of a partner/],
      [['partner', 'update', '1'], /Nothing to update/],
      [['partner', 'update', '1', '--funding', '0.0000001'], /at most 6 decimals/],
      [['partner', 'update', '1', '--funding', '8999999999.999999'], /more digits than the service/],
      [['adjust', '1', 'p', '--amount', '1,5', '--reason', 'r'], /amount in USD/],
      [
        ['partner', 'list', '--url', 'http://user:secret@127.0.0.1'],
        /must not contain a user, query or fragment/,
      ],
      [['partner', 'list', '--url', 'ftp://x'], /not an http:\/\/ or https:\/\/ address/],
      [['partner', 'list', '--key-file', 'absent'], /Cannot read the operator key from absent\n/],
      [['partner', 'list', '--key-file', strange], /invalid characters\. Check the key\.\n$/],
    ];
    await Promise.all(
      wrong.map(async ([args, message]) => {
        const { status, out, error } = await cli(...args);
        expect([args, status, out]).toEqual([args, 2, '']);
        expect(error).toMatch(message);
        expect(error).toMatch(/^spindle: /);
        expect(error).not.toContain('secret');
      }),
    );
  });
});

test.concurrent('spindle prints help at each level, and its version', async () => {
  const [top, group, leaf, none, version, document] = await Promise.all([
    done('--help'),
    done('raffle', '--help'),
    done('raffle', 'create', '--help'),
    cli(),
    done('--version'),
    json<{ paths: Json }>('openapi'),
  ]);
  for (const line of [
    'overview +show the traffic of today',
    'partner COMMAND +partners and their settings: create, list, show,$',
    'key COMMAND +API keys of a partner: issue, list, rotate, update,$',
    'adjust PARTNER PLAYER_ID ',
    'program COMMAND ',
    'verify-pool FILE ',
    'show COMMAND ',
    'recover ',
  ])
    expect(top).toMatch(new RegExp(`^  ${line}`, 'm'));
  expect(group).toMatch(/raffle create PARTNER/);
  expect(leaf.match(/^ {2}spindle raffle create /gm)).toHaveLength(2);
  expect(none).toMatchObject({ status: 2, error: top });
  const { version: is } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  expect(version).toBe(`spindle ${is}\n`);
  expect(document.paths).toHaveProperty(['/partners/{id}']);
});

// This test runs alone, because the audit log also contains changes made by concurrent tests.
describe('spindle audit-log', () => {
  test('spindle audit-log prints the entries in pages, with what was changed', async () => {
    const { partnerId } = await service.newPartner();
    await service.operator('PATCH', `/partners/${partnerId}`, { spinRateLimit: 5 });
    const page = await done('audit-log', '--limit', '2');
    const lines = page.split('\n');
    expect(lines[0]).toMatch(/^ *id {2}at +actor +action +subject +change$/);
    expect(lines[1]).toMatch(
      new RegExp(`  operator  partner\\.update +partner:${partnerId} +spinRateLimit 1000000000 → 5$`),
    );
    expect(lines[3]).toMatch(/^page 1 of \d+, \d+ entries$/);
    const second = await json<{ entries: Json[] }>('audit-log', '--page', '2', '--limit', '1');
    expect(second).toMatchObject({ page: 2, limit: 1, entries: [{ action: 'key.issue' }] });
    expect(await cli('audit-log', '--limit', '101')).toMatchObject({
      status: 1,
      error: expect.stringMatching(/^KS-4101 .*\n {2}\/limit /),
    });
  });
});
