/**
 * `spindle capacity`: computes the resources that a load needs from measured units. Contacts no service or
 * store.
 */
import { type Command, InvalidArgumentError } from 'commander';
import { type Capacity, capacityOf, type Load } from '../domain/capacity.js';
import { type TableColumn, table } from './output.js';

/** Maximum number of spins a second, partners, players or days. No installation has more. */
const COUNT_MAX = 1_000_000_000;

function count(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1 || value > COUNT_MAX)
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${COUNT_MAX}.`);
  return value;
}

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];

/** Formats bytes for people, in powers of 1,000 with three digits. */
export function sizeText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${Number(value.toPrecision(3))} ${UNITS[unit]}`;
}

/** Formats a number of cores for people, with at least one digit that is not zero. */
export const coresText = (cores: number): string =>
  cores < 0.1 ? String(Number(cores.toPrecision(1))) : cores.toFixed(2);

export const CAPACITY_ROWS: readonly (readonly [
  what: string,
  value: (capacity: Capacity, load: Load) => string,
])[] = [
  ['front ends', ({ frontEnds, cores }) => `${frontEnds} (${coresText(cores.frontEnd)} cores)`],
  ['workers', ({ workers, cores }) => `${workers} (${coresText(cores.worker)} cores)`],
  ['Redis nodes', ({ redisNodes, cores }) => `${redisNodes} (${coresText(cores.redis)} cores)`],
  ['Postgres', ({ cores }) => `${coresText(cores.postgres)} cores`],
  ['memory of Redis, all nodes', ({ bytes }) => sizeText(bytes.redis)],
  ['filters of request ids, each front end', ({ bytes }) => sizeText(bytes.filters)],
  ['ledger a day', ({ bytes }) => sizeText(bytes.ledgerDay)],
  ['log of Postgres (WAL) a day', ({ bytes }) => sizeText(bytes.walDay)],
  ['archive a day', ({ bytes }) => sizeText(bytes.archiveDay)],
  ['disk of Postgres, all days kept', ({ bytes }, { days }) => `${sizeText(bytes.postgres)} (${days} days)`],
];

const COLUMNS: readonly TableColumn<(typeof CAPACITY_ROWS)[number]>[] = [
  { heading: 'What', value: ([what]) => what },
];

type CapacityOptions = Omit<Load, 'days'> & { readonly days?: number; readonly json?: boolean };

/** @param settings reads the settings, for the number of days that the ledger is kept */
export function addCapacity(
  program: Command,
  group: string,
  settings: () => Promise<{ readonly LEDGER_KEEP_DAYS: number }>,
): void {
  const command = program
    .command('capacity')
    .description('compute the cores, memory and disk that a load needs')
    .helpGroup(group)
    .requiredOption('--spins <NUMBER>', 'spins a second', count)
    .option('--partners <NUMBER>', 'number of partners that spin', count, 1)
    .option('--players <NUMBER>', 'number of players, of all partners together', count, 100_000)
    .option(
      '--days <NUMBER>',
      'number of days that Postgres keeps the ledger (default: LEDGER_KEEP_DAYS)',
      count,
    )
    .addHelpText(
      'after',
      `
The result is computed from costs that were measured on one machine (docs/scaling.md). To measure your own machine, run
«npm run bench -- run».

Example:
  spindle capacity --spins 10000 --partners 50`,
    )
    .action(async () => {
      const { json, ...given } = command.optsWithGlobals() as CapacityOptions;
      const load = { ...given, days: given.days ?? (await settings()).LEDGER_KEEP_DAYS };
      const capacity = capacityOf(load);
      process.stdout.write(
        json === true
          ? `${JSON.stringify({ load, ...capacity })}\n`
          : table(
              [...COLUMNS, { heading: 'Needs', value: ([, value]) => value(capacity, load) }],
              CAPACITY_ROWS,
            ),
      );
    });
}
