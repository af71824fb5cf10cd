/**
 * Tests the commands that ask before they do harm: what they show, that they change nothing without an
 * answer, and that `--yes` answers in advance. The built program runs against a service.
 */
import { expect, test } from 'vitest';
import { world } from '../setup/world.js';
import { command } from '../support/command.js';
import { parSheet } from '../support/sheets.js';
import { until } from '../support/wait.js';

const { service } = world();

/** Runs the command without a terminal. */
const cli = (...args: string[]) => command(service, ...args);

/** Expects that a command refuses because nobody can answer its question, and returns the question. */
async function refused(...args: string[]): Promise<string> {
  const { status, out, error } = await cli(...args);
  expect([args, status, out]).toEqual([args, 2, '']);
  expect(error).toMatch(/^spindle: [\s\S]* Nothing has changed yet; add --yes to confirm\.\n$/);
  return error;
}

const adjust = (slug: string, playerId: string, amount: string, ...more: string[]): string[] => [
  ...['adjust', slug, playerId, '--amount', amount, '--reason', 'a test'],
  ...more,
];

test('spindle adjust asks before it creates a player, and --yes creates the player', async () => {
  const { key } = await service.newPartner({ slug: 'typing', openingBalanceUsd: 1000 });
  expect(await refused(...adjust('typing', 'alcie', '5'))).toContain(
    'Partner typing has no player «alcie». The adjustment will create this player, with the opening balance of 1000.00 USD in addition. This will give 5.00 USD at once.',
  );
  expect((await service.partner('GET', '/players/alcie', key)).status).toBe(404);
  expect(await cli(...adjust('typing', 'alcie', '5', '--yes'))).toMatchObject({
    status: 0,
    out: expect.stringMatching(/^balanceUsd +1005\.00$/m),
  });
});

test('spindle adjust asks about amounts of more than 1000 USD, and about no smaller amount', async () => {
  const { key } = await service.newPartner({ slug: 'amounts', openingBalanceUsd: 100 });
  const gameId = await service.newGame(key, parSheet('classic-3-reel'));
  await service.spin(key, { gameId, playerId: 'alice', wagerUsd: 0.25 });
  const balance = async () =>
    (await service.partner<{ balanceUsd: number }>('GET', '/players/alice', key)).body.balanceUsd;
  const before = await balance();
  for (const [amount, what] of [
    ['1000.000001', 'give 1000.000001'],
    ['-1000.01', 'take 1000.01'],
  ] as const) {
    const question = await refused(...adjust('amounts', 'alice', amount));
    expect(question).toContain(
      `Player «alice» of partner amounts has ${before.toFixed(2)} USD. This will ${what} USD`,
    );
    expect(question).toContain('Check the amount and the player.');
  }
  expect(await balance()).toBe(before);
  expect((await cli(...adjust('amounts', 'alice', '1000'))).status).toBe(0);
  expect((await cli(...adjust('amounts', 'alice', '-1000.5', '--yes'))).status).toBe(0);
  expect(await balance()).toBeCloseTo(before - 0.5, 6);
});

test('spindle partner asks before it deactivates a partner or stops its dealing', async () => {
  const { partnerId } = await service.newPartner({ slug: 'harmed', name: 'Harmed Games' });
  const now = async () =>
    (await service.operator<Record<string, unknown>>('GET', `/partners/${partnerId}`)).body;
  const named = `This affects the sandbox partner harmed (Harmed Games, id ${partnerId}). `;
  const keys = `${named}All requests with the partner's keys are refused`;
  expect(await refused('partner', 'deactivate', 'harmed')).toContain(keys);
  expect(await refused('partner', 'update', 'harmed', '--active', 'false')).toContain(keys);
  expect(await refused('partner', 'update', 'harmed', '--dealing', 'off')).toContain(
    `${named}Within a second the partner's spins, tickets and deals are refused`,
  );
  expect(await now()).toMatchObject({ isActive: true, dealing: 'ON' });
  expect((await cli('partner', 'update', 'harmed', '--dealing', 'off', '--yes')).status).toBe(0);
  expect((await cli('partner', 'deactivate', 'harmed', '--yes')).status).toBe(0);
  expect(await now()).toMatchObject({ isActive: false, dealing: 'OFF' });
  // These changes let the partner play again, so the command does not ask.
  expect((await cli('partner', 'update', 'harmed', '--active', 'true', '--dealing', 'on')).status).toBe(0);
});

