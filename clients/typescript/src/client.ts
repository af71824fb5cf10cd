/** The client of a partner's back end: spins that happen once, reads that are repeated, lists as iterators, typed errors. */
import { type Answered, type ApiOptions, bodyOf, type PartnerApi, partnerApi, type Schemas } from './api.js';
import { Blackjack } from './blackjack.js';
import { Communal } from './communal.js';
import { byCursor, byPage } from './pages.js';
import { namedPlayer } from './playerNames.js';
import { Proofs } from './proofs.js';
import { mayReadAgain, mayWriteAgain, repeated } from './retries.js';
import { type NewSpin, once, type Spin, type SpinOptions } from './spins.js';
import { Webhooks } from './webhookCalls.js';

export interface SpindleOptions extends ApiOptions {
  /** Milliseconds for all attempts at a call and the waits between them. Default 60,000. */
  readonly deadlineMs?: number;
  /** Makes the requestId of a spin that has none. Default `crypto.randomUUID`. */
  readonly newRequestId?: () => string;
}

/** Which spins are listed. */
export interface SpinRange {
  readonly from?: string;
  readonly to?: string;
  readonly gameId?: number;
  readonly playerId?: string;
  /** The `spinId` of the last spin that is known. */
  readonly cursor?: string;
}

const DEADLINE_MS = 60_000;

export class Spindle {
  /** The typed calls that this class has no method for; each resolves with `data` or `error` and is sent once. */
  readonly api: PartnerApi;
  /** Rounds of blackjack: deal, act, resume. */
  readonly blackjack: Blackjack;
  /** Communal progressives: tiers, progress, events, shares. */
  readonly communal: Communal;
  /** What was fixed in the public log before it was dealt. */
  readonly proofs: Proofs;
  readonly webhooks: Webhooks;
  readonly #deadlineMs: number;
  readonly #newRequestId: () => string;

