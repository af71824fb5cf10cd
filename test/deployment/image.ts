/**
 * Implements `npm run test:image`, which builds the image with buildah, without Docker or a daemon. It runs
 * the image as Compose does: as user 1000, with a read-only root and no capabilities, on real stores.
 *
 * `BASE=IMAGE` names the base image. Without it, a base like that of the Dockerfile is made from Debian
 * packages and from Node in npm's registry. `ENGINE=podman` (or `ENGINE='podman --runtime runc'`) uses Podman
 * instead of chroot. Needs Linux, root, buildah and debootstrap.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  bodyOf,
  operatorClient,
  type PartnerClient,
  type PartnerSchemas,
  partnerClient,
} from '../../src/api/client/apiClients.js';
import {
  freePort,
  lockDataDir,
  startEmbeddedPostgres,
  startEmbeddedRedis,
} from '../../src/app/embedded/index.js';
import { type Container, type ImageConfig, startContainer } from '../support/container.js';
import { dockerfile } from '../support/dockerfile.js';
import { imageBase } from '../support/imageBase.js';
import { podman } from '../support/podman.js';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const IMAGE = 'localhost/spindle:test';
/** User id of the image. The folders that it may write belong to this user. */
const UID = 1000;
const OPERATOR_KEY = 'operator-key-of-the-image-test';
const freePorts = async () => ({ PORT: String(await freePort()), METRICS_PORT: String(await freePort()) });
const PORTS = { worker: await freePorts(), http: await freePorts() };
const URL = `http://127.0.0.1:${PORTS.http.PORT}`;
/** Time limit in ms for a stop. Compose allows twice as long. */
const STOP_WITHIN_MS = 10_000;
/** Number of concurrent players, and the number of spins after which the front end is stopped under load. */
const SPINNING = 8;
const STOPPED_AFTER = 200;

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const check = (holds: boolean, promise: string): void => {
  if (!holds) throw new Error(`Does not hold: ${promise}`);
  say(`  ${promise}`);
};

/**
 * Folder of buildah's storage, which is kept so that the next run can reuse the base image. It contains
 * device files and files of other users, so it lies outside the project.
 */
