/**
 * The client for a partner's back end: idempotent spins, reads with retries, lists as iterators and typed
 * errors.
 */
import {
  type Answered,
  type ApiOptions,
  type ApiWithin,
  apiWithin,
  bodyOf,
  type PartnerApi,
  partnerApi,
  type Schemas,
  timeOf,
} from './api.js';
import { Blackjack } from './blackjack.js';
import { Communal } from './communal.js';
import { byCursor, byPage } from './pages.js';
import { namedPlayer } from './playerNames.js';
import { Proofs } from './proofs.js';
import { mayReadAgain, mayWriteAgain, repeated } from './retries.js';
import { type NewSpin, type OnceServices, once, type Spin, type SpinOptions } from './spins.js';
import { Webhooks } from './webhookCalls.js';

export interface SpindleOptions extends ApiOptions {
  /**
   * Maximum time for all attempts at a call and the waits between them, in ms. Default: 90,000, so that a
   * call outlasts a window of the rate limit, which is a minute. An iterator has this time for each page.
   */
  readonly deadlineMs?: number;
  /** Creates the requestId of a spin that has none. Default: `crypto.randomUUID`. */
  readonly newRequestId?: () => string;
}

/** Filter of a list of spins. */
export interface SpinRange {
  readonly from?: string;
  readonly to?: string;
  readonly gameId?: number;
  readonly playerId?: string;
  /** The `spinId` of the last spin that the caller already has. */
  readonly cursor?: string;
}

const DEADLINE_MS = 90_000;

export class Spindle {
  /**
   * Typed calls for operations that this class has no method for. Each call is sent once and resolves with
   * `data` or `error`.
   */
  readonly api: PartnerApi;
  /** Blackjack rounds: deal, act and resume. */
  readonly blackjack: Blackjack;
  /** Communal progressives: tiers, progress, events and shares. */
  readonly communal: Communal;
  /** Proofs that outcomes were fixed in the public log before they were dealt. */
  readonly proofs: Proofs;
  readonly webhooks: Webhooks;
  readonly #within: ApiWithin<PartnerApi>;
  readonly #services: OnceServices;

  /** @throws TypeError if the address or the key is missing, or if an option is not valid */
  constructor(options: SpindleOptions) {
    this.api = partnerApi(options);
    this.#within = apiWithin(partnerApi, options);
    this.#services = {
      deadlineMs: timeOf('deadlineMs', options.deadlineMs ?? DEADLINE_MS),
      newRequestId: options.newRequestId ?? (() => crypto.randomUUID()),
    };
    this.blackjack = new Blackjack(options, this.#services);
    this.communal = new Communal(this);
    this.proofs = new Proofs(this);
    this.webhooks = new Webhooks(this);
  }