  /** @throws TypeError where the address or the key is missing */
  constructor(options: SpindleOptions) {
    this.api = partnerApi(options);
    this.#deadlineMs = options.deadlineMs ?? DEADLINE_MS;
    this.#newRequestId = options.newRequestId ?? (() => crypto.randomUUID());
    const services = { deadlineMs: this.#deadlineMs, newRequestId: this.#newRequestId };
    this.blackjack = new Blackjack(options, services);
    this.communal = new Communal(this);
    this.proofs = new Proofs(this);
    this.webhooks = new Webhooks(this);
  }

  /**
   * Spins once, however often it has to be sent. To be safe against a crash of your own, store the requestId before
   * (`onAttempt`), and call this again with it afterwards.
   * @throws SpindleError where the service refused it: it did not happen
   * @throws UnknownSpinError where it may have happened: call again with the error's requestId
   */
  async spin(spin: NewSpin, options: SpinOptions = {}): Promise<Spin> {
    const services = { deadlineMs: this.#deadlineMs, newRequestId: this.#newRequestId };
    const send = (requestId: string, signal: AbortSignal | undefined) =>
      bodyOf(this.api.POST('/spin', { body: { ...spin, requestId }, ...(signal && { signal }) }));
    const { answer, requestId } = await once(services, { requestId: spin.requestId, send }, options);
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
   * A player's last games as the player saw them, the newest first.
   * @param limit 1 to 50; 10 where absent
   */
  async recall(playerId: string, limit = 10): Promise<Schemas['RecalledGame'][]> {
    const { inPath: path, inQuery } = namedPlayer(playerId);
    const params = { path, query: { limit, ...inQuery } };
    const { games } = await this.read((api) => api.GET('/players/{playerId}/recall', { params }));
    return games as Schemas['RecalledGame'][];
  }

  /** A player's spins, the newest first. */
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
   * The spins of the account by time, the oldest first.
   * @param range `from` inclusive and `to` exclusive, RFC 3339; of one game or player; after a cursor
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

  /** The pool of a raffle: its commitment, and what it was once it is closed. */
  async getPool(gameId: number): Promise<Schemas['PoolResponse']> {
    const params = { path: { id: gameId } };
    return (await this.read((api) => api.GET('/games/{id}/pool', { params }))) as Schemas['PoolResponse'];
  }

  /**
   * How the return of a slot was judged, over 30 days and all of time.
   * @param days judgements of single days: the newest so many
   */
  async rtp(gameId: number, days?: number): Promise<Schemas['GameRtp']> {
    const params = { path: { id: gameId }, query: days === undefined ? {} : { days } };
    return (await this.read((api) => api.GET('/games/{id}/rtp', { params }))) as Schemas['GameRtp'];
  }

  /**
   * What the games of the account took and paid in an interval, the first 10,000 of them and the totals of all.
   * @param interval day, month, year or life to date (UTC); or from a day to a day, YYYY-MM-DD, both in it
   */
  async gamesReport(
    interval: 'DTD' | 'MTD' | 'YTD' | 'LTD' | { readonly from: string; readonly to: string },
    gameId?: number,
  ): Promise<Schemas['GamesReport']> {
    const days = typeof interval === 'string' ? { interval } : { interval: 'RANGE', ...interval };
    const params = { query: { ...days, ...(gameId === undefined ? {} : { gameId }) } };
    return (await this.read((api) => api.GET('/reports/games', { params }))) as Schemas['GamesReport'];
  }

  /** Chooses a player's next outcome; of sandbox accounts only. A newer choice replaces it: it may be sent again. */
  chooseNextOutcome(choice: Schemas['NextOutcomeBody']): Promise<Schemas['NextOutcomeResponse']> {
    return this.read((api) => api.POST('/sandbox/next-outcome', { body: choice }));
  }

  /** What the service runs, and for how long a requestId binds. */
  version(): Promise<Schemas['VersionResponse']> {
    return this.read((api) => api.GET('/version'));
  }

  /** The answer has the signing secret, which is shown this once. `webhooks` has everything else of them. */
  registerWebhook(webhook: Schemas['WebhookBody']): Promise<Schemas['WebhookRegistered']> {
    return this.webhooks.register(webhook);
  }

  /** The events of the account of the last 30 days, the oldest first. @param after id of an event: those after it */
  events(after?: string): AsyncGenerator<Schemas['FeedEvent'], void, undefined> {
    return byCursor(async (cursor) => {
      const query = { limit: 100, ...(cursor === undefined ? {} : { after: cursor }) };
      const { events, nextCursor } = await this.read((api) => api.GET('/events', { params: { query } }));
      return { items: events, nextCursor };
    }, after);
  }

  /** The settlement reports, the newest day first. */
  settlements(): AsyncGenerator<Schemas['SettlementReport'], void, undefined> {
    return byPage(
      async (query) => {
        const { reports, total } = await this.read((api) => api.GET('/settlements', { params: { query } }));
        return { items: reports, total };
      },
      ({ reportDate }) => reportDate,
    );
  }

  /** @param date UTC day, YYYY-MM-DD */
  async getSettlement(date: string): Promise<Schemas['SettlementReport']> {
    const report = await this.read((api) => api.GET('/settlements/{date}', { params: { path: { date } } }));
    // It would be text only where CSV was asked for.
    return report as Schemas['SettlementReport'];
  }

  /** Agrees with the report that was read: a newer revision is refused. */
  acknowledgeSettlement({
    reportDate,
    revision,
  }: Schemas['SettlementReport']): Promise<Schemas['SettlementReport']> {
    const params = { path: { date: reportDate }, query: { revision } };
    return this.write((api) => api.POST('/settlements/{date}/acknowledge', { params }));
  }

  /** Disagrees with the report that was read, likewise. */
  disputeSettlement(
    { reportDate, revision }: Schemas['SettlementReport'],
    reason: string,
  ): Promise<Schemas['SettlementReport']> {
    const params = { path: { date: reportDate }, query: { revision } };
    return this.write((api) => api.POST('/settlements/{date}/dispute', { params, body: { reason } }));
  }

  /** Any other read: it is repeated where no answer comes, and where the error says that a wait helps. */
  read<Body>(call: (api: PartnerApi) => Promise<Answered<Body>>): Promise<Body> {
    return repeated(() => bodyOf(call(this.api)), mayReadAgain, this.#deadlineMs);
  }

  /** Any other write: it is repeated only where the rate limit refused it. */
  write<Body>(call: (api: PartnerApi) => Promise<Answered<Body>>): Promise<Body> {
    return repeated(() => bodyOf(call(this.api)), mayWriteAgain, this.#deadlineMs);
  }
}