test('spindle dealing asks before it stops all games, and resumes them without a question', async () => {
  const dealing = async () => (await service.operator<{ state: string }>('GET', '/dealing')).body.state;
  expect(await refused('dealing', 'off', '--reason', 'a test')).toContain(
    'Stop dealing for all partners? Within a second all spins, tickets and deals of all partners are refused',
  );
  expect(await dealing()).toBe('ON');
  expect((await cli('dealing', 'off', '--reason', 'a test', '--yes')).status).toBe(0);
  expect(await dealing()).toBe('OFF');
  expect((await cli('dealing', 'on', '--reason', 'a test')).status).toBe(0);
});

test('spindle raffle void shows the partner, the tickets and the refund before it asks', async () => {
  const { partnerId, key } = await service.newPartner({ slug: 'fair', name: 'Fair Games' });
  const prizes = [{ prizeName: 'Car', prizeTier: 6, valueUsd: 2, count: 1 }];
  const raffle = { displayName: 'Spring', configName: 'SPRING', ticketPriceUsd: 0.5, poolSize: 12, prizes };
  const made = await service.operator<{ gameConfigId: number }>(
    'POST',
    `/partners/${partnerId}/raffles`,
    raffle,
  );
  const id = made.body.gameConfigId;
  const game = async () =>
    (await service.operator<{ status: string; ticketsRemaining: number }>('GET', `/games/${id}`)).body;
  await until(async () => (await game()).status === 'ACTIVE', 'the raffle is open');
  for (let ticket = 0; ticket < 3; ticket++)
    expect((await service.spin(key, { gameId: id, playerId: 'p', wagerUsd: 0.5 })).status).toBe(200);
  const command = ['raffle', 'void', 'fair/SPRING', '--reason', 'a test'];
  const question = await refused(...command);
  for (const line of [
    `raffle +Spring \\(SPRING, id ${id}\\)`,
    `partner +fair \\(Fair Games, id ${partnerId}\\)`,
    'ticketsSold +3 of 12',
    'ticketPriceUsd +0\\.50',
    'refundUsd +1\\.50',
  ])
    expect(question).toMatch(new RegExp(`${line}\n`));
  expect((await game()).status).toBe('ACTIVE');
  expect(await cli(...command, '--yes', '--wait')).toMatchObject({
    status: 0,
    out: expect.stringMatching(/^refundedUsd +1\.50$/m),
  });
  // The raffle is void already, so repeating the command only shows the progress.
  expect(await cli(...command)).toMatchObject({ status: 0, out: expect.stringMatching(/^isDone +true$/m) });
});

test('spindle settlement make shows what differs from the disputed report, and records the answer', async () => {
  const { partnerId, key } = await service.newPartner({ slug: 'disputing' });
  const gameId = await service.newGame(key, parSheet('classic-3-reel'));
  const day = new Date().toISOString().slice(0, 10);
  const spin = () => service.spin(key, { gameId, playerId: 'alice', wagerUsd: 0.25 });
  const path = `/partners/${partnerId}/settlements/${day}`;
  const previewed = async () =>
    (
      await service.operator<{ report: { totalSpins: number }; disputed: object | null }>(
        'GET',
        `${path}/preview`,
      )
    ).body;
  await spin();
  await until(async () => (await previewed()).report.totalSpins === 1, 'the first spin is committed');
  expect((await cli('settlement', 'make', 'disputing', day)).status).toBe(0);
  expect((await previewed()).disputed).toBeNull();
  const dispute = { reason: 'We count 2 spins' };
  expect((await service.partner('POST', `/settlements/${day}/dispute`, key, dispute)).status).toBe(200);
  await spin();
  await until(async () => (await previewed()).report.totalSpins === 2, 'the second spin is committed');

  const without = await cli('settlement', 'make', 'disputing', day, '--yes');
  expect(without).toMatchObject({
    status: 2,
    error: expect.stringContaining('Revision 1 is disputed: «We count 2 spins». Add --reason TEXT'),
  });
  const command = ['settlement', 'make', 'disputing', day, '--reason', 'the second spin was late'];
  const question = await refused(...command);
  expect(question).toMatch(/^figure +disputed revision 1 +new revision 2$/m);
  expect(question).toMatch(/^spins +1 +2$/m);
  expect(question).toMatch(/^wagered USD +0\.25 +0\.50$/m);
  // A figure that stays the same is not shown.
  expect(question).not.toMatch(/^adjustments/m);
  const newest = async () =>
    (await service.operator<{ revision: number; reportStatus: string }>('GET', path)).body;
  expect(await newest()).toMatchObject({ revision: 1, reportStatus: 'DISPUTED' });
  expect((await cli(...command, '--yes')).status).toBe(0);
  expect(await newest()).toMatchObject({ revision: 2, totalSpins: 2 });
  const { body } = await service.operator<{ entries: unknown[] }>(
    'GET',
    '/audit-log?action=settlement.generate&limit=1',
  );
  expect(body.entries).toMatchObject([{ after: { revision: 2, reason: 'the second spin was late' } }]);
  expect((await previewed()).disputed).toBeNull();
});

