/**
 * Starts the complete service as it is deployed: its processes on their own stores, with partners, games and
 * raffles that are created by its APIs, without rate limits.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bodyOf } from '../src/api/client/apiClients.js';
import { freePort } from '../src/app/embedded/index.js';
import { CELLS_BY_DEFAULT } from '../src/app/settings.js';
import { readGame } from '../src/engine/redis/cellRecords.js';
import { gamesKey, outboxKey } from '../src/engine/redis/keys.js';
import { Api } from '../test/support/api.js';
import type { Cleanup } from '../test/support/cleanup.js';
import { ROOT } from '../test/support/root.js';
import { type Launch, ServerProcess } from '../test/support/serverProcess.js';
import { pause } from '../test/support/wait.js';
import type { Target } from './load.js';
import type { Processes } from './measure.js';
import type { Shape } from './shape.js';
import { type Books, booksOf, type Stores, startStores } from './stores.js';

export const PAR_SHEET = join('test', 'par-sheets', 'classic-3-reel.json');
export const sheet = JSON.parse(readFileSync(join(ROOT, PAR_SHEET), 'utf8')) as { denominationUsd: number };

const CALLS_AT_ONCE = 8;
const OUTCOMES_DEADLINE_MS = 60_000;
const TICKET_USD = 0.5;
/** A raffle with the largest possible pool, so that it is not sold out during a measurement. */
const RAFFLE = {
  ticketPriceUsd: TICKET_USD,
  poolSize: 1_000_000,
  prizes: [
    { prizeName: 'Car', prizeTier: 6, valueUsd: 5000, count: 2 },
    { prizeName: 'Bicycle', prizeTier: 4, valueUsd: 250, count: 200 },
    { prizeName: 'Again', prizeTier: 1, valueUsd: TICKET_USD, count: 99_798 },
  ],
};

/** A communal progressive with up to 101 winners per event. `often` has the tiers of docs/communal.md. */
const communalRules = (triggerAtSpins: number) => ({
  enabled: true,
  triggerInterval: 100,
  triggerSplitPct: 40,
  communitySplitPct: 60,
  tiers: [
    { tierLevel: 1, tierName: 'Mini', triggerAtSpins, amountUsd: '5.00' },
    { tierLevel: 2, tierName: 'Grand', triggerAtSpins: 10 * triggerAtSpins, amountUsd: '100.00' },
  ],
  windowMinutes: 60,
  communitySize: 100,
  resetProgress: false,
});
const COMMUNAL_SPINS = { rare: 10_000, often: 1000 };
const COMMUNAL_BUDGET = { amountUsd: '100000000.00', reason: 'bench', requestId: 'bench' };

export interface Partner {
  readonly partnerId: number;
  readonly apiKey: string;
  readonly parSheetId: number;
}

export interface Service {
  readonly base: string;
  /** Address of each process's metrics, with the name of the process in `processes`. */
  readonly metrics: readonly { readonly name: string; readonly url: string }[];
  readonly processes: Processes;
  readonly stores: Stores;
  readonly books: Books;
  readonly partners: readonly Partner[];
  /** Targets of the spins: games and raffles, each with the key of its partner. */
  readonly targets: Target[];
  addRaffles(count: number): Promise<Target[]>;
  readonly api: Api;
}

/** Starts a server in production mode and waits until it is ready. The clean-up stops it. */
export async function startServerProcess(launch: Launch, cleanup: Cleanup): Promise<ServerProcess> {
  const server = ServerProcess.launch({ ...launch, env: { NODE_ENV: 'production', ...launch.env } });
  cleanup.add(() => server.stop());
  await server.ready();
  // Output after the start consists of warnings.
  server.child.stderr?.pipe(process.stderr);
  return server;
}

