/**
 * Handlers of a partner's spins by id and by time, in pages or as CSV of a whole range (docs/contract.md
 * §11). Operators can read any spin.
 */
import { type CsvText, csvTexts } from '../../domain/csv.js';
import { entryCell, firstIdAt } from '../../domain/entryId.js';
import { ApiError, ERRORS, type Fault, invalid } from '../../domain/errors.js';
import { type Partner, prizeTierOf } from '../../domain/game.js';
import type { LedgerEntry } from '../../domain/ledgerColumns.js';
import { ENTRY_KINDS } from '../../domain/ledgerEntry.js';
import { NO_TIME, rfc3339Time } from '../../domain/rfc3339.js';
import { Semaphore } from '../../platform/semaphore.js';
import { SPIN_CSV_HEAD, spinCsvRow } from '../contract/spinCsv.js';
import { booked, knownGame, noSpin } from '../server/found.js';
import { type Route, type RouteRequest, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';
import { isShownAsSpin, shownSpins, spinRecords, statementEntry } from './records.js';
import type { SpinRange, SpinsFound } from './spinHistory.store.js';

/** The largest id that a ledger entry can have. */
const ID_END = 2n ** 63n - 1n;
/**
 * Number of rows in one chunk of CSV. A chunk takes a few milliseconds, after which other requests get their
 * turn.
 */
const CSV_ROWS = 500;
/**
 * Limits of CSV exports in this process: chunks that are rendered at a time, and exports of one partner. A
 * slow client occupies no rendering slot.
 */
const CSV_AT_ONCE = 2;
const CSV_OF_PARTNER_MAX = 4;

type Request = RouteRequest<typeof contract.listSpins>;

interface Wanted extends SpinRange {
  readonly partner: Partner;
  readonly playerId: string | undefined;
}

/**
 * Parses the query of a spin list.
 *
 * @throws ApiError (KS-4101) with all faults of the query
 */
function wantedOf(services: Services, { partner, query }: Request): Wanted {
  const faults: Fault[] = [];
  const time = (name: 'from' | 'to'): number | undefined => {
    const text = query[name];
    if (text === undefined) return undefined;
    const date = rfc3339Time(text);
    if (date !== undefined) return Math.max(0, date.getTime());
    faults.push({ path: `/${name}`, message: NO_TIME });
    return undefined;
  };
  const [fromMs, toMs] = [time('from') ?? 0, time('to')];
  if (toMs !== undefined && toMs < fromMs) faults.push({ path: '/to', message: 'must not be before `from`' });
  const { cursor } = query;
  const after = cursor === undefined ? undefined : services.spinIds.decode(cursor);
  if (cursor !== undefined && after?.partnerId !== partner.partnerId)
    faults.push({ path: '/cursor', message: 'must be a `nextCursor` or a `spinId` of this account' });
  if (faults.length > 0) throw invalid(faults);
  const fromId = firstIdAt(fromMs);
  const afterId = after === undefined ? 0n : after.entryId + 1n;
  const toId = toMs === undefined ? ID_END : firstIdAt(toMs);
  return {
    partner,
    partnerId: partner.partnerId,
    fromId: afterId > fromId ? afterId : fromId,
    toId: toId < ID_END ? toId : ID_END,
    gameId: query.gameId,
    playerId: query.playerId,
  };
}

/**
 * Restricts the range to days that the ledger still has. Of dropped days the ledger has only totals, not
 * entries.
 */
async function keptOf({ store }: Services, wanted: Wanted): Promise<Wanted> {
  const keptFrom = await store.ledgerDays.keptFrom();
  const fromId = keptFrom === undefined ? 0n : firstIdAt(keptFrom.getTime());
  return fromId > wanted.fromId ? { ...wanted, fromId } : wanted;
}

/**
 * Returns spins of one player.
 *
 * @throws ApiError (KS-5002) if the player's newest entry is not committed in time
 */
async function ofPlayer(
  services: Services,
  { partner: { partnerId }, ...wanted }: Wanted,
  playerId: string,
  limit: number,
): Promise<SpinsFound> {
  const player = await services.cells.reads.player(partnerId, playerId);
  if (player === undefined) return { entries: [], nextId: undefined };
  await booked(services.cells, player.newestEntryId);
  const newest = { id: player.newestEntryId, entryNumber: player.entries };
  const firstId = firstIdAt(player.createdAtMs);
  return services.store.spinHistory.playerSpinsByTime(
    { partnerId, playerId, newest, firstId },
    wanted,
    limit,
  );
}

/**
 * Returns one page of spins. Before the last page of the range is returned, all spins acknowledged before
 * this call must be committed.
 *
 * @throws ApiError (KS-5002) if these spins are not committed in time
 */
async function pageOf(services: Services, wanted: Wanted, limit: number): Promise<SpinsFound> {
  const { store } = services;
  const { reads } = services.cells;
  if (wanted.playerId !== undefined) return ofPlayer(services, wanted, wanted.playerId, limit);
  const { cell } = wanted.partner;
  // The outbox is read before the ledger. An entry that is committed between the two reads leaves the outbox.
  // If the ledger were read first, both reads would miss this entry.
  const before = await reads.newestInOutbox(cell);
  const found = await store.spinHistory.spinsByTime(wanted, limit);
  if (found.nextId !== undefined) return found;
  const isMoved = found.reach.cell !== cell;
  if (!isMoved && before <= found.reach.toId) return found;
  const newestId = isMoved ? await reads.newestInOutbox(found.reach.cell) : before;
  if (newestId > found.reach.toId) await booked(services.cells, newestId);
  return store.spinHistory.spinsByTime(wanted, limit);
}

/** Counts the running exports of each partner. */
class Exports {
  readonly #ofPartner = new Map<number, number>();
  readonly #turns = new Semaphore(CSV_AT_ONCE);

  async *run(services: Services, request: Request): AsyncGenerator<string> {
    const { partner } = request;
    const wanted = await keptOf(services, wantedOf(services, request));
    const csvText = csvTexts(request.query);
    const open = this.#ofPartner.get(partner.partnerId) ?? 0;
    if (open >= CSV_OF_PARTNER_MAX) {
      const message = `At most ${CSV_OF_PARTNER_MAX} CSV exports of a partner can run at a time. Wait until one has ended.`;
      throw new ApiError(ERRORS.apiRateExceeded, { details: [{ path: '', message }] });
    }
    this.#ofPartner.set(partner.partnerId, open + 1);
    try {
      let fromId: bigint | undefined = wanted.fromId;
      let head = SPIN_CSV_HEAD;
      while (fromId !== undefined) {
        const range: Wanted = { ...wanted, fromId };
        const [found, text] = await this.#turns.run(async () => {
          const page = await pageOf(services, range, CSV_ROWS);
          return [page, head + (await csvOf(services, partner, page.entries, csvText))] as const;
        });
        // Dropped days are checked after the rows are read. Otherwise the rows of a day that is dropped
        // during the read would be missing without notice.
        if ((await keptOf(services, range)).fromId > fromId)
          throw new Error('a day of the ledger was dropped while its spins were exported as CSV');
        head = '';
        if (text !== '') yield text;
        fromId = found.nextId;
      }
    } finally {
      const left = this.#ofPartner.get(partner.partnerId)! - 1;
      if (left > 0) this.#ofPartner.set(partner.partnerId, left);
      else this.#ofPartner.delete(partner.partnerId);
    }
  }
}

