/**
 * `spindle compliance report`: writes the data for an audit of some days as files of one folder. All data
 * comes page by page over the operator API. So an auditor's key is sufficient, and only one page is held in
 * memory.
 */
import { createHash } from 'node:crypto';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bodyOf, type OperatorClient } from '../../api/client/apiClients.js';
import { DAY_MS, isDay } from '../../domain/days.js';
import { makePrivateFolder, openPrivate } from '../../platform/files.js';
import { UsageError } from '../command.js';
import { table } from '../output.js';
import { type Call, note, type OperatorCommands, type Schemas } from './call.js';

const INDEX = 'index.json';
const PAGE = 100;
const EVENTS_PAGE = 100;
/** Maximum number of days for which the API lists the judgements of a game's RTP. */
const HISTORY_DAYS_MAX = 400;

/** Range of UTC days, both inclusive. */
interface Range {
  readonly from: string;
  readonly to: string;
}
type Rows = AsyncGenerator<object, void, undefined>;
interface Written {
  readonly file: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
}

export function addComplianceCommands(commands: OperatorCommands): void {
  const group = commands.group('compliance', 'data for an auditor');
  commands
    .add(
      'report',
      'write the reports, events, RTP judgements, audit log and settings of a range of days',
      report,
      group,
    )
    .requiredOption('--from <DATE>', 'first UTC day, YYYY-MM-DD')
    .requiredOption('--to <DATE>', 'last UTC day, included in the report')
    .requiredOption('--out <DIR>', 'folder for the files; it must be empty or not exist yet')
    .addHelpText(
      'after',
      `
Each file contains one JSON value in each line. ${INDEX} is written last and contains the SHA-256 of each file. The key of an
auditor is sufficient. No file contains a secret.

Example:
  spindle compliance report --from 2026-10-01 --to 2026-10-31 --out october --key-file auditor.key`,
    );
}

const FILES: Readonly<Record<string, (client: OperatorClient, range: Range) => Rows>> = {
  'games.jsonl': gamesReport,
  'liability.jsonl': liability,
  'events.jsonl': events,
  'returns.jsonl': returns,
  'reviews.jsonl': reviews,
  'settlements.jsonl': settlements,
  'audit-log.jsonl': auditLog,
  'program.jsonl': program,
  'partners.jsonl': partners,
  'configuration.jsonl': configuration,
};

async function report({ client, options, print }: Call): Promise<void> {
  const { from, to, out } = options as Record<'from' | 'to' | 'out', string>;
  for (const day of [from, to]) {
    if (!isDay(day)) throw new UsageError(`«${day}» is not a date in the form YYYY-MM-DD`);
  }
  if (to < from) throw new UsageError('--to must not be before --from');
  await makePrivateFolder(out);
  if ((await readdir(out)).length > 0) throw new UsageError(`The folder ${out} must be empty`);
  const files: Written[] = [];
  for (const [file, rows] of Object.entries(FILES)) {
    note(`${file} …`);
    files.push(await write(out, file, rows(client, { from, to })));
  }
  const { operator } = await bodyOf(client.GET('/session', {})).catch(() => ({ operator: null }));
  const index = { report: 'compliance', from, to, generatedAt: new Date().toISOString(), operator, files };
  await writeFile(join(out, INDEX), `${JSON.stringify(index, undefined, 2)}\n`, { flag: 'wx', mode: 0o600 });
  print(index, () =>
    table(
      [
        { heading: 'file', value: (row) => row.file },
        { heading: 'rows', value: (row) => row.rows, kind: 'number' },
        { heading: 'bytes', value: (row) => row.bytes, kind: 'number' },
        { heading: 'SHA-256', value: (row) => row.sha256 },
      ],
      files,
    ),
  );
}

