/**
 * `npm run test:image`: carries out the Dockerfile without Docker, in a folder of its own, and runs what it makes as an ordinary user
 * against real stores: both roles, the health check, a spin, SIGTERM. The base image is not there: it is this machine with this Node.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { bodyOf, operatorClient, type PartnerSchemas, partnerClient } from '../../src/client/client.js';
import { lockDataDir, startEmbeddedPostgres, startEmbeddedRedis } from '../../src/embedded/index.js';
import { dockerfile, type Stage } from '../support/dockerfile.js';

const ROOT = join(import.meta.dirname, '..', '..', '..');
/** The user `node` of the image. */
const UID = 1000;
const OPERATOR_KEY = 'operator-key-of-the-image-test';
const STOP_WITHIN_MS = 10_000;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** Carries out a stage in a folder that stands for the root of its file system. @returns its settings. */
function build(stage: Stage, root: string, roots: ReadonlyMap<string, string>): Record<string, string> {
  let workdir = '/';
  const environment: Record<string, string> = {};
  for (const { name, value, from, sources, target } of stage.steps) {
    if (name === 'WORKDIR') {
      workdir = value;
      mkdirSync(join(root, workdir), { recursive: true });
    } else if (name === 'ENV') {
      for (const [, key, given] of value.matchAll(/(\w+)=(\S+)/g)) environment[key!] = given!;
    } else if (name === 'COPY') {
      for (const source of sources) {
        const path = from === undefined ? join(ROOT, source) : join(roots.get(from)!, source);
        const into = join(root, workdir, target);
        const to = sources.length > 1 || target.endsWith('/') ? join(into, source.split('/').at(-1)!) : into;
        mkdirSync(dirname(to), { recursive: true });
        cpSync(path, to, { recursive: true, verbatimSymlinks: true });
      }
    } else if (name === 'RUN') {
      say(`  ${value}`);
      execFileSync('sh', ['-c', value], { cwd: join(root, workdir), stdio: ['ignore', 'ignore', 'inherit'] });
    }
  }
  return environment;
}

const only = (stage: Stage, name: string): string =>
  stage.steps.find((step) => step.name === name)!.value.replace(/^.*?(?=\[")/, '');

async function main(): Promise<void> {
  if (process.getuid?.() !== 0) throw new Error('Only root can run it as another user');
  const base = mkdtempSync(join(tmpdir(), 'spindle-image-'));
  chmodSync(base, 0o755);
  const undo: (() => unknown)[] = [() => rmSync(base, { recursive: true, force: true })];
  try {
    const stages = dockerfile(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'));
    const roots = new Map<string, string>();
    let environment: Record<string, string> = {};
    for (const [place, stage] of stages.entries()) {
      say(`stage ${stage.name ?? place}`);
      const root = join(base, `stage-${place}`);
      mkdirSync(root);
      environment = build(stage, root, roots);
      roots.set(stage.name ?? String(place), root);
    }
    const last = stages.at(-1)!;
    const image = join(base, `stage-${stages.length - 1}`, 'spindle');
    say(`files of the image: ${execFileSync('du', ['-sh', image], { encoding: 'utf8' }).split('\t')[0]}`);

    const dataDir = join(base, 'stores');
    mkdirSync(dataDir);
    const lock = await lockDataDir(dataDir);
    undo.push(() => lock.release());
    const options = { dataDir, cacheDir: join(ROOT, '.cache'), progress: () => {}, onEvent: () => {} };
    const redis = await startEmbeddedRedis(options);
    undo.push(() => redis.stop());
    const postgres = await startEmbeddedPostgres(options);
    undo.push(() => postgres.stop());

    const [program, ...args] = JSON.parse(only(last, 'CMD')) as string[];
    const health = JSON.parse(only(last, 'HEALTHCHECK')) as string[];
    const started: { role: string; ended: Promise<unknown[]>; stop: () => Promise<void> }[] = [];
    const start = async (role: string, port: number, metricsPort: number): Promise<string> => {
      const env = {
        PATH: process.env.PATH ?? '',
        ...environment,
        ROLES: role,
        HOST: '127.0.0.1',
        PORT: String(port),
        METRICS_PORT: String(metricsPort),
        REDIS_URL: redis.url,
        DATABASE_URL: postgres.url,
        OPERATOR_API_KEY: OPERATOR_KEY,
      };
      const as = { cwd: image, env, uid: UID, gid: UID };
      const child = spawn(program!, args, { ...as, stdio: ['ignore', 'pipe', 'inherit'] });
      const ended = once(child, 'exit');
      undo.push(() => child.kill('SIGKILL'));
      await new Promise<void>((resolve, reject) => {
        child.stdout.on('data', (chunk: Buffer) => {
          if (chunk.includes('is ready')) resolve();
        });
        ended.then(([code, signal]) => reject(new Error(`${role} ended with ${code ?? signal}`)), reject);
      });
      execFileSync(health[0]!, health.slice(1), as);
      const uid = execFileSync('ps', ['-o', 'uid=', '-p', String(child.pid)], { encoding: 'utf8' }).trim();
      if (uid !== String(UID)) throw new Error(`${role} runs as ${uid}`);
      say(`${role}: ready and healthy as user ${uid}`);
      const stop = async (): Promise<void> => {
        const asked = performance.now();
        child.kill('SIGTERM');
        const [code] = await ended;
        const tookMs = performance.now() - asked;
        if (code !== 0 || tookMs > STOP_WITHIN_MS)
          throw new Error(`${role} ended with ${code} after ${tookMs} ms`);
        say(`${role}: ended with 0, ${Math.round(tookMs)} ms after SIGTERM`);
      };
      started.push({ role, ended, stop });
      return `http://127.0.0.1:${port}`;
    };
    await start('worker', 18_081, 19_465);
    const url = await start('http', 18_080, 19_464);

    const operator = operatorClient(url, OPERATOR_KEY);
    const own = { slug: 'image', name: 'Image', environment: 'sandbox' } as const;
    const { partnerId } = await bodyOf(operator.POST('/partners', { body: own }));
    const params = { path: { id: partnerId } };
    const { apiKey } = await bodyOf(operator.POST('/partners/{id}/keys', { params, body: {} }));
    const partner = partnerClient(url, apiKey);
    const sheet = JSON.parse(
      readFileSync(join(ROOT, 'test/par-sheets/classic-3-reel.json'), 'utf8'),
    ) as PartnerSchemas['ParSheetBody'];
    const { parSheetId } = await bodyOf(partner.POST('/par-sheets', { body: sheet }));
    const named = { parSheetId, displayName: 'Image', configName: 'IMAGE' };
    const game = await bodyOf(partner.POST('/games', { body: named }));
    const spin = { gameId: game.gameConfigId, playerId: 'p', wagerUsd: 0.25, requestId: 'r' };
    const deadline = performance.now() + 10_000;
    let spinId: string | undefined;
    while (spinId === undefined && performance.now() < deadline) {
      const { data, error } = await partner.POST('/spin', { body: spin });
      // Its first block may not be there yet.
      if (error !== undefined && !['KS-5012', 'KS-4203'].includes(error.errorCode))
        throw new Error(`The spin is refused: ${JSON.stringify(error)}`);
      spinId = data?.spinId;
    }
    if (spinId === undefined) throw new Error('No spin was dealt');
    say(`a spin was dealt: ${spinId}`);
    for (const { stop } of started.reverse()) await stop();
    say('the image holds');
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

await main();
