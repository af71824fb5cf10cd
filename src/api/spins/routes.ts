/**
 * Handlers of a partner's spins by id and by time, in pages or as CSV of a whole range (docs/contract.md
 * §11). Operators can read any spin.
 */
import { type CsvText, csvTexts } from '../../domain/csv.js';
import { dayOf, startOf } from '../../domain/days.js';
import { entryCell, firstIdAt } from '../../domain/entryId.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import { type Partner, prizeTierOf } from '../../domain/game.js';
import type { LedgerEntry } from '../../domain/ledgerColumns.js';
import { ENTRY_KINDS, isShownAsSpin } from '../../domain/ledgerEntry.js';
import { FairQueue } from '../../platform/runtime/fairQueue.js';
import { SPIN_CSV_HEAD, spinCsvRow } from '../contract/spinCsv.js';
import {
  completeAfter,
  completeFrom,
  cursorBefore,
  type FeedRange,
  feedPage,
  feedRange,
  keptOf,
} from '../server/feed.js';
import { booked, knownGame, noSpin } from '../server/found.js';
import { JsonText, type Route, type RouteRequest, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';
import { shownSpins, spinRecords, spinTexts, statementEntry } from './records.js';
import type { SpinsFound, SpinsOfPartner } from './spinHistory.store.js';

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

const wantedOf = (services: Services, { partner, query }: Request): FeedRange =>
  feedRange(services, partner, query, 'spinId');

/**
 * Returns spins of one player.
 *
 * @throws ApiError (KS-5002) if the player's newest entry is not committed in time
 */
async function ofPlayer(
  services: Services,
  { partner: { partnerId }, ...wanted }: FeedRange,
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
 * Before the last page of the range is returned, all spins acknowledged before this call must be committed.
 * @throws ApiError (KS-5002) if these spins are not committed in time
 */
const pageOf = (
  services: Services,
  wanted: FeedRange,
  limit: number,
): Promise<SpinsFound | SpinsOfPartner> =>
  wanted.playerId === undefined
    ? feedPage(services, wanted.partner, () => services.store.spinHistory.spinsByTime(wanted, limit))
    : ofPlayer(services, wanted, wanted.playerId, limit);

/** Counts the running exports of each partner. */
class Exports {
  readonly #ofPartner = new Map<number, number>();
  readonly #turns = new FairQueue({ atOnce: CSV_AT_ONCE });

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
        const range: FeedRange = { ...wanted, fromId };
        const [found, text] = await this.#turns.run(partner.partnerId, async () => {
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
    const [text] = await spinTexts(services, partner, [entry], true);
    return new JsonText(text!);
  });

const feedRoutes = (services: Services): Route[] => {
  const exports = new Exports();
  return [
    route(
      contract.listSpins,
      async (request) => {
        const { partner, query } = request;
        const wanted = wantedOf(services, request);
        const isOfPlayer = wanted.playerId !== undefined;
        const page = await pageOf(
          services,
          isOfPlayer ? await keptOf(services, wanted) : wanted,
          query.limit,
        );
        const { entries, nextId } = page;
        const spins = await spinTexts(services, partner, entries, true);
        const rest = JSON.stringify({
          nextCursor: cursorBefore(services, partner, nextId),
          // Nothing of today can have been dropped since the page was read.
          ...('reach' in page && wanted.fromId >= firstIdAt(startOf(dayOf(Date.now())))
            ? completeAfter(page.reach.droppedDay)
            : await completeFrom(services)),
        });
        return new JsonText(`{"spins":[${spins}],${rest.slice(1)}`);
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
    return shownSpin(services, partner, entry);
  });

/** Returns a spin as operators see it: its response, its ledger entry and its block. */
export async function shownSpin(services: Services, partner: Pick<Partner, 'partnerId'>, entry: LedgerEntry) {
  // A forced spin took no outcome of the game's sequence, so it belongs to no block.
  const hasPlace = ENTRY_KINDS[entry.kind].advancesGameIndex;
  const [[record], block] = await Promise.all([
    spinRecords(services, partner, [entry]),
    hasPlace ? services.store.spinBlocks.find(entry.gameId, entry.outcomeIndex) : undefined,
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
}

/** SpinEndpoint serves the requests that play a spin. */
export const spinRoutes = (services: Services): Route[] => [
  ...feedRoutes(services),
  getSpin(services),
  showSpin(services),
];
