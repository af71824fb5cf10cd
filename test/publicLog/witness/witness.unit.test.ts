/** Tests a witness that receives checkpoints from logs, and one that pulls them from a log. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseCheckpoint } from '../../../src/domain/publicLog/checkpoints.js';
import { parseNote, signerOf, signersOf, vkeyOf } from '../../../src/domain/publicLog/notes.js';
import { Policy } from '../../../src/domain/publicLog/policy.js';
import { submissionText } from '../../../src/domain/publicLog/submissions.js';
import { LogError } from '../../../src/publicLog/witness/logReader.js';
import { InconsistencyError, Pulling } from '../../../src/publicLog/witness/pulling.js';
import { serveWitness, type WitnessServer } from '../../../src/publicLog/witness/serving.js';
import { nameOf, WitnessState } from '../../../src/publicLog/witness/witnessState.js';
import { showLog, TestLog } from './logOfTest.js';

const ORIGIN = 'log.example/one';
const signer = signerOf('witness.example/w1', 'witness', Buffer.alloc(32, 9));
const policyOf = (log: TestLog): Policy => new Policy(`log ${vkeyOf(log.signer)}\nquorum none\n`);

let folder: string;
let state: WitnessState;
let log: TestLog;
const said: string[] = [];
const say = (line: string): void => void said.push(line);
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spindle-witness-'));
  state = new WitnessState(folder, signer);
  log = new TestLog(ORIGIN).grow(10);
  said.length = 0;
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe('a witness that serves', () => {
  let server: WitnessServer;
  const serve = async (): Promise<void> => {
    server = await serveWitness({ policy: policyOf(log), state, host: '127.0.0.1', port: 0, say });
  };
  beforeEach(serve);
  afterEach(() => server.close());
  const send = async (body: string) => {
    const answer = await fetch(`http://127.0.0.1:${server.port}/w/add-checkpoint`, { method: 'POST', body });
    return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text() };
  };
  const shown = async (name = nameOf(ORIGIN)) => {
    const answer = await fetch(`http://127.0.0.1:${server.port}/w/${name}/checkpoint`);
    return { status: answer.status, text: await answer.text() };
  };

  test('a serving witness cosigns each consistent checkpoint and serves the newest one', async () => {
    expect((await shown()).status).toBe(404);
    for (const [old, size] of [
      [0, 3],
      [3, 3],
      [3, 8],
      [8, 10],
    ] as const) {
      const { status, text } = await send(log.submission(old, size));
      expect([status, old, size]).toEqual([200, old, size]);
      const note = parseNote(log.note(size) + text);
      expect(signersOf(note, [signer, log.signer])).toHaveLength(2);
    }
    const kept = parseNote((await shown()).text);
    expect(parseCheckpoint(kept.text).size).toBe(10);
    expect(signersOf(kept, [signer, log.signer])).toHaveLength(2);
    expect((await shown('0'.repeat(64))).status).toBe(404);
  });

  test('a serving witness remembers its cosigned checkpoints after a restart', async () => {
    await send(log.submission(0, 5));
    await server.close();
    state = new WitnessState(folder, signer);
    await serve();
    expect(await send(log.submission(0, 7))).toEqual({ status: 409, type: 'text/x.tlog.size', text: '5\n' });
    expect((await send(log.submission(5, 7))).status).toBe(200);
  });

  test('a serving witness answers each faulty submission with its status, and keeps its state', async () => {
    await send(log.submission(0, 5));
    const other = new TestLog('log.example/two').grow(3);
    const stranger = new TestLog(ORIGIN, 2).grow(10);
    const forked = new TestLog(ORIGIN).grow(10, 'other');
    const proof = (count: number): Buffer[] => Array.from({ length: count }, () => Buffer.alloc(32));
    const wrong = log.note(7).replace(/ ([A-Za-z0-9+/]{8})[^\n]*\n$/, ` $1${'A'.repeat(80)}\n`);
    for (const [status, body] of [
      [400, ''],
      [400, 'old 05\n\nx'],
      [400, `old 5\nAA==\n\n${log.note(7)}`],
      [400, log.submission(5, 7).slice(0, -1)],
      [400, submissionText({ old: 5, proof: proof(64), note: log.note(7) })],
      [400, submissionText({ old: 8, proof: [], note: log.note(7) })],
      [400, `old 5\n\n${'x'.repeat(70_000)}`],
      [404, other.submission(0, 3)],
      [403, stranger.submission(5, 7)],
      [403, submissionText({ old: 5, proof: log.proof(5, 7), note: wrong })],
      [409, log.submission(0, 7)],
      [409, log.submission(3, 7)],
      [422, submissionText({ old: 5, proof: proof(3), note: log.note(7) })],
      [422, submissionText({ old: 5, proof: [...log.proof(5, 7), Buffer.alloc(32)], note: log.note(7) })],
      [422, submissionText({ old: 5, proof: proof(1), note: log.note(5) })],
      [422, forked.submission(5, 7)],
      [422, forked.submission(5, 5)],
    ] as const) {
      const answer = await send(body);
      expect([answer.status, body]).toEqual([status, body]);
    }
    expect(parseCheckpoint(parseNote((await shown()).text).text)).toMatchObject({
      size: 5,
      root: log.tree.root(5),
    });
    // The evidence folder has the two trees of five records, both signed by the log.
    expect(await readdir(join(folder, 'evidence'))).toHaveLength(2);
  });

  test('a serving witness cosigns only one of many concurrent submissions with the same old size', async () => {
    await send(log.submission(0, 2));
    const answers = await Promise.all([3, 4, 5, 6, 7, 8, 9, 10].map((size) => send(log.submission(2, size))));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(7);
  });
});

describe('a witness that pulls', () => {
  let size: number;
  let shownLog: TestLog;
  let server: Awaited<ReturnType<typeof showLog>>;
  const pulling = (mirror?: string): Pulling =>
    new Pulling({ policy: policyOf(log), state, url: server.url, mirror, say });
  beforeEach(async () => {
    size = 10;
    shownLog = log;
    server = await showLog(() => ({ log: shownLog, size }));
  });
  afterEach(() => server.close());

  test("a pulling witness cosigns a growing log, keeps every checkpoint, and mirrors the log's files", async () => {
    const mirror = join(folder, 'mirror');
    const each = pulling(mirror);
    const sizes = [1, 10, 255, 256, 300, 1000];
    log.grow(1000);
    for (size of sizes) await each.look();
    const kept = await Promise.all(
      ['001', '010', '255', '256', '300', 'x001/000'].map((name) =>
        readFile(state.pathOf(ORIGIN, 'checkpoints', ...name.split('/')), 'utf8'),
      ),
    );
    for (const [at, text] of kept.entries()) {
      const note = parseNote(text);
      expect(parseCheckpoint(note.text).size).toBe(sizes[at]);
      expect(signersOf(note, [signer, log.signer])).toHaveLength(2);
    }
    for (const path of [
      'checkpoint',
      'tile/entries/002',
      'tile/entries/003.p/232',
      'tile/0/000',
      'tile/1/000.p/3',
    ]) {
      const bytes = await readFile(join(mirror, path));
      expect([path, bytes.equals(log.file(path, size)!)]).toEqual([path, true]);
    }
  });

  test("a pulling witness cosigns neither a smaller tree nor a checkpoint that the tiles don't prove", async () => {
    await pulling().look();
    size = 4;
    await pulling().look();
    expect(said.at(-1)).toContain('fewer than before');
    expect((await state.newest(ORIGIN))!.checkpoint.size).toBe(10);
    log.grow(20);
    size = 20;
    const lies = new TestLog(ORIGIN).grow(20, 'other');
    const file = log.file.bind(log);
    log.file = (path, of) => (path === 'checkpoint' ? file(path, of) : lies.file(path, of));
    await expect(pulling().look()).rejects.toThrow(LogError);
    expect((await state.newest(ORIGIN))!.checkpoint.size).toBe(10);
  });

  test('a pulling witness detects a second history, keeps both notes as evidence, and never signs again', async () => {
    await pulling().look();
    for (const [other, shownSize] of [
      [new TestLog(ORIGIN).grow(12, 'other'), 12],
      [new TestLog(ORIGIN).grow(10, 'other'), 10],
      [new TestLog(ORIGIN).grow(12, 'third'), 12],
    ] as const) {
      shownLog = other;
      size = shownSize;
      await expect(pulling().look()).rejects.toThrow(InconsistencyError);
    }
    const files = await readdir(join(folder, 'evidence'));
    const notes = await Promise.all(files.map((file) => readFile(join(folder, 'evidence', file), 'utf8')));
    expect(notes.map((text) => signersOf(parseNote(text), [log.signer]).length)).toEqual([1, 1]);
    shownLog = log;
    size = 10;
    await expect(pulling().look()).rejects.toThrow(InconsistencyError);
  });
});
