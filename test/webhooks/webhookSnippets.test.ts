/**
 * Tests that the signature checks shown in docs/webhooks.md and `spindle webhooks` accept a real delivery and
 * nothing else.
 */
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { recordEvents } from '../../src/postgres/partnerEvents.js';
import { world } from '../setup/world.js';
import { OPERATOR_KEY } from '../support/client.js';
import { type Received, type Registered, register, startReceiver } from '../support/receiver.js';
import { cliOf, ROOT } from '../support/root.js';
import { constants } from '../support/service.js';
import { until } from '../support/wait.js';

const run = promisify(execFile);
const CLI = cliOf(ROOT);
const EVENTS = ['settlement.report_ready'];

const { service: client, ownSql: sql, partner } = world(constants({ webhookRetryDelaysMs: [10] }));
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spindle-snippets-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

const happen = (count = 1): Promise<number> =>
  sql.begin((tx) =>
    recordEvents(
      tx,
      Array.from({ length: count }, (_, revision) => ({
        event: 'settlement.report_ready' as const,
        partnerId: partner.partnerId,
        createdAt: new Date(),
        data: { reportDate: '2026-05-01', revision, integrityHash: 'Ünï', totalSpins: 7, ggrUsd: 1.25 },
      })),
    ),
  );

describe('code in the webhook documentation', () => {
  let hook: Registered;
  let delivery: Received;
  const text = readFileSync(join(ROOT, 'docs', 'webhooks.md'), 'utf8');
  const snippet = (language: string): string =>
    new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(text)![1]!;

  beforeAll(async () => {
    const to = await startReceiver();
    hook = await register(client, partner.key, to.url(), EVENTS);
    await happen();
    await until(() => to.received.length === 1, 'a delivery came');
    delivery = to.received[0]!;
    await to.close();
    await client.partner('DELETE', `/webhooks/${hook.id}`, partner.key);
  });

  /**
   * Inputs for each program, one correct and the others with one fault each, with the expected results of
   * both signature checks.
   */
  const cases = () => {
    const { headers, bytes } = delivery;
    const right = {
      secret: hook.secret,
      body: bytes.toString('base64'),
      own: headers['x-spindle-signature']!,
      id: headers['webhook-id']!,
      timestamp: headers['webhook-timestamp']!,
      standard: headers['webhook-signature']!,
    };
    const old = String(Number(right.timestamp) - 1000);
    const wrong = [
      { ...right, body: Buffer.concat([bytes, Buffer.from(' ')]).toString('base64') },
      { ...right, secret: `whsec_${Buffer.alloc(32, 1).toString('base64')}` },
      { ...right, own: right.own.slice('sha256='.length), standard: right.standard.slice('v1,'.length) },
      { ...right, own: '', standard: '' },
      { ...right, own: 'sha256=ä', standard: 'v1,ä' },
    ];
    return [
      { given: right, own: true, standard: true },
      { given: { ...right, standard: `v1,AAAA ${right.standard}` }, own: true, standard: true },
      { given: { ...right, id: 'evt_0' }, own: true, standard: false },
      { given: { ...right, timestamp: old }, own: true, standard: false },
      ...wrong.map((given) => ({ given, own: false, standard: false })),
    ];
  };

  const LANGUAGES: { language: string; runtime: string[]; files: [string, string][]; command: string[] }[] = [
    {
      language: 'js',
      runtime: [process.execPath, '--version'],
      files: [
        ['snippet.mjs', ''],
        [
          'main.mjs',
          `import { readFileSync } from 'node:fs';
import { isSpindle, isStandard } from './snippet.mjs';
const answers = JSON.parse(readFileSync(process.argv[2], 'utf8')).map((given) => {
  const body = Buffer.from(given.body, 'base64');
  return [isSpindle(given.secret, body, given.own), isStandard(given.secret, body, given.id, given.timestamp, given.standard)];
});
console.log(JSON.stringify(answers));`,
        ],
      ],
      command: [process.execPath, 'main.mjs'],
    },
    {
      language: 'python',
      runtime: ['python3', '--version'],
      files: [
        ['snippet.py', ''],
        [
          'main.py',
          `import base64, json, sys
from snippet import is_spindle, is_standard
answers = []
for given in json.load(open(sys.argv[1], encoding="utf8")):
    body = base64.b64decode(given["body"])
    answers.append([is_spindle(given["secret"], body, given["own"]),
                    is_standard(given["secret"], body, given["id"], given["timestamp"], given["standard"])])
print(json.dumps(answers))`,
        ],
      ],
      command: ['python3', 'main.py'],
    },
    {
      language: 'go',
      runtime: ['go', 'version'],
      files: [
        ['snippet.go', ''],
        [
          'main.go',
          `package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	text, _ := os.ReadFile(os.Args[1])
	var cases []struct {
		Secret, Own, Id, Timestamp, Standard string
		Body                                 []byte
	}
	_ = json.Unmarshal(text, &cases)
	answers := [][2]bool{}
	for _, given := range cases {
		answers = append(answers, [2]bool{IsSpindle(given.Secret, given.Body, given.Own),
			IsStandard(given.Secret, given.Body, given.Id, given.Timestamp, given.Standard)})
	}
	out, _ := json.Marshal(answers)
	fmt.Println(string(out))
}`,
        ],
      ],
      command: ['go', 'run', 'snippet.go', 'main.go'],
    },
    {
      language: 'php',
      runtime: ['php', '--version'],
      files: [
        ['snippet.php', ''],
        [
          'main.php',
          `<?php
require 'snippet.php';
$answers = [];
foreach (json_decode(file_get_contents($argv[1]), true) as $given) {
    $body = base64_decode($given['body']);
    $answers[] = [is_spindle($given['secret'], $body, $given['own']),
        is_standard($given['secret'], $body, $given['id'], $given['timestamp'], $given['standard'])];
}
echo json_encode($answers);`,
        ],
      ],
      command: ['php', 'main.php'],
    },
  ];

  for (const { language, runtime, files, command } of LANGUAGES) {
    const isThere = spawnSync(runtime[0]!, runtime.slice(1)).status === 0;
    test.skipIf(!isThere)(
      `the documented ${language} code accepts a real delivery and no faulty one${isThere ? '' : ` (skipped: no ${runtime[0]} here)`}`,
      async () => {
        for (const [name, content] of files)
          await writeFile(join(folder, name), content || snippet(language));
        const asked = cases();
        await writeFile(join(folder, 'cases.json'), JSON.stringify(asked.map(({ given }) => given)));
        const [program, ...args] = command;
        const { stdout } = await run(program!, [...args, 'cases.json'], { cwd: folder });
        expect(JSON.parse(stdout)).toEqual(asked.map(({ own, standard }) => [own, standard]));
      },
    );
  }
});