const STORAGE = '/var/tmp/spindle-image';
const PLACE = ['--root', join(STORAGE, 'storage'), '--runroot', join(STORAGE, 'run')];
function buildah(...args: string[]): string {
  return execFileSync('buildah', [...PLACE, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/** @returns its settings and the folder with its files, which exists until `undo` is called */
function build(): { config: ImageConfig; root: string; undo: () => void } {
  mkdirSync(STORAGE, { recursive: true });
  const began = performance.now();
  const seconds = (): string => `${Math.round((performance.now() - began) / 1000)} s`;
  const [stage] = dockerfile(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'));
  const base = process.env.BASE ?? imageBase(stage!.image, buildah);
  say(`base ${base}: ${seconds()}`);
  // The OCI image format does not support health checks.
  const how = ['--isolation', 'chroot', '--format', 'docker', '--quiet'];
  buildah('build', ...how, '--build-arg', `NODE=${base}`, '--tag', IMAGE, ROOT);
  say(`built: ${seconds()}`);
  const { Docker } = JSON.parse(buildah('inspect', '--type', 'image', IMAGE)) as {
    Docker: { config: ImageConfig };
  };
  const container = buildah('from', '--pull-never', IMAGE).trim();
  const root = buildah('mount', container).trim();
  return { config: Docker.config, root, undo: () => void buildah('rm', container) };
}

type Role = keyof typeof PORTS;
type Started = { container: Container; printed: string };

/** A deployment of the image with its own stores. */
interface Deployment {
  /** Runs a container of a role until its command ends. */
  toTheEnd(role: Role, ...command: string[]): Promise<void>;
  /** @returns a container of a role and its output, once the container is ready */
  start(role: Role): Promise<Started>;
  stop(role: Role, container: Container): Promise<void>;
}

/** Starts the stores, and defines how the containers of the image reach them. */
async function deploy(undo: (() => unknown)[], config: ImageConfig, root: string): Promise<Deployment> {
  const base = mkdtempSync(join(tmpdir(), 'spindle-image-'));
  undo.push(() => rmSync(base, { recursive: true, force: true }));
  chmodSync(base, 0o755);
  const [dataDir, position] = [join(base, 'stores'), join(base, 'position')];
  mkdirSync(dataDir);
  mkdirSync(position);
  chownSync(position, UID, UID);
  const lock = await lockDataDir(dataDir);
  undo.push(() => lock.release());
  const options = { dataDir, cacheDir: join(ROOT, '.cache'), progress: () => {}, onEvent: () => {} };
  const redis = await startEmbeddedRedis(options);
  undo.push(() => redis.stop());
  const postgres = await startEmbeddedPostgres(options);
  undo.push(() => postgres.stop());
  const shared = {
    REDIS_URL: redis.url,
    DATABASE_URL: postgres.url,
    OPERATOR_API_KEY: OPERATOR_KEY,
    WEBHOOK_SECRETS_KEY: randomBytes(32).toString('base64'),
    HOST: '127.0.0.1',
  };
  const settings = {
    worker: {
      ...shared,
      ...PORTS.worker,
      ROLES: 'worker',
      POSITION_FILE: '/spindle/position/position.json',
    },
    http: { ...shared, ...PORTS.http, ROLES: 'http' },
  };
  const volumes = { worker: [`${position}:/spindle/position`], http: [] as string[] };
  const engine = process.env.ENGINE;
  const inEngine = engine === undefined ? undefined : podman(engine, PLACE, IMAGE);
  const run = (role: Role, command = config.Cmd): Container => {
    const as = { environment: settings[role], volumes: volumes[role] };
    const ran = { ...config, Cmd: command };
    const container = inEngine === undefined ? startContainer(root, ran, as) : inEngine(ran, as);
    undo.push(() => container.end());
    return container;
  };
  return {
    toTheEnd: async (role, ...command) => {
      const { process: child } = run(role, command);
      child.stdout!.resume();
      const [code] = await once(child, 'exit');
      check(code === 0, `\`${command.join(' ')}\` ends with 0`);
    },
    start: async (role) => {
      const container = run(role);
      const printed = await untilReady(role, container);
      await checkRights(role, container, config);
      if (role === 'worker')
        check(readdirSync(position).includes('position.json'), 'it keeps its position file in the volume');
      return { container, printed };
    },
    stop: async (role, container) => {
      const ended = once(container.process, 'exit');
      const asked = performance.now();
      container.signal(config.StopSignal);
      const [code] = await ended;
      const tookMs = Math.round(performance.now() - asked);
      check(code === 0 && tookMs < STOP_WITHIN_MS, `${role} ends with 0 after ${config.StopSignal}`);
      say(`  it took ${tookMs} ms`);
    },
  };
}

function untilReady(role: Role, { process: child }: Container): Promise<string> {
  let printed = '';
  return new Promise((resolve, reject) => {
    child.stdout!.on('data', (chunk: Buffer) => {
      printed += chunk;
      if (printed.includes('is ready')) resolve(printed);
    });
    once(child, 'exit').then(([code]) => reject(new Error(`${role} ended with ${code}`)), reject);
  });
}

async function checkRights(role: Role, container: Container, config: ImageConfig): Promise<void> {
  const status = container.status();
  const uids = new Set(status.get('Uid')!.split('\t'));
  check(uids.size === 1 && uids.has(String(UID)), `${role} runs as user ${UID}`);
  check(/^0+$/.test(status.get('CapEff')! + status.get('CapBnd')!), 'it has no capabilities');
  check(status.get('NoNewPrivs') === '1', 'it can get none');
  const writes = await container.exec('sh', '-c', 'touch /spindle/dist/x 2>&1 || true');
  check(writes.includes('Read-only file system'), 'it cannot write to its own files');
  const [kind, ...health] = config.Healthcheck.Test;
  check(kind === 'CMD', 'it has a health check');
  await container.exec(...health);
  check(true, 'its health check holds');
}

async function checkCommand({ container, printed }: Started): Promise<void> {
  const [, named] = /^ {2}command {2}(.+)$/m.exec(printed)!;
  check(
    (await container.exec(...named!.split(' '))).includes('Usage: spindle'),
    `what the start names answers: \`${named}\``,
  );
  const overview = JSON.parse(await container.exec('spindle', 'overview', '--json')) as object;
  check(Object.keys(overview).length > 0, '`spindle overview` finds the service');
  await container.exec('spindle', 'program', 'check');
  check(true, '`spindle program check` finds the files of the build');
}

/**
 * Creates a partner with a game and spins once.
 * @returns the partner's client and the game
 */
async function firstSpin(): Promise<{ partner: PartnerClient; gameId: number }> {
  const operator = operatorClient(URL, OPERATOR_KEY);
  const own = { slug: 'image', name: 'Image', environment: 'sandbox' } as const;
  const { partnerId } = await bodyOf(operator.POST('/partners', { body: own }));
  const params = { path: { id: partnerId } };
  const { apiKey } = await bodyOf(operator.POST('/partners/{id}/keys', { params, body: {} }));
  const partner = partnerClient(URL, apiKey);
  const sheet = JSON.parse(
    readFileSync(join(ROOT, 'test/par-sheets/classic-3-reel.json'), 'utf8'),
  ) as PartnerSchemas['ParSheetBody'];
  const { parSheetId } = await bodyOf(partner.POST('/par-sheets', { body: sheet }));
  const game = { parSheetId, displayName: 'Image', configName: 'IMAGE' };
  const { gameConfigId: gameId } = await bodyOf(partner.POST('/games', { body: game }));
  const deadline = performance.now() + 10_000;
  const first = { gameId, playerId: 'first', wagerUsd: 0.25, requestId: 'first' };
  for (;;) {
    const { data, error } = await partner.POST('/spin', { body: first });
    if (data !== undefined) return { partner, gameId };
    // The first block of the game may not be loaded yet, so the spin is retried.
    const mayCome = ['KS-5012', 'KS-4203'].includes(error!.errorCode) && performance.now() < deadline;
    if (!mayCome) throw new Error(`The spin is refused: ${JSON.stringify(error)}`);
  }
}

/**
 * Spins for many players.
 * @returns once enough spins are dealt: the spins, and a promise that resolves when the last request is
 * refused or cut off
 */
async function spinAway(
  partner: PartnerClient,
  gameId: number,
): Promise<{ dealt: string[]; ended: Promise<unknown> }> {
  const dealt: string[] = [];
  let onEnough = (): void => {};
  const enough = new Promise<void>((resolve) => {
    onEnough = resolve;
  });
  const spinOn = async (playerId: string): Promise<void> => {
    for (let spin = 0; ; spin++) {
      const body = { gameId, playerId, wagerUsd: 0.25, requestId: `${playerId}-${spin}` };
      const answer = await partner.POST('/spin', { body }).catch(() => undefined);
      if (answer?.data === undefined) return;
      if (dealt.push(answer.data.spinId) === STOPPED_AFTER) onEnough();
    }
  };
  const ended = Promise.all(Array.from({ length: SPINNING }, (_, n) => spinOn(`player-${n}`)));
  await Promise.race([enough, ended]);
  return { dealt, ended };
}

async function main(): Promise<void> {
  if (process.getuid?.() !== 0) throw new Error('Only root can run it as another user');
  const undo: (() => unknown)[] = [];
  try {
    const { config, root, undo: removeContainer } = build();
    undo.push(removeContainer);
    say(`image: ${execFileSync('du', ['-sh', join(root, 'spindle')], { encoding: 'utf8' }).split('\t')[0]}`);
    check(config.User === 'node' && config.StopSignal === 'SIGTERM', 'it names its user and SIGTERM');
    const { toTheEnd, start, stop } = await deploy(undo, config, root);

    say('the schema');
    await toTheEnd('worker', 'node', 'dist/src/main.js', '--migrate');
    say('worker');
    const { container: worker } = await start('worker');
    say('http');
    const http = await start('http');
    say('the command');
    await checkCommand(http);
    say('spins, and a stop in the middle of them');
    const { partner, gameId } = await firstSpin();
    const { dealt, ended } = await spinAway(partner, gameId);
    await stop('http', http.container);
    await ended;
    await stop('worker', worker);

    say('again');
    await toTheEnd('worker', 'spindle', 'audit');
    const { container: again } = await start('worker');
    const { container: front } = await start('http');
    for (const spinId of dealt)
      await bodyOf(partner.GET('/spins/{spinId}', { params: { path: { spinId } } }));
    check(dealt.length >= STOPPED_AFTER, `each of ${dealt.length} spins that were answered is there`);
    await stop('http', front);
    await stop('worker', again);
    say('the image holds');
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

await main();
