/** Tests how the log hides secrets that are passed to it by mistake, and which messages it may contain. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import type { Exchange } from '../../src/api/server/exchange.js';
import { RequestLog } from '../../src/api/server/requestLog.js';
import { openLogger } from '../../src/app/logger.js';
import { spellings, withoutSecrets } from '../../src/platform/secretsInLogs.js';
import { ROOT } from '../support/root.js';
import { until } from '../support/wait.js';

const OPERATOR_KEY = 'an/operator+key "of" 40 characters or so';
interface Line {
  level: number;
  time: number;
  msg: string;
  requestId?: string;
  operation?: string;
  errorCode?: string;
  partnerId?: number;
  status?: number;
  unsaid?: number;
  err?: { type: string; message: string; stack: string };
}
/** A destination that stores what is written to it. */
function memory() {
  const written: string[] = [];
  const write = (line: string): void => {
    written.push(line);
  };
  return { written, destination: { write } };
}
describe('secrets passed to the log by mistake', () => {
  test('the log hides members with secret names, known secrets, and texts that look like secrets', async () => {
    const { written, destination } = memory();
    const password = 'p"a/ss word';
    const log = openLogger({ level: 'info', secrets: spellings([password, OPERATOR_KEY]) }, destination);
    const error = Object.assign(
      new Error(`AUTH ${password} failed for redis://user:other-password@host:1`, {
        cause: Object.assign(new AggregateError([new Error(OPERATOR_KEY)], 'many')),
      }),
      { code: 'EAUTH', command: { name: 'auth', args: ['a-third-password'] }, detail: 'Failing row (whole)' },
    );
    log.error({ err: error, apiKey: 'one', partner: { secret: 'two', seed: Buffer.from('three') } }, 'first');
    log.info(
      `ks_${'A'.repeat(43)}, kso_${'C'.repeat(43)} and whsec_${'b'.repeat(32)} and ${encodeURIComponent(password)}`,
    );
    const [first, second] = written
      .join('')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line & Record<string, unknown>);
    expect(first!.err).toMatchObject({
      type: 'Error',
      code: 'EAUTH',
      message: 'AUTH [hidden] failed for redis://[hidden]@host:1',
      causes: [{ type: 'AggregateError', causes: [{ message: '[hidden]' }] }],
    });
    expect(first!.err!.stack).toContain('secrets.unit.test.ts');
    expect(first).toMatchObject({ apiKey: '[hidden]', partner: { secret: '[hidden]', seed: '[hidden]' } });
    expect(second!.msg).toBe('[hidden], [hidden] and [hidden] and [hidden]');
    for (const text of [password, 'a-third-password', 'whole', 'other-password', OPERATOR_KEY]) {
      for (const spelling of spellings([text])) expect(written.join('')).not.toContain(spelling);
    }
    expect(withoutSecrets('postgres://host/db, user@example.com', [])).toBe(
      'postgres://host/db, user@example.com',
    );
  });

  test('the log never omits a change of state, and counts the omitted repetitions of a failure', async () => {
    const { written, destination } = memory();
    const log = openLogger({ level: 'info', secrets: [] }, destination);
    const all = () =>
      written
        .join('')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Line & { cell?: number });
    for (let cell = 0; cell < 256; cell++) {
      log.error({ cell }, 'cell rebuilt');
      log.fatal({ cell, reason: 'x' }, 'cell halted');
      log.warn({ cell, err: new Error('x') }, 'flush failed, will retry');
    }
    const of = (msg: string) => all().filter((line) => line.msg === msg);
    expect(of('cell rebuilt').length).toBe(256);
    expect(of('cell halted').length).toBe(256);
    expect(of('flush failed, will retry').length).toBe(5);
    await until(() => of('flush failed, will retry').length === 6, 'the second is over');
    expect(of('flush failed, will retry').at(-1)).toMatchObject({ cell: 255, unsaid: 250 });
    log.warn({ cell: 1, err: new Error('x') }, 'flush failed, will retry');
    expect(of('flush failed, will retry').at(-1)!.unsaid).toBeUndefined();
  });

  test('each answer with 500 has a line with its request id, however many there are in a second', async () => {
    const { written, destination } = memory();
    const log = openLogger({ level: 'info', secrets: [] }, destination);
    const requestLog = new RequestLog(log, { request: () => {}, faults: { inc: () => {} } });
    const ids = Array.from({ length: 350 }, (_, i) => `request-${i}`);
    for (const id of ids)
      requestLog.answered({ id, operation: 'spin', startedMs: 0 } as Exchange, 500, 'KS-5001');
    const known = () =>
      new Set(
        written
          .join('')
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as Line & { unsaidRequestIds?: string[] })
          .flatMap(({ requestId, unsaidRequestIds = [] }) => [requestId, ...unsaidRequestIds]),
      );
    await until(() => known().size === ids.length, 'the second is over');
    expect(ids.filter((id) => !known().has(id))).toEqual([]);
    expect(written.length).toBeLessThan(15);
  });

  test('an answer with 500 has a line even if it has no error code', () => {
    const { written, destination } = memory();
    const log = openLogger({ level: 'warn', secrets: [] }, destination);
    const requestLog = new RequestLog(log, { request: () => {}, faults: { inc: () => {} } });
    requestLog.answered({ id: 'an-id', operation: 'spin', startedMs: 0 } as Exchange, 500, undefined);
    expect(written.join('')).toContain('an-id');
  });

  test('the log has one line without a stack for a task that fails for a minute because a store is away', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
    try {
      const { written, destination } = memory();
      const log = openLogger({ level: 'info', secrets: [] }, destination);
      const away = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' });
      const fail = (): void => log.warn({ err: away, cell: 1 }, 'flush failed, will retry');
      for (let i = 0; i < 300; i++) {
        fail();
        vi.advanceTimersByTime(200);
      }
      expect(written.map((line) => (JSON.parse(line) as Line).err)).toEqual([
        { type: 'Error', code: 'ECONNREFUSED', message: away.message },
      ]);
      vi.advanceTimersByTime(60_000);
      fail();
      expect(written.length).toBe(2);
    } finally {
      vi.useRealTimers();
    }
  });
});
test('docs/operations.md lists every log message of level warn or higher, and all members of each message', () => {
  const text = readFileSync(join(ROOT, 'docs', 'operations.md'), 'utf8').replaceAll(/\s+/g, ' ');
  const messages = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(join(ROOT, 'src', file), 'utf8'))
    .flatMap((code) => [...code.matchAll(/log\.(?:warn|error|fatal)\([^;]*?'([^']{10,})'/g)])
    .map(([, message]) => message!);
  expect(messages.length).toBeGreaterThan(20);
  expect(messages.filter((message) => !text.includes(`\`${message}\``))).toEqual([]);
  for (const member of [
    'requestId',
    'operation',
    'errorCode',
    'partnerId',
    'status',
    'ms',
    'unsaid',
    'err',
  ]) {
    expect(text).toContain(`\`${member}\``);
  }
});