test('spindle key rotate keeps the replaced key for an overlap, and update asks before it changes when a key ends', async () => {
  const { partnerId } = await service.newPartner({ slug: 'rotating' });
  const made = await service.operator<{ keyId: number; apiKey: string }>(
    'POST',
    `/partners/${partnerId}/keys`,
    { name: 'back end' },
  );
  const keyId = String(made.body.keyId);
  const rotated = await cli('key', 'rotate', 'rotating', keyId, '--overlap', '90m', '--json');
  expect(rotated.status, rotated.error).toBe(0);
  const { apiKey, replacedExpiresAt } = JSON.parse(rotated.out);
  expect(rotated.error).toContain(`Key ${keyId} is valid until ${replacedExpiresAt}.`);
  for (const key of [apiKey, made.body.apiKey])
    expect((await service.partner('GET', '/version', key)).status).toBe(200);
  expect((await cli('key', 'rotate', 'rotating', keyId, '--overlap', '24')).status).toBe(2);
  const update = ['key', 'update', 'rotating', keyId, '--expires'];
  expect(await refused(...update, '2099-01-01T00:00:00Z')).toContain(
    `Change the end of key ${keyId} of partner ${partnerId} (rotating)? All requests with this key are refused from 2099-01-01T00:00:00Z on.`,
  );
  expect((await cli(...update, '2099-01-01T00:00:00Z', '--yes')).out).toMatch(
    /^expiresAt +2099-01-01T00:00:00\.000Z$/m,
  );
  expect(await refused(...update, 'none')).toContain(
    `Remove the end of key ${keyId} of partner ${partnerId} (rotating)? This key will never expire.`,
  );
  expect((await cli(...update, 'none', '--yes')).out).toMatch(/^expiresAt +-$/m);
});

test('spindle game suspend asks before plays are refused, and resumes without a question', async () => {
  const { key } = await service.newPartner({ slug: 'stopping' });
  const gameId = await service.newGame(key, parSheet('classic-3-reel'));
  const status = async () => (await service.operator('GET', `/games/${gameId}`)).body.status;
  expect(await refused('game', 'suspend', String(gameId))).toContain(
    `Suspend game ${gameId}? All plays of this game are refused`,
  );
  expect(await status()).toBe('ACTIVE');
  expect((await cli('game', 'suspend', String(gameId), '--yes')).status).toBe(0);
  expect(await status()).toBe('SUSPENDED');
  expect((await cli('game', 'resume', String(gameId))).status).toBe(0);
});

test('spindle communal fund asks with the present budget, and the overview counts a progressive without a budget', async () => {
  const { key } = await service.newPartner({ slug: 'funding' });
  const gameId = await service.newGame(key, parSheet('classic-3-reel'));
  const tiers = [{ tierLevel: 1, tierName: 'One', triggerAtSpins: 100, amountUsd: '5.00' }];
  const rules = { enabled: true, triggerInterval: 10, triggerSplitPct: 100, communitySplitPct: 0, tiers };
  expect((await service.operator('PUT', `/games/${gameId}/communal`, rules)).status).toBe(200);
  const exhausted = async () =>
    (await service.operator<{ attention: { exhaustedProgressives: number } }>('GET', '/overview')).body
      .attention.exhaustedProgressives;
  const listed = async () =>
    (
      await service.operator<{ progressives: { gameConfigId: number; status: string }[] }>(
        'GET',
        '/progressives',
      )
    ).body.progressives.find(({ gameConfigId }) => gameConfigId === gameId)!.status;
  await until(async () => (await exhausted()) === 1, 'the progressive without a budget is counted');
  expect(await listed()).toBe('EXHAUSTED');
  const fund = ['communal', 'fund', String(gameId), '--reason', 'a test', '--amount'];
  expect(await refused(...fund, '2000000')).toContain(
    `This will add 2000000 USD to the budget of the communal progressive of game ${gameId}, which is 0.00 USD now.`,
  );
  expect(await refused(...fund, '-5')).toContain('This will take 5 USD from the budget');
  expect((await cli(...fund, '5', '--yes')).status).toBe(0);
  await until(async () => (await exhausted()) === 0, 'the funded progressive needs no attention');
  expect(await listed()).toBe('ACTIVE');
});