describe('packages named in the webhook documentation', () => {
  test.each(['standardwebhooks', 'svix'])(
    'the package %s accepts a real webhook delivery and no faulty one',
    async (name) => {
      const page = readFileSync(join(ROOT, 'docs', 'webhooks.md'), 'utf8');
      const shown = new RegExp(`\`\`\`js ${name}\n([\\s\\S]*?)\`\`\``).exec(page)![1]!;
      const to = await startReceiver();
      onTestFinished(() => to.close());
      const hook = await register(client, partner.key, to.url(`/${name}`), EVENTS);
      await happen();
      await until(() => to.received.length === 1, 'a delivery came');
      await client.partner('DELETE', `/webhooks/${hook.id}`, partner.key);
      const [{ headers, bytes }] = to.received as [Received];
      const program = `${shown}
const [secret, text, headers] = JSON.parse(process.argv[1]);
const body = Buffer.from(text, 'base64');
const attempt = (...given) => { try { return verified(...given).event; } catch { return 'refused'; } };
const old = { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) - 1000) };
console.log(JSON.stringify([
  attempt(secret, body, headers),
  attempt(secret, Buffer.concat([body, Buffer.from(' ')]), headers),
  attempt('whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', body, headers),
  attempt(secret, body, old),
]));`.replace('export function', 'function');
      const given = JSON.stringify([hook.secret, bytes.toString('base64'), headers]);
      const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program, given], {
        cwd: ROOT,
      });
      expect(JSON.parse(stdout)).toEqual(['settlement.report_ready', 'refused', 'refused', 'refused']);
    },
  );
});