  /**
   * Spins exactly once, even if the request has to be sent several times. To survive a crash of your own
   * process, store the requestId before the first attempt (`onAttempt`), and call this method again with it
   * after a restart.
   *
   * @throws SpindleError if the service refused the spin; it did not happen
   * @throws UnknownSpinError if the spin may have happened; call again with the error's requestId
   */
  async spin(spin: NewSpin, options: SpinOptions = {}): Promise<Spin> {
    const send = (requestId: string, leftMs: number, signal: AbortSignal | undefined) =>
      bodyOf(this.#within(leftMs).POST('/spin', { body: { ...spin, requestId }, signal: signal ?? null }));
    const { answer, requestId } = await once(this.#services, { requestId: spin.requestId, send }, options);
    return { ...(answer as Schemas['SpinResponse']), requestId };
  }

  async getSpin(spinId: string): Promise<Schemas['SpinRecord']> {
    const params = { path: { spinId } };
    return (await this.read((api) => api.GET('/spins/{spinId}', { params }))) as Schemas['SpinRecord'];
  }

  getPlayer(playerId: string): Promise<Schemas['PlayerResponse']> {
    const { inPath: path, inQuery: query } = namedPlayer(playerId);
    return this.read((api) => api.GET('/players/{playerId}', { params: { path, query } }));
  }

  /**
   * Returns a player's last games as the player saw them, newest first.
   *
   * @param limit number of games, 1 to 50; default: 10
   */
  async recall(playerId: string, limit = 10): Promise<Schemas['RecalledGame'][]> {
    const { inPath: path, inQuery } = namedPlayer(playerId);
    const params = { path, query: { limit, ...inQuery } };
    const { games } = await this.read((api) => api.GET('/players/{playerId}/recall', { params }));
    return games as Schemas['RecalledGame'][];
  }

  /** Iterates over a player's spins, newest first. */
  playerSpins(playerId: string): AsyncGenerator<Schemas['PlayerSpin'], void, undefined> {
    const { inPath: path, inQuery } = namedPlayer(playerId);
    return byPage(
      async (page) => {
        const query = { ...page, ...inQuery };
        const { spins, total } = await this.read((api) =>
          api.GET('/players/{playerId}/spins', { params: { path, query } }),
        );
        return { items: spins as Schemas['PlayerSpin'][], total };
      },
      ({ spinId }) => spinId,
    );
  }

  /**
   * Iterates over the spins of the account by time, oldest first.
   *
   * @param range `from` (inclusive) and `to` (exclusive) as RFC 3339 times; `gameId`, `playerId` and `cursor`
   * restrict the list further
   */
  spins(range: SpinRange = {}): AsyncGenerator<Schemas['SpinRecord'], void, undefined> {
    const { cursor: after, ...filter } = range;
    return byCursor(async (cursor) => {
      const query = { ...filter, limit: 100, ...(cursor === undefined ? {} : { cursor }) };
      const page = (await this.read((api) =>
        api.GET('/spins', { params: { query } }),
      )) as Schemas['SpinFeed'];
      return { items: page.spins, nextCursor: page.nextCursor };
    }, after);
  }

  uploadParSheet(sheet: Schemas['ParSheetBody']): Promise<Schemas['ParSheetResponse']> {
    return this.write((api) => api.POST('/par-sheets', { body: sheet }));
  }

  registerGame(game: Schemas['GameBody']): Promise<Schemas['GameResponse']> {
    return this.write((api) => api.POST('/games', { body: game }));
  }

  async listGames(): Promise<Schemas['GameResponse'][]> {
    return (await this.read((api) => api.GET('/games'))).games;
  }

  async listParSheets(): Promise<Schemas['ParSheetResponse'][]> {
    return (await this.read((api) => api.GET('/par-sheets'))).parSheets;
  }

  /** Returns the pool of a raffle: its commitment and, once the raffle is closed, its contents. */
  async getPool(gameId: number): Promise<Schemas['PoolResponse']> {
    const params = { path: { id: gameId } };
    return (await this.read((api) => api.GET('/games/{id}/pool', { params }))) as Schemas['PoolResponse'];
  }

  /**
   * Returns the assessment of a slot game's return to player, over 30 days and over its lifetime.
   *
   * @param days number of newest days with an assessment of each day; absent: none
   */
  async rtp(gameId: number, days?: number): Promise<Schemas['GameRtp']> {
    const params = { path: { id: gameId }, query: days === undefined ? {} : { days } };
    return (await this.read((api) => api.GET('/games/{id}/rtp', { params }))) as Schemas['GameRtp'];
  }

  /**
   * Returns the wagers and payouts of the account's games in an interval: up to 10,000 games, and the totals
   * of all games.
   *
   * @param interval day, month, year or life to date (UTC), or a range of days (YYYY-MM-DD, both days
   * inclusive)
   */
  async gamesReport(
    interval: 'DTD' | 'MTD' | 'YTD' | 'LTD' | { readonly from: string; readonly to: string },
    gameId?: number,
  ): Promise<Schemas['GamesReport']> {
    const days = typeof interval === 'string' ? { interval } : { interval: 'RANGE', ...interval };
    const params = { query: { ...days, ...(gameId === undefined ? {} : { gameId }) } };
    return (await this.read((api) => api.GET('/reports/games', { params }))) as Schemas['GamesReport'];
  }

  /**
   * Chooses a player's next outcome. For sandbox accounts only. A newer choice replaces an older one, so the
   * call is repeated safely.
   */
  chooseNextOutcome(choice: Schemas['NextOutcomeBody']): Promise<Schemas['NextOutcomeResponse']> {
    return this.read((api) => api.POST('/sandbox/next-outcome', { body: choice }));
  }

  /** Returns the version that the service runs, and how long a requestId stays bound. */
  version(): Promise<Schemas['VersionResponse']> {
    return this.read((api) => api.GET('/version'));
  }

  /**
   * Registers a webhook. The answer contains the signing secret, which is shown only this once. `webhooks`
   * has all other webhook operations.
   */
  registerWebhook(webhook: Schemas['WebhookBody']): Promise<Schemas['WebhookRegistered']> {
    return this.webhooks.register(webhook);
  }

  /**
   * Iterates over the events of the account in the last 30 days, oldest first.
   *
   * @param after event id; only newer events are returned
   */
  events(after?: string): AsyncGenerator<Schemas['FeedEvent'], void, undefined> {
    return byCursor(async (cursor) => {
      const query = { limit: 100, ...(cursor === undefined ? {} : { after: cursor }) };
      const { events, nextCursor } = await this.read((api) => api.GET('/events', { params: { query } }));
      return { items: events, nextCursor };
    }, after);
  }

  /** Iterates over the settlement reports, newest day first. */
  settlements(): AsyncGenerator<Schemas['SettlementReport'], void, undefined> {
    return byPage(
      async (query) => {
        const { reports, total } = await this.read((api) => api.GET('/settlements', { params: { query } }));
        return { items: reports, total };
      },
      ({ reportDate }) => reportDate,
    );
  }

  /**
   * Returns the settlement report of a day.
   *
   * @param date UTC day, YYYY-MM-DD
   */
  async getSettlement(date: string): Promise<Schemas['SettlementReport']> {
    const report = await this.read((api) => api.GET('/settlements/{date}', { params: { path: { date } } }));
    // The response body is text only if the request asked for CSV.
    return report as Schemas['SettlementReport'];
  }

  /**
   * Acknowledges the revision of a settlement report that was read. The service refuses it if a newer
   * revision exists.
   */
  acknowledgeSettlement({
    reportDate,
    revision,
  }: Schemas['SettlementReport']): Promise<Schemas['SettlementReport']> {
    const params = { path: { date: reportDate }, query: { revision } };
    return this.write((api) => api.POST('/settlements/{date}/acknowledge', { params }));
  }

  /**
   * Disputes the revision of a settlement report that was read. The service refuses it if a newer revision
   * exists.
   */
  disputeSettlement(
    { reportDate, revision }: Schemas['SettlementReport'],
    reason: string,
  ): Promise<Schemas['SettlementReport']> {
    const params = { path: { date: reportDate }, query: { revision } };
    return this.write((api) => api.POST('/settlements/{date}/dispute', { params, body: { reason } }));
  }

  /**
   * Sends any other read. It is repeated if no answer comes, or if the error is transient, until the
   * deadline.
   */
  read<Body>(call: (api: PartnerApi) => Promise<Answered<Body>>): Promise<Body> {
    return this.#repeated(call, mayReadAgain);
  }

  /** Sends any other write. It is repeated only if the rate limit refused it. */
  write<Body>(call: (api: PartnerApi) => Promise<Answered<Body>>): Promise<Body> {
    return this.#repeated(call, mayWriteAgain);
  }

  #repeated<Body>(
    call: (api: PartnerApi) => Promise<Answered<Body>>,
    mayRepeat: (error: unknown) => boolean,
  ): Promise<Body> {
    return repeated((leftMs) => bodyOf(call(this.#within(leftMs))), mayRepeat, this.#services.deadlineMs);
  }
}
