/** Starts the service under test in this process, or from the build as a separate process. */
import { pino } from 'pino';
import { readConfig } from '../../src/app/config.js';
import type { Constants } from '../../src/app/constants.js';
import type { CheckFiles } from '../../src/app/oversight/programChecker.js';
import { checkFilesOf } from '../../src/app/program/programFiles.js';
import { type Running, start, type World } from '../../src/main.js';
import { nameServers } from '../../src/webhooks/allowedAddresses.js';
import type { ProgramPart } from '../../workers/checkProgram.js';
import { Client, OPERATOR_KEY } from './client.js';
import { mainOf, ROOT } from './root.js';
import { ServerProcess } from './serverProcess.js';
import type { StoreUrls } from './stores.js';

/**
 * Changes constants of the service for a test (src/app/constants.ts). The interval in which restrictions are
 * read is longer, so that a busy machine reads changes in time.
 */
export const constants = (changed: Partial<Constants>): { TEST_CONSTANTS: string } => ({
  TEST_CONSTANTS: JSON.stringify({ restrictionReadMs: 20_000, ...changed }),
});

export function environment(stores: StoreUrls, more: NodeJS.ProcessEnv = {}) {
  return {
    REDIS_URL: stores.redisUrl,
    DATABASE_URL: stores.databaseUrl,
    OPERATOR_API_KEY: OPERATOR_KEY,
    PORT: '0',
    METRICS_PORT: '0',
    // The service has few cells, because each cell takes time at the start.
    CELLS: '4',
    LOG_LEVEL: 'silent',
    // The long deadline makes sure that spins are dealt on a busy machine. Tests of the deadline set their
    // own.
    SPIN_DEADLINE_MS: '20000',
    ...constants({}),
    // Some tests run once for each HTTP server, as vitest.config.ts defines.
    ...(process.env.HTTP_SERVER === undefined ? {} : { HTTP_SERVER: process.env.HTTP_SERVER }),
    ...more,
  };
}

/** The program's files stay the same while tests run, so the services of this process share their check. */
const checked = new Map<ProgramPart, ReturnType<CheckFiles>>();
function checkFilesOnce(part: ProgramPart): ReturnType<CheckFiles> {
  const found = checked.get(part) ?? checkFilesOf(readConfig({}))(part);
  checked.set(part, found);
  return found;
}

const WORLD: World = { resolve: nameServers(), now: Date.now, checkFiles: checkFilesOnce };

export async function startService(
  stores: StoreUrls,
  more: NodeJS.ProcessEnv = {},
  world: Partial<World> = {},
): Promise<Client & { running: Running; stop(): Promise<void> }> {
  const config = readConfig(environment(stores, more));
  const running = await start(config, pino({ level: config.LOG_LEVEL }), () => {}, {
    ...WORLD,
    ...world,
  });
  return Object.assign(new Client(`http://127.0.0.1:${running.port}`), {
    running,
    stop: () => running.stop(),
  });
}

/**
 * Starts the built service as a separate process, and resolves once it reports that it is ready.
 * @param root the folder with the build
 */
export function spawnService(
  env: NodeJS.ProcessEnv,
  args: readonly string[] = [],
  root = ROOT,
): Promise<ServerProcess> {
  return ServerProcess.launch({ env, args, program: mainOf(root) }).ready();
}

export interface LoggedService extends Client {
  readonly running: Running;
  /** The log lines that the service has written so far. */
  readonly lines: readonly Record<string, unknown>[];
  /**
   * Returns the sum of the time series with a name and a label, such as
   * `spindle_errors_total{code="KS-5004"}`.
   */
  metric(series: string): Promise<number>;
}

/** Starts the service in this process and keeps its log lines. */
export async function startLogged(stores: StoreUrls, more: NodeJS.ProcessEnv = {}): Promise<LoggedService> {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const running = await start(readConfig(environment(stores, more)), log, () => {}, WORLD);
  return Object.assign(new Client(`http://127.0.0.1:${running.port}`), {
    running,
    lines,
    async metric(series: string) {
      const text = await (await fetch(`http://127.0.0.1:${running.metricsPort}/metrics`)).text();
      const [name, label = ''] = series.replace('}', '').split('{');
      const isOf = (line: string): boolean =>
        line.startsWith(`${name} `) || (line.startsWith(`${name}{`) && line.includes(label));
      return text
        .split('\n')
        .filter(isOf)
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
    },
  });
}