async function write(folder: string, file: string, rows: Rows): Promise<Written> {
  const handle = await openPrivate(join(folder, file), 'wx');
  const digest = createHash('sha256');
  let [count, bytes] = [0, 0];
  try {
    for await (const row of rows) {
      const line = Buffer.from(`${JSON.stringify(row)}\n`);
      digest.update(line);
      await handle.write(line);
      count++;
      bytes += line.length;
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  return { file, rows: count, bytes, sha256: digest.digest('hex') };
}

/**
 * Yields the items of a paged list, newest first. New items shift the pages, so items that were already
 * yielded are skipped.
 * @param idOf returns the id of an item; ids descend from item to item
 */
async function* byPage<Item>(
  read: (page: number) => Promise<{ readonly items: readonly Item[]; readonly total: number }>,
  idOf: (item: Item) => number,
): AsyncGenerator<Item, void, undefined> {
  let below = Number.POSITIVE_INFINITY;
  for (let page = 1; ; page++) {
    const { items, total } = await read(page);
    for (const item of items) {
      if (idOf(item) >= below) continue;
      below = idOf(item);
      yield item;
    }
    if (page * PAGE >= total || items.length === 0) return;
  }
}

async function* gamesReport(client: OperatorClient, { from, to }: Range): Rows {
  let cursor: string | null = null;
  do {
    const query = { interval: 'RANGE', from, to, ...(cursor === null ? {} : { cursor }) };
    const { rows, nextCursor, ...head } = (await bodyOf(
      client.GET('/reports/games', { params: { query } }),
    )) as Schemas['GamesReport'];
    // The first row of the file contains the totals of all games.
    if (cursor === null) yield head;
    yield* rows;
    cursor = nextCursor;
  } while (cursor !== null);
}

/**
 * Yields the liability at the end of the last day of the report, or the current liability if that day is not
 * over.
 */
async function* liability(client: OperatorClient, { to }: Range): Rows {
  const query = to < new Date().toISOString().slice(0, 10) ? { date: to } : {};
  yield (await bodyOf(client.GET('/reports/liability', { params: { query } }))) as Schemas['LiabilityReport'];
}

/** Returns the start of the next day as an RFC 3339 time. */
const endOf = (day: string): string => new Date(Date.parse(`${day}T00:00:00Z`) + DAY_MS).toISOString();

async function* events(client: OperatorClient, { from, to }: Range): Rows {
  const range = { from: `${from}T00:00:00Z`, to: endOf(to), limit: EVENTS_PAGE };
  let cursor: string | null = null;
  do {
    const query = { ...range, ...(cursor === null ? {} : { cursor }) };
    const page = (await bodyOf(
      client.GET('/reports/events', { params: { query } }),
    )) as Schemas['EventsReport'];
    yield* page.events;
    cursor = page.nextCursor;
  } while (cursor !== null);
}

const games = (client: OperatorClient) =>
  byPage(
    async (page) => {
      const query = { page, limit: PAGE };
      const body = await bodyOf(client.GET('/games', { params: { query } }));
      return { items: body.games, total: body.total };
    },
    ({ gameConfigId }) => gameConfigId,
  );

/** Yields the return of each slot game: in its current windows, and as judged on each day. */
async function* returns(client: OperatorClient, { from, to }: Range): Rows {
  const days = Math.ceil((Date.now() - Date.parse(`${from}T00:00:00Z`)) / DAY_MS);
  const query = { days: Math.max(1, Math.min(HISTORY_DAYS_MAX, days)) };
  for await (const { gameConfigId: id, gameType } of games(client)) {
    if (gameType !== 'slot') continue;
    const rtp = await bodyOf(client.GET('/games/{id}/rtp', { params: { path: { id }, query } }));
    yield { ...rtp, history: rtp.history?.filter(({ day }) => day >= from && day <= to) };
  }
}

function reviews(client: OperatorClient): Rows {
  return byPage(
    async (page) => {
      const query = { page, limit: PAGE };
      const body = await bodyOf(client.GET('/rtp-reviews', { params: { query } }));
      return { items: body.reviews, total: body.total };
    },
    ({ reviewId }) => reviewId,
  );
}

/**
 * Yields the newest revision of each settlement report of the days. It contains the report's hashes and the
 * checkpoint of the public log that the report refers to.
 */
async function* settlements(client: OperatorClient, { from, to }: Range): Rows {
  for (let page = 1; ; page++) {
    const query = { page, limit: PAGE };
    const { reports, total } = await bodyOf(client.GET('/settlements', { params: { query } }));
    for (const { partnerId: id, reportDate: date } of reports) {
      if (date < from || date > to) continue;
      yield (await bodyOf(
        client.GET('/partners/{id}/settlements/{date}', { params: { path: { id, date } } }),
      )) as Schemas['SettlementReport'];
    }
    // Reports are listed by descending day, so the loop ends at the first earlier day.
    const isPast = reports.at(-1) === undefined || reports.at(-1)!.reportDate < from;
    if (isPast || page * PAGE >= total) return;
  }
}

/**
 * Yields audit log entries, newest first, with their chain hashes. The public log contains one of these
 * hashes per day.
 */
async function* auditLog(client: OperatorClient, { from, to }: Range): Rows {
  const range = { from: `${from}T00:00:00Z`, to: endOf(to) };
  yield* byPage(
    async (page) => {
      const query = { ...range, page, limit: PAGE };
      const body = (await bodyOf(client.GET('/audit-log', { params: { query } }))) as Schemas['AuditLog'];
      return { items: body.entries, total: body.total };
    },
    ({ auditId }) => auditId,
  );
}

/**
 * Yields the program checks of the processes, newest first, with the version and the file list of each check.
 */
async function* program(client: OperatorClient, { from, to }: Range): Rows {
  const [start, end] = [`${from}T00:00:00`, endOf(to)];
  const all = byPage(
    async (page) => {
      const query = { page, limit: PAGE };
      const body = await bodyOf(client.GET('/program-checks', { params: { query } }));
      return { items: body.checks, total: body.total };
    },
    ({ checkId }) => checkId,
  );
  for await (const check of all) {
    if (check.at < start) return;
    if (check.at < end) yield check;
  }
}

/** Yields all partners with their limits, followed by all games. */
async function* partners(client: OperatorClient): Rows {
  const body = await bodyOf(client.GET('/partners', {}));
  for (const partner of body.partners) yield { partner };
  for await (const game of games(client)) yield { game };
}

/**
 * Yields the global configuration: API versions, dealing switch, operators, cursors of the cells, and days of
 * the ledger.
 */
async function* configuration(client: OperatorClient): Rows {
  yield { apiVersions: await bodyOf(client.GET('/api-versions', {})) };
  yield { dealing: await bodyOf(client.GET('/dealing', {})) };
  yield { operators: await bodyOf(client.GET('/operators', {})) };
  yield { cells: await bodyOf(client.GET('/cells', {})) };
  yield { ledgerDays: await bodyOf(client.GET('/ledger/days', {})) };
}
