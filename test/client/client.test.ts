/**
 * Tests the partners' client against a running service under faults: each spin happens once, and the client
 * reports the actual error.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Round, type SpinAttempt, Spindle, verifyWebhook } from '../../clients/typescript/src/index.js';
import { freePort } from '../../src/app/embedded/index.js';
import { world } from '../setup/world.js';
import type { TestPartner } from '../support/client.js';
import { type Cable, proxy } from '../support/proxy.js';
import { startReceiver } from '../support/receiver.js';
import { ROOT } from '../support/root.js';
import { newTable, WAGER_USD } from '../support/rounds.js';
import { startService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import { until } from '../support/wait.js';

/** Deadline in ms that suffices for a spin on a busy machine, but is shorter than the client's timeout. */
const SPIN_DEADLINE_MS = '1000';

const { stores } = world();
let service: Awaited<ReturnType<typeof startService>>;
let partner: TestPartner;
let gameId: number;
/** Proxy between the service and Redis. */
let redis: Cable;
/** Proxy between the client and the service. */
let wire: Cable;
let client: Spindle;

beforeAll(async () => {
  redis = await proxy(stores.redisUrl);
  service = await startService({ ...stores, redisUrl: redis.url }, { CELLS: '1', SPIN_DEADLINE_MS });
  partner = await service.newPartner();
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  wire = await proxy(service.base);
  client = new Spindle({ baseUrl: wire.url, apiKey: partner.key, timeoutMs: 3000, deadlineMs: 60_000 });
});
afterAll(async () => {
  await service.stop();
  await Promise.all([redis.close(), wire.close()]);
});

/**
 * Spins once, and returns the result with the reported attempts.
 * @param mend called before the second attempt
 */
async function spun(
  playerId: string,
  mend: () => unknown = () => {},
  by = client,
  game = gameId,
  wagerUsd = 0.25,
) {
  const attempts: SpinAttempt[] = [];
  const onAttempt = async (attempt: SpinAttempt): Promise<void> => {
    attempts.push(attempt);
    if (attempt.attempt === 2) await mend();
  };
  const result = await by.spin({ gameId: game, playerId, wagerUsd }, { onAttempt }).catch((error) => error);
  return { result, attempts, ids: new Set(attempts.map(({ requestId }) => requestId)).size };
}

const spinsOf = async (playerId: string): Promise<string[]> => {
  const ids: string[] = [];
  for await (const { spinId } of client.playerSpins(playerId)) ids.push(spinId);
  return ids;
};
const isBooked = (playerId: string, spins: number) =>
  until(async () => (await spinsOf(playerId)).length >= spins, `${spins} spins of ${playerId} are listed`);

describe('spins by the client under faults', () => {
  test('the client spins once if the connection ends before the answer', async () => {
    void wire.cutAfter('answers', 20);
    const { result, attempts, ids } = await spun('cut');
    expect(attempts.map(({ after }) => (after as Error | undefined)?.name)).toEqual([
      undefined,
      'NoAnswerError',
    ]);
    expect(ids).toBe(1);
    await isBooked('cut', 1);
    expect(await spinsOf('cut')).toEqual([result.spinId]);
  });

  test('the client spins once if the answer does not arrive in time', async () => {
    wire.answers = false;
    const { result, attempts, ids } = await spun('late', () => {
      wire.answers = true;
      wire.cut();
    });
    expect((attempts[1]!.after as Error).message).toContain('no response within 3 s');
    expect(ids).toBe(1);
    await isBooked('late', 1);
    expect(await spinsOf('late')).toEqual([result.spinId]);
  });

  test("the client spins once if the service can't tell whether the spin happened (KS-4110)", async () => {
    redis.hold();
    const { result, attempts, ids } = await spun('held', () => redis.release());
    expect(attempts[1]!.after).toMatchObject({ code: 'KS-4110' });
    expect(ids).toBe(1);
    await isBooked('held', 1);
    expect(await spinsOf('held')).toEqual([result.spinId]);
  });

  test('the client retries a spin refused for lack of funding (KS-5011) with the same requestId', async () => {
    const { partnerId, key } = await service.newPartner({ fundingUsd: 0 });
    const game = await service.newGame(key, parSheet('classic-3-reel'));
    const poor = new Spindle({ baseUrl: service.base, apiKey: key });
    const fund = () => service.operator('PATCH', `/partners/${partnerId}`, { fundingUsd: 1e6 });
    const { result, attempts, ids } = await spun('poor', fund, poor, game);
    expect(attempts[1]!.after).toMatchObject({ code: 'KS-5011' });
    expect(ids).toBe(1);
    expect(result.requestId).toBe(attempts[0]!.requestId);
  });

  test('the client never retries a spin once a raffle is closed (KS-4218)', async () => {
    const prizes = [{ prizeName: 'Prize', prizeTier: 1, valueUsd: 1, count: 1 }];
    const terms = { ticketPriceUsd: 1, poolSize: 1, prizes };
    const raffle = await service.api.newRaffle(partner.partnerId, 'only-ticket', terms);
    expect((await spun('winner', undefined, client, raffle, 1)).result).toMatchObject({
      outcome: { payoutUsd: 1 },
    });
    const { result, attempts } = await spun('loser', undefined, client, raffle, 1);
    expect(result).toMatchObject({ name: 'SpindleError', code: 'KS-4218', retry: 'never', status: 410 });
    expect(attempts).toHaveLength(1);
  });
});

