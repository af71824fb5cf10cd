/**
 * Tests the commands that find what a player says: statements and the audit log by time and as CSV, and
 * requests by their request id, and reviews of returns. The built program runs against a service.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { beforeAll, expect, test } from 'vitest';
import { world } from '../setup/world.js';
import { OPERATOR_KEY } from '../support/client.js';
import { cliOf, ROOT } from '../support/root.js';
import { parSheet } from '../support/sheets.js';

const { stores, service } = world();
let partnerId: number;
let key: string;
let gameId: number;

beforeAll(async () => {
  ({ partnerId, key } = await service.newPartner({ slug: 'acme', openingBalanceUsd: 100 }));
  gameId = await service.newGame(key, parSheet('classic-3-reel'));
});

/** @throws Error if the command does not exit with 0 */
const cli = async (...args: string[]): Promise<string> =>
  (
    await promisify(execFile)(process.execPath, [cliOf(ROOT), ...args], {
      env: { PATH: process.env.PATH, SPINDLE_URL: service.base, OPERATOR_API_KEY: OPERATOR_KEY },
    })
  ).stdout;

const dayFromNow = (days: number): string =>
  new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);

test('spindle player statement shows the entries of some days or times, also as CSV', async () => {
  for (const requestId of ['first', '=second'])
    expect((await service.spin(key, { gameId, playerId: 'alice', wagerUsd: 0.25, requestId })).status).toBe(
      200,
    );
  const statement = ['player', 'statement', 'acme', 'alice'];
  const whole = await cli(...statement, '--from', dayFromNow(-1), '--to', dayFromNow(1));
  expect(whole.match(/Z +(opening|spin) /g)).toHaveLength(3);
  expect(whole).not.toContain('archive');
  expect(await cli(...statement, '--to', dayFromNow(-1))).toMatch(/^none$/m);
  expect(await cli(...statement, '--from', dayFromNow(1))).toMatch(/^none$/m);
  const csv = await cli(...statement, '--csv', '--from', dayFromNow(-1));
  const rows = csv.split('\r\n');
  expect(rows[0]).toBe('entryId,kind,createdAt,gameId,wagerUsd,creditUsd,balanceUsd,requestId,spinId');
  expect(rows).toHaveLength(5);
  expect(rows[1]).toContain(`"'=second"`);
  await expect(cli(...statement, '--from', 'soon')).rejects.toThrow(/KS-4101[\s\S]*\/from/);
});

test('spindle audit-log lists the entries of some days or times, also as CSV', async () => {
  const log = ['audit-log', '--action', 'partner.create'];
  expect(await cli(...log, '--from', dayFromNow(-1), '--to', dayFromNow(1))).toMatch(
    new RegExp(` partner:${partnerId} `),
  );
  expect(await cli(...log, '--to', dayFromNow(-1))).toMatch(/^page 1 of 1, 0 entries$/m);
  const rows = (await cli(...log, '--csv')).split('\r\n');
  expect(rows[0]).toBe('auditId,at,actor,action,subject,before,after,hash');
  expect(rows[1]).toContain(`"partner.create","partner:${partnerId}",,"{`);
});

test('spindle request find shows the spin, round or adjustment that has a request id', async () => {
  const requestId = 'lost spin';
  const { body } = await service.spin(key, { gameId, playerId: 'bob', wagerUsd: 0.25, requestId });
  const spin = await cli('request', 'find', 'acme', requestId);
  expect(spin).toMatch(/^Spin\npartnerId /);
  expect(spin).toMatch(new RegExp(`^spinId +${body.spinId}$`, 'm'));
  expect(spin).toMatch(/^entry\.kind +spin$/m);
  await cli('adjust', 'acme', 'bob', '--amount', '2.5', '--reason', 'a test', '--request-id', 'adjust-bob');
  const adjustment = await cli('request', 'find', 'acme', 'adjust-bob');
  expect(adjustment).toMatch(/^Adjustment\nplayerId +bob$/m);
  expect(adjustment).toMatch(/^amountUsd +2\.50$/m);
  await expect(cli('request', 'find', 'acme', 'never')).rejects.toThrow(/Nothing has this request id\./);
});

test('spindle webhooks lists the deliveries of a partner with a status', async () => {
  for (const status of ['pending', 'delivered', 'failed'])
    expect(await cli('webhooks', 'deliveries', '--status', status, '--partner', 'acme')).toMatch(
      /\nnone\npage 1 of 1, 0 deliveries\n$/,
    );
});

test('spindle review lists and shows reviews of returns, adds notes, and closes a review once', async () => {
  const sql = postgres(stores.databaseUrl, { max: 1 });
  const [opened] = await sql<{ review_id: number }[]>`
    INSERT INTO rtp_reviews (game_id, span, opened_at, opened_day)
    VALUES (${gameId}, 'ROLLING_30', now(), now()::date) RETURNING review_id`;
  await sql.end();
  const id = String(opened!.review_id);
  expect(await cli('review', 'list', '--status', 'open', '--game', String(gameId))).toMatch(
    new RegExp(`^ *${id} +${gameId} +ROLLING_30 +\\S+Z +OPEN +- +- +0\\npage 1 of 1, 1 reviews$`, 'm'),
  );
  const noted = await cli('review', 'note', id, '--text', 'asked the supplier');
  expect(noted).toMatch(/Z +operator +asked the supplier$/m);
  const close = ['review', 'close', id, '--finding', 'game-error', '--text', 'a wrong strip'];
  await expect(cli(...close)).rejects.toThrow(/Nothing has changed yet; add --yes to confirm/);
  expect(await cli('review', 'show', id)).toMatch(/^status +OPEN$/m);
  const closed = await cli(...close, '--yes');
  expect(closed).toMatch(/^status +CLOSED$/m);
  expect(closed).toMatch(/^finding +GAME_ERROR$/m);
  expect(await cli('review', 'show', id)).toBe(closed);
  expect(closed).toMatch(/ asked the supplier\n.* a wrong strip\n$/);
  expect(await cli('review', 'list', '--status', 'open')).toMatch(/^none$/m);
  await expect(cli(...close, '--yes')).rejects.toThrow(/KS-4101[\s\S]*already closed/);
  await expect(cli('review', 'show', '2000000000')).rejects.toThrow(/KS-4215/);
  await expect(cli('review', 'close', id, '--finding', 'luck', '--text', 'x')).rejects.toThrow(
    /It must be chance or game-error or data-error/,
  );
});
