/** Runs one archive command in its own process. archive.ts passes the parameters as JSON text. */
import { constants, setPriority } from 'node:os';
import { resourceUsage } from 'node:process';
import { archiveDay } from '../src/books/archive/archiveDay.js';
import { dropDay } from '../src/books/archive/dropDay.js';
import { connectPostgres } from '../src/postgres/connect.js';

export interface StepOrder {
  readonly command: 'archive' | 'drop';
  readonly databaseUrl: string;
  readonly directory: string;
  readonly day: string;
  readonly today: string;
  readonly keepDays: number;
}

export interface StepResult {
  readonly seconds: number;
  /** CPU time of this process in ms, without the time to load the modules. */
  readonly cpuMs: number;
  /** Largest resident set size of the process, in bytes. */
  readonly memoryBytes: number;
  /** Number of archived rows, and size of their files in bytes. Both are 0 if the command drops a day. */
  readonly entries: number;
  readonly bytes: number;
  readonly refused?: string;
}

// This process runs at low priority, like the archive commands of `spindle ledger`.
setPriority(constants.priority.PRIORITY_LOW);
const order = JSON.parse(process.argv[2]!) as StepOrder;
const { command, databaseUrl, directory, day, today, keepDays } = order;
const sql = connectPostgres(databaseUrl, { max: 2, name: 'archive', onError: () => {} });
const startedMs = performance.now();
const before = process.cpuUsage();
const options = { day, directory, actor: 'bench', today };

async function run(): Promise<Pick<StepResult, 'entries' | 'bytes' | 'refused'>> {
  if (command === 'archive') return archiveDay(sql, options);
  const { faults, refused } = await dropDay(sql, { ...options, keepDays });
  const why = refused ?? faults.map(({ problem }) => problem)[0];
  return { entries: 0, bytes: 0, ...(why === undefined ? {} : { refused: why }) };
}

const { entries, bytes, refused } = await run();
const { user, system } = process.cpuUsage(before);
const result: StepResult = {
  seconds: (performance.now() - startedMs) / 1000,
  cpuMs: (user + system) / 1000,
  memoryBytes: resourceUsage().maxRSS * 1024,
  entries,
  bytes,
  ...(refused === undefined ? {} : { refused }),
};
console.log(JSON.stringify(result));
await sql.end();
