/**
 * Tests e-mails sent from the outbox to a real SMTP server: one for each cause, stored while the server is
 * down, and marked as unsent if there is no server.
 */
import type { AddressInfo } from 'node:net';
import postgres from 'postgres';
import { SMTPServer } from 'smtp-server';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../src/app/embedded/index.js';
import { noticeOverdueSettlement } from '../../src/books/settlement/overdueNotice.store.js';
import { connectPostgres } from '../../src/postgres/connect.js';
import { recordEvents } from '../../src/postgres/partnerEvents.js';
import { noticeExpiringKeys } from '../../src/webhooks/notices.store.js';
import { removeEndedDeliveries } from '../../src/webhooks/webhooks.store.js';
import { freshStores } from '../setup/freshStores.js';
import { constants, environment, spawnService, startService } from '../support/service.js';
import type { TestStores } from '../support/stores.js';
import { until } from '../support/wait.js';

const DAY_MS = 86_400_000;

interface Mail {
  readonly from: string;
  readonly to: readonly string[];
  readonly text: string;
}

let stores: TestStores;
let books: postgres.Sql;

beforeEach(async () => {
  stores = await freshStores();
  books = postgres(stores.databaseUrl, { max: 2, onnotice: () => {} });
});
afterEach(async () => {
  await books.end();
  await stores.drop();
});

/**
 * Starts a mail server that stores the mails it accepts.
 * @param refuse number of mails that it refuses first
 */
async function mailServer(refuse = 0, port = 0): Promise<{ url: string; mails: Mail[] }> {
  const mails: Mail[] = [];
  let left = refuse;
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        if (left-- > 0) return done(new Error('Try again later'));
        const { mailFrom, rcptTo } = session.envelope;
        mails.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          text: Buffer.concat(chunks).toString(),
        });
        done();
      });
    },
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  onTestFinished(() => new Promise((resolve) => server.close(() => resolve())));
  return { url: `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`, mails };
}

const settings = (smtpUrl: string) => ({
  SMTP_URL: smtpUrl,
  SMTP_FROM: 'api@spindle.example',
  ...constants({ apiNoticeDays: 0, webhookRetryDelaysMs: [50] }),
});
const subjectOf = ({ text }: Mail): string | undefined => /^Subject: (.*)$/m.exec(text)?.[1]?.trim();
const states = async (): Promise<string[]> =>
  (
    await books<
      { status: string }[]
    >`SELECT status FROM deliveries WHERE recipient IS NOT NULL ORDER BY delivery_id`
  ).map(({ status }) => status);

test('e-mails a sunset announcement once to each contact, even if the front end is killed before sending', async () => {
  const port = await freePort();
  // The worker prepares the cells and then stops. Without a worker nothing is sent.
  await (await startService(stores)).stop();
  const alone = await spawnService(
    environment(stores, { ...settings(`smtp://127.0.0.1:${port}`), ROLES: 'http' }),
  );
  onTestFinished(() => void alone.end('SIGKILL'));
  await alone.client.newPartner({ contactEmail: 'one@partner.example' });
  const second = await alone.client.newPartner({ contactEmail: 'two@partner.example' });
  const list = { contactEmail: 'two,three@partner.example' };
  expect(await alone.client.operator('PATCH', `/partners/${second.partnerId}`, list)).toMatchObject({
    status: 400,
    body: { errorCode: 'KS-4101', details: [{ path: '/contactEmail' }] },
  });
  await alone.client.newPartner();
  const sunsetAt = new Date(Date.now() + 60 * DAY_MS).toISOString();
  const body = { sunsetAt, successor: 'v2', migrationUrl: 'https://example.com/v2' };
  expect((await alone.client.operator('POST', '/api-versions/v1/deprecate', body)).status).toBe(200);
  expect(await alone.end('SIGKILL')).toBe('SIGKILL');
  const { url, mails } = await mailServer(1, port);
  const service = await startService(stores, settings(url));
  onTestFinished(() => service.stop());
  await until(async () => (await states()).every((status) => status === 'delivered'), 'all are sent');
  expect(mails.flatMap(({ to }) => to).sort()).toEqual(['one@partner.example', 'two@partner.example']);
  for (const mail of mails) {
    expect(mail.from).toBe('api@spindle.example');
    expect(subjectOf(mail)).toBe(`Spindle API v1 ends on ${sunsetAt.slice(0, 10)}`);
    for (const part of ['410', 'move to v2', 'https://example.com/v2', 'Auto-Submitted: auto-generated'])
      expect(mail.text.replace(/=\r?\n/g, '')).toContain(part);
    expect(mail.text).toMatch(/^Message-ID: <dlv_[0-9a-f]{32}@spindle\.example>\r$/m);
  }
});