const environment = (more: NodeJS.ProcessEnv = {}) => ({
  PATH: process.env.PATH,
  OPERATOR_API_KEY: OPERATOR_KEY,
  DATA_DIR: folder,
  ...more,
});
const cli = (args: string[], env = environment()) =>
  run(process.execPath, [CLI, 'webhooks', ...args, '--url', client.base], { env }).then(
    ({ stdout }) => ({ code: 0, stdout, stderr: '' }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );

describe('the command spindle webhooks resend', () => {
  const audited = async () =>
    (
      await client.operator<{ entries: Record<string, unknown>[] }>('GET', '/audit-log?limit=100')
    ).body.entries.filter(({ action }) => String(action).startsWith('delivery.'));

  test('spindle webhooks resend sends all deliveries that failed since a time, or one by id, for five more attempts', async () => {
    let status = 500;
    const to = await startReceiver((_request, response) => void response.writeHead(status).end());
    onTestFinished(() => to.close());
    const { id } = await register(client, partner.key, to.url(), EVENTS);
    const deleted = await register(client, partner.key, to.url('/deleted'), EVENTS);
    const rows = async () =>
      (
        await client.partner<{
          deliveries: { id: string; status: string; attempts: number; maxAttempts: number }[];
        }>('GET', `/webhooks/${id}/deliveries`, partner.key)
      ).body.deliveries;
    const all = (wanted: string, attempts: number) =>
      until(async () => {
        const found = await rows();
        return found.length > 0 && found.every((row) => row.status === wanted && row.attempts === attempts);
      }, `all are ${wanted} after ${attempts} attempts`);
    const started = new Date().toISOString();
    await happen(3);
    await all('failed', 5);
    await client.partner('DELETE', `/webhooks/${deleted.id}`, partner.key);

    const later = new Date(Date.now() + 60_000).toISOString();
    expect(await cli(['resend', '--failed-since', later])).toMatchObject({
      code: 0,
      stdout: '0 deliveries will be sent again\n',
    });
    // The resent deliveries fail another five times.
    expect((await cli(['resend', '--failed-since', started, '--json'])).stdout).toBe('{"resent":3}\n');
    await all('failed', 10);
    status = 200;
    const [first] = await rows();
    expect(first).toMatchObject({ maxAttempts: 10 });
    // This call uses the operator key that the first start stored in its data folder.
    await writeFile(join(folder, 'operator-api-key'), `${OPERATOR_KEY}\n`);
    const kept = environment({ OPERATOR_API_KEY: undefined });
    expect((await cli(['resend', first!.id], kept)).stdout).toBe(`${first!.id} will be sent again\n`);
    await until(async () => (await rows())[0]!.status === 'delivered', 'it is delivered');
    expect((await rows()).map((row) => row.attempts)).toEqual([11, 10, 10]);
    // A successful delivery can be sent again too.
    const before = to.received.length;
    expect((await cli(['resend', first!.id])).code).toBe(0);
    await until(() => to.received.length === before + 1, 'it is sent again');
    expect(to.received.at(-1)!.headers['x-spindle-delivery-id']).toBe(first!.id);

    const [one] = to.received.filter(({ path }) => path === '/deleted');
    const [gone, unknown, noText] = await Promise.all([
      cli(['resend', one!.headers['x-spindle-delivery-id']!]),
      cli(['resend', 'dlv_0']),
      client.operator('POST', '/deliveries/%00/resend'),
    ]);
    expect(noText).toMatchObject({ status: 404, body: { errorCode: 'KS-4215' } });
    expect(gone).toMatchObject({ code: 1, stderr: expect.stringContaining('KS-4206') });
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('KS-4215') });
    expect((await audited()).slice(0, 4)).toMatchObject([
      { action: 'delivery.resend', before: { status: 'delivered' } },
      {
        action: 'delivery.resend',
        subject: `delivery:${first!.id}`,
        before: { status: 'failed', attempts: 10 },
      },
      { action: 'delivery.resend-failed', after: { since: started, resent: 3 } },
      { action: 'delivery.resend-failed', after: { resent: 0 } },
    ]);
  });

  test('spindle webhooks resend refuses ambiguous arguments, and prints errors of the service', async () => {
    const unclear = [['resend'], ['resend', 'dlv_1', '--failed-since', '2026-01-01T00:00:00Z'], ['send']];
    const noTimes = ['yesterday', '2026-02-30T00:00:00Z'];
    const [refused, failed, wrong] = await Promise.all([
      Promise.all(unclear.map((args) => cli(args))),
      Promise.all(noTimes.map((since) => cli(['resend', '--failed-since', since]))),
      cli(['resend', 'dlv_1'], environment({ OPERATOR_API_KEY: 'another-operator-key' })),
    ]);
    for (const answer of refused) expect(answer).toMatchObject({ code: 2 });
    for (const answer of failed) {
      expect(answer).toMatchObject({ code: 1, stderr: expect.stringContaining('KS-4101') });
      expect(answer.stderr).toContain('/since must be an RFC 3339 time');
    }
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('KS-4002') });
  });
});