test('the client deals a blackjack round once and makes each action once, even if answers are lost', async () => {
  const table = await newTable(service, partner.partnerId);
  const { blackjack } = client;
  const faults: Record<string, () => void> = {
    cut: () => void wire.cutAfter('answers', 20),
    reset: () => void wire.cutAfter('answers', 20, true),
    // The replies of Redis are held until the client sends its second request. So the service can't tell the
    // first request whether the deal or action happened.
    held: () => {
      let requests = 0;
      redis.hold();
      wire.onRequest = () => void (++requests === 2 && redis.release());
    },
  };
  for (const [name, strike] of Object.entries(faults)) {
    let round: Round | undefined;
    let playerId = '';
    // The deal is repeated with a new round until the player can act, because a natural blackjack ends a
    // round at once.
    for (let seat = 0; round?.status !== 'OPEN'; seat++) {
      playerId = `${name}-${seat}`;
      strike();
      round = await blackjack.deal({ gameId: table, playerId, wagerUsd: WAGER_USD });
      const listed: string[] = [];
      for await (const { roundId } of blackjack.rounds({ playerId })) listed.push(roundId);
      expect(listed).toEqual([round.roundId]);
    }
    expect(await blackjack.resume(playerId, table)).toMatchObject({ roundId: round.roundId, status: 'OPEN' });
    const actions: string[] = [];
    while (round.status === 'OPEN') {
      const legal: string[] = round.legalActions.map(({ action }) => action);
      const hand = round.hands[round.activeHand ?? 0]!;
      const wanted = ['noInsurance', hand.total < 12 ? 'hit' : 'stand'];
      const action = wanted.find((each) => legal.includes(each)) as 'stand';
      strike();
      round = { ...round, ...(await blackjack.act(round, action)) };
      actions.push(action);
    }
    const { status, payoutUsd } = round;
    expect(await blackjack.get(round.roundId)).toMatchObject({ status, payoutUsd, actions });
    expect(await blackjack.resume(playerId)).toBeUndefined();
    wire.disarm();
    wire.onRequest = () => {};
  }
});

test('the client lists every item once over all pages', async () => {
  const patient = new Spindle({ baseUrl: service.base, apiKey: partner.key });
  await Promise.all(
    Array.from({ length: 210 }, () => patient.spin({ gameId, playerId: 'many', wagerUsd: 0.25 })),
  );
  await isBooked('many', 210);
  const listed = await spinsOf('many');
  expect(new Set(listed).size).toBe(210);
  const byTime: string[] = [];
  for await (const { spinId } of client.spins({ playerId: 'many' })) byTime.push(spinId);
  expect(byTime).toEqual(listed.reverse());
});

test('the client verifies a real webhook delivery, and finds its event in the feed', async () => {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const { key } = await service.newPartner({ largeWinThresholdUsd: 0 });
  const own = new Spindle({ baseUrl: service.base, apiKey: key });
  const gameId = await service.newGame(key, parSheet('classic-3-reel'));
  const { secret } = await own.registerWebhook({ url: receiver.url(), events: ['spin.large_win'] });
  await until(async () => {
    await own.spin({ gameId, playerId: 'winner', wagerUsd: 0.25 });
    return receiver.received.length > 0;
  }, 'an event arrives');
  const { bytes, headers } = receiver.received[0]!;
  const event = await verifyWebhook({ body: bytes, headers, secret });
  expect(event).toMatchObject({ event: 'spin.large_win' });
  const feed: string[] = [];
  for await (const each of own.events()) feed.push(each.id);
  expect(feed).toContain(event.id);
});

test('a test of a webhook returns the ids under which its event is delivered and listed', async () => {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const { key } = await service.newPartner();
  const { webhooks } = new Spindle({ baseUrl: service.base, apiKey: key });
  const { id, secret } = await webhooks.register({ url: receiver.url(), events: ['spin.large_win'] });
  const { eventId, deliveryId } = await webhooks.test(id, 'spin.large_win');
  await until(() => receiver.received.length > 0, 'the test event arrives');
  const { bytes, headers } = receiver.received[0]!;
  expect((await verifyWebhook({ body: bytes, headers, secret })).id).toBe(eventId);
  const listed: string[] = [];
  for await (const delivery of webhooks.deliveries(id)) listed.push(delivery.id);
  expect(listed).toEqual([deliveryId]);
  expect(await webhooks.resend(id, deliveryId)).toEqual({ resent: 1 });
});

test('the program of the quick start receives a verified webhook exactly as printed', async () => {
  const page = readFileSync(join(ROOT, 'docs', 'quick-start.md'), 'utf8');
  const port = String(await freePort());
  const built = join(ROOT, 'dist', 'clients', 'typescript', 'src');
  const program = /```js\n([\s\S]*?)```/
    .exec(page)![1]!
    .replace("'@spindle/client'", `'${built}/index.js'`)
    .replace("'@spindle/client/webhooks'", `'${built}/webhooks.js'`)
    .replace('https://spindle.example.com', service.base)
    .replaceAll('9000', port);
  const { key } = await service.newPartner({ largeWinThresholdUsd: 0.4 });
  await service.newGame(key, parSheet('classic-3-reel'));
  const env = { PATH: process.env.PATH, KEY: key };
  const args = ['--input-type=module', '--eval', program];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { env });
  expect(stderr).toBe('');
  expect(stdout).toMatch(/^paid \d/);
  expect(stdout).toMatch(/event: 'spin\.large_win'/);
  const { body } = await service.partner<{ webhooks: unknown[] }>('GET', '/webhooks', key);
  expect(body.webhooks).toEqual([]);
});