test("e-mails expiring keys to the partner's contact and overdue settlements to the operator, once each", async () => {
  const { url, mails } = await mailServer();
  const service = await startService(stores, settings(url));
  onTestFinished(() => service.stop());
  const sql = connectPostgres(stores.databaseUrl, { max: 2, name: 'test', onError: () => {} });
  onTestFinished(() => sql.end());
  const { partnerId } = await service.newPartner({ contactEmail: 'keys@partner.example' });
  const expiresAt = new Date(Date.now() + 10 * DAY_MS);
  await service.operator('POST', `/partners/${partnerId}/keys`, {
    name: 'live',
    expiresAt: expiresAt.toISOString(),
  });
  const now = new Date(expiresAt.getTime() - 6.5 * DAY_MS);
  expect([await noticeExpiringKeys(sql, now), await noticeExpiringKeys(sql, now)]).toEqual([1, 0]);
  await until(() => mails.length === 1, 'the contact is told');
  expect(mails[0]!.to).toEqual(['keys@partner.example']);
  expect(subjectOf(mails[0]!)).toMatch(/^Spindle API key \d+ expires in 7 days$/);
  expect(mails[0]!.text).toContain('(live)');

  const today = new Date().toISOString().slice(0, 10);
  const overdue = () => noticeOverdueSettlement(sql, today, 'operator@spindle.example', new Date());
  // The check for missing reports of a future day must be repeatable.
  await books`UPDATE partners SET created_at = created_at - interval '2 days'`;
  expect([await overdue(), await overdue()]).toEqual([1, 0]);
  await until(() => mails.length === 2, 'the operator is told');
  expect(mails[1]!.to).toEqual(['operator@spindle.example']);
  expect(subjectOf(mails[1]!)).toBe(`Spindle settlement for ${today} is overdue`);
  expect(mails[1]!.text).toContain('1 partner has no complete settlement report');
});

test('gives up an e-mail after five refusals by the mail server, and an operator can send it again', async () => {
  const { url, mails } = await mailServer(5);
  const service = await startService(stores, settings(url));
  onTestFinished(() => service.stop());
  await service.newPartner({ contactEmail: 'one@partner.example' });
  const sunsetAt = new Date(Date.now() + DAY_MS).toISOString();
  await service.operator('POST', '/api-versions/v1/deprecate', { sunsetAt });
  await until(async () => (await states())[0] === 'failed', 'it failed for good');
  const [row] = await books<{ delivery_id: string; attempts: number; last_error: string }[]>`
    SELECT delivery_id, attempts, last_error FROM deliveries`;
  expect(row).toMatchObject({ attempts: 5, last_error: expect.stringContaining('Try again later') });
  expect(mails).toEqual([]);
  await service.operator('POST', `/deliveries/${row!.delivery_id}/resend`);
  await until(() => mails.length === 1, 'it is sent');
});

test('stores an e-mail as unsent and counts it if SMTP_URL is not set', async () => {
  const service = await startService(stores, constants({ apiNoticeDays: 0 }));
  onTestFinished(() => service.stop());
  const { partnerId } = await service.newPartner({ contactEmail: 'one@partner.example' });
  const sunsetAt = new Date(Date.now() + DAY_MS).toISOString();
  await service.operator('POST', '/api-versions/v1/deprecate', { sunsetAt });
  await until(async () => (await states())[0] === 'unsent', 'it is marked');
  await until(async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${service.running.metricsPort}/metrics`)).text();
    return /^spindle_emails_total\{result="unsent"\} 1$/m.test(metrics);
  }, 'it is counted');
  // An event without a recipient is not recorded.
  await service.operator('PATCH', `/partners/${partnerId}`, { contactEmail: null });
  const sql = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
  onTestFinished(() => sql.end());
  const data = { keyId: 1, name: null, expiresAt: sunsetAt, daysLeft: 1 };
  const event = { event: 'api_key.expiring', partnerId, createdAt: new Date(), data } as const;
  expect(await sql.begin((tx) => recordEvents(tx, [event]))).toBe(0);
  // An unsent e-mail is stored exactly as long as a sent one.
  for (const [age, kept] of [
    ['29 days', ['unsent']],
    ['31 days', []],
  ] as const) {
    await books`UPDATE deliveries SET created_at = now() - ${age}::interval`;
    await removeEndedDeliveries(sql, 30);
    expect(await states()).toEqual(kept);
  }
});