describe('the command spindle webhooks listen', () => {
  test('spindle webhooks listen shows deliveries and whether their signatures are valid', async () => {
    const listener = spawn(
      process.execPath,
      [CLI, 'webhooks', 'listen', '--port', '0', '--json', '--secret-file', '-'],
      {
        env: environment(),
        stdio: ['pipe', 'pipe', 'pipe'],
      },
    );
    listener.stdin.end('whsec_AAAA\n');
    onTestFinished(() => void listener.kill());
    let shown = '';
    listener.stdout.on('data', (chunk: Buffer) => {
      shown += chunk;
    });
    const [line] = (await once(listener.stderr, 'data')) as [Buffer];
    const url = /http:\/\/localhost:\d+\//.exec(line.toString())![0];
    const { id } = await register(client, partner.key, url, EVENTS);
    await happen();
    await until(() => shown.includes('\n'), 'a delivery is shown');
    const first = JSON.parse(shown.split('\n')[0]!);
    expect(first).toMatchObject({ isValid: false, faults: ['X-Spindle-Signature', 'webhook-signature'] });
    await client.partner('DELETE', `/webhooks/${id}`, partner.key);
    const ended = once(listener, 'exit');
    listener.kill();
    await ended;

    // This listener knows the secret and uses the port of the previous listener.
    const port = new URL(url).port;
    const { secret } = await register(client, partner.key, url, EVENTS);
    const knowing = spawn(
      process.execPath,
      [CLI, 'webhooks', 'listen', '--port', port, '--secret-file', '-'],
      { env: environment(), stdio: ['pipe', 'pipe', 'pipe'] },
    );
    knowing.stdin.end(`whsec_AAAA\n${secret}\n`);
    onTestFinished(() => void knowing.kill());
    await once(knowing.stderr, 'data');
    await happen();
    const [text] = (await once(knowing.stdout, 'data')) as [Buffer];
    expect(text.toString()).toMatch(/settlement\.report_ready dlv_\w+ attempt \d+ {2}signatures valid\n/);
  });
});