async function csvOf(
  services: Services,
  { partnerId }: Partner,
  entries: readonly LedgerEntry[],
  csvText: CsvText,
): Promise<string> {
  let text = '';
  for (const shown of await shownSpins(services.store, entries)) {
    const { entry } = shown;
    const game = services.catalog.game(entry.gameId) ?? (await knownGame(services.catalog, entry.gameId));
    const spinId = services.spinIds.encodeOne(entry.id, partnerId);
    text += spinCsvRow({ ...shown, spinId, prizeTier: prizeTierOf(game, entry.outcomeCode) }, csvText);
  }
  return text;
}

const getSpin = (services: Services): Route =>
  route(contract.getSpin, async ({ partner, params }) => {
    const meant = services.spinIds.decode(params.spinId);
    if (meant === undefined || meant.partnerId !== partner.partnerId) throw new ApiError(ERRORS.notFound);
    await booked(services.cells, meant.entryId);
    const entry = await services.store.ledgerEntries.find(meant.entryId);
    if (entry === undefined || !isShownAsSpin(entry)) throw await noSpin(services.store, meant.entryId);
    const [record] = await spinRecords(services, partner, [entry]);
    return { ...record, playerId: entry.playerId };
  });

const feedRoutes = (services: Services): Route[] => {
  const exports = new Exports();
  return [
    route(
      contract.listSpins,
      async (request) => {
        const { partner, query } = request;
        const { entries, nextId } = await pageOf(
          services,
          await keptOf(services, wantedOf(services, request)),
          query.limit,
        );
        const records = await spinRecords(services, partner, entries);
        const spins = records.map((record, place) => ({ ...record, playerId: entries[place]!.playerId }));
        const nextCursor =
          nextId === undefined ? null : services.spinIds.encodeOne(nextId - 1n, partner.partnerId);
        const keptFrom = await services.store.ledgerDays.keptFrom();
        const completeFrom = keptFrom === undefined ? {} : { completeFrom: keptFrom.toISOString() };
        return { spins, nextCursor, ...completeFrom };
      },
      {
        csvPieces: (request) => exports.run(services, request),
        csvHeaders: async () => {
          const keptFrom = await services.store.ledgerDays.keptFrom();
          return keptFrom === undefined ? '' : `X-Complete-From: ${keptFrom.toISOString()}`;
        },
      },
    ),
  ];
};

const showSpin = (services: Services): Route =>
  route(contract.showSpin, async ({ params }) => {
    const { store, spinIds } = services;
    const meant = spinIds.decode(params.spinId);
    const partner = meant === undefined ? undefined : await store.partners.find(meant.partnerId);
    if (meant === undefined || partner === undefined) throw new ApiError(ERRORS.notFound);
    await booked(services.cells, meant.entryId);
    const entry = await store.ledgerEntries.find(meant.entryId);
    if (entry === undefined || entry.partnerId !== partner.partnerId || !isShownAsSpin(entry))
      throw await noSpin(store, meant.entryId);
    // A forced spin took no outcome of the game's sequence, so it belongs to no block.
    const hasPlace = ENTRY_KINDS[entry.kind].advancesGameIndex;
    const [[record], block] = await Promise.all([
      spinRecords(services, partner, [entry]),
      hasPlace ? store.spinBlocks.find(entry.gameId, entry.outcomeIndex) : undefined,
    ]);
    return {
      partnerId: partner.partnerId,
      spin: { ...record, playerId: entry.playerId },
      entry: {
        ...statementEntry(services, entry),
        cell: entryCell(entry.id),
        previousEntryId: String(entry.previousId),
        outcomeIndex: hasPlace ? entry.outcomeIndex : null,
        outcomeCode: entry.outcomeCode,
      },
      block: block ?? null,
    };
  });

/** Returns the routes of spin queries. SpinEndpoint serves the requests that play a spin. */
export const spinRoutes = (services: Services): Route[] => [
  ...feedRoutes(services),
  getSpin(services),
  showSpin(services),
];