export async function startService(
  shape: Shape,
  cleanup: Cleanup,
  nodeOptions: readonly string[] = [],
  settings: Readonly<Record<string, string>> = {},
): Promise<Service> {
  const cellCount = Number(settings.CELLS ?? CELLS_BY_DEFAULT);
  const stores = await startStores(cleanup, cellCount, shape.nodes);
  const cells = Array.from({ length: cellCount }, (_, cell) => stores.cell(cell));
  const operatorKey = randomBytes(24).toString('hex');
  const environment = {
    REDIS_URL: stores.redisUrl,
    DATABASE_URL: stores.databaseUrl,
    DATA_DIR: stores.folder,
    OPERATOR_API_KEY: operatorKey,
    PORT: '0',
    METRICS_PORT: '0',
    CELLS: String(cells.length),
    ACK: shape.ack,
    LOG_LEVEL: 'warn',
    ...settings,
  };
  const start = (env: Record<string, string>) =>
    startServerProcess({ nodeOptions, env: { ...environment, ...env } }, cleanup);
  const started: { name: string; server: ServerProcess }[] = [];
  if (shape.frontEnds === 0) {
    started.push({ name: 'server', server: await start({}) });
  } else {
    // The worker starts first, because it prepares the cells that the front ends deal from.
    started.push({ name: 'worker', server: await start({ ROLES: 'worker' }) });
    // The port is chosen beforehand, because processes cannot share a port that the kernel chooses.
    const PORT = String(await freePort());
    for (let frontEnd = 0; frontEnd < shape.frontEnds; frontEnd++)
      started.push({ name: 'server', server: await start({ ROLES: 'http', PORT }) });
  }
  const base = started.map(({ server }) => server.base).find((each) => each !== undefined)!;
  const processes: Record<string, number[]> = {};
  for (const { name, server } of started) processes[name] = [...(processes[name] ?? []), server.pid];

  const api = new Api(base, operatorKey);
  const makePartner = async (number: number): Promise<Partner> => {
    const { partnerId, key } = await api.newPartner(`bench-${number}`);
    return { partnerId, apiKey: key, parSheetId: await api.addSheet(key, sheet) };
  };
  const partners = await eachOf(shape.partners, makePartner);
  const targets: Target[] = [];

  const makeGame = async (number: number): Promise<Target> => {
    const owner = partners[number % partners.length]!;
    const gameId = await addSlot(api, owner, `bench-${number}`, shape.communal);
    return { apiKey: owner.apiKey, gameId, wagerUsd: sheet.denominationUsd };
  };
  const makeRaffle = async (number: number): Promise<Target> => {
    const { apiKey, partnerId } = partners[number % partners.length]!;
    const gameId = await api.addRaffle(partnerId, `raffle-${number}`, RAFFLE);
    return { apiKey, gameId, wagerUsd: RAFFLE.ticketPriceUsd };
  };

  /** Waits until each game and raffle has outcomes to deal. */
  const haveOutcomes = async (): Promise<void> => {
    const deadline = performance.now() + OUTCOMES_DEADLINE_MS;
    for (;;) {
      const games = await Promise.all(cells.map(({ redis, name }) => redis.hvalsBuffer(gamesKey(name))));
      const queues = games.flat().map(readGame);
      const ready = queues.filter(({ nextIndex, queueEnd }) => queueEnd > nextIndex).length;
      if (ready >= targets.length) return;
      if (performance.now() > deadline)
        throw new Error(`Only ${ready} of ${targets.length} games have outcomes`);
      await pause(50);
    }
  };
  const addRaffles = async (count: number): Promise<Target[]> => {
    const made = await eachOf(count, makeRaffle);
    targets.push(...made);
    await haveOutcomes();
    return made;
  };
  if (shape.gameType === 'raffle') await addRaffles(shape.games);
  else {
    targets.push(...(await eachOf(shape.games, makeGame)));
    await haveOutcomes();
  }
  return {
    base,
    metrics: started.map(({ name, server }) => ({ name, url: server.metrics! })),
    processes: { ...processes, ...stores.processes },
    stores,
    books: booksOf(
      stores,
      cells.map(({ redis, name }) => ({ redis, key: outboxKey(name) })),
      'SELECT count(*) AS rows FROM ledger WHERE kind = 1',
    ),
    partners,
    targets,
    addRaffles,
    api,
  };
}

/** @param fires how often the game's communal progressive fires; undefined: the game has none */
async function addSlot(
  api: Api,
  { apiKey, parSheetId }: Partner,
  name: string,
  fires: keyof typeof COMMUNAL_SPINS | undefined,
): Promise<number> {
  const gameId = await api.addGame(apiKey, parSheetId, name);
  if (fires === undefined) return gameId;
  const { operator } = api;
  const params = { path: { id: gameId } };
  const body = communalRules(COMMUNAL_SPINS[fires]);
  await bodyOf(operator.PUT('/games/{id}/communal', { params, body }));
  await bodyOf(operator.POST('/games/{id}/communal/funding', { params, body: COMMUNAL_BUDGET }));
  return gameId;
}

/** Creates a number of objects, a few at a time. Returns them in order. */
async function eachOf<T>(count: number, make: (number: number) => Promise<T>): Promise<T[]> {
  const made: T[] = [];
  let next = 0;
  const line = async (): Promise<void> => {
    while (next < count) {
      const number = next++;
      made[number] = await make(number);
    }
  };
  await Promise.all(Array.from({ length: Math.min(CALLS_AT_ONCE, count) }, line));
  return made;
}
