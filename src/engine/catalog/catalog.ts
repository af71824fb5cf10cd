/**
 * Holds partners, keys, games and operators in memory, so that a spin can be checked without a query to
 * Postgres.
 *
 * The catalog is read completely at the start. Later, a poll asks for the number of the newest change and
 * reads the changes that this process has not read yet. So a change made by any process takes effect here
 * within one poll. Only one of all processes polls at a time and announces its result to the others
 * (catalogAnnouncements.ts). A process that hears that nothing is new postpones its own poll.
 *
 * If a request names an unknown item, the catalog is read at once (`refresh`), because another process may
 * have created the item a moment ago. While Postgres is unavailable the catalog stays valid, because nobody
 * can change its data in Postgres either.
 */
import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { ApiVersionEnd } from '../../domain/apiVersion.js';
import type { ApiKey, Game, Partner } from '../../domain/game.js';
import { kindOfGame } from '../../domain/games/index.js';
import type { RenderedOutcomes } from '../../domain/games/kindOfGame.js';
import type { OperatorKey } from '../../domain/operator.js';
import type { ParSheet } from '../../domain/par.js';
import { type OutcomeStatistics, payoutTable, type RenderedSheet } from '../../domain/presentation.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import type { EventEmitter } from '../processEvents.js';
import {
  type CatalogGame,
  type CatalogState,
  changesAfter,
  type DirectoryChanges,
  digestOfNewest,
  newestOfAll,
  sheetsOf,
} from './catalog.store.js';
import type { ChangedOperator } from './operators.store.js';
import type { PartnerRow } from './partners.store.js';

export type KnownGame = CatalogGame;

/** Mathematics of a game, derived from its PAR sheet or from the game's own record. */
interface Mathematics {
  readonly ofGame: Omit<Game, 'gameId' | 'partnerId' | 'kind' | 'status' | 'sealedAtMs'>;
  readonly statistics: OutcomeStatistics | undefined;
}

const mathematicsOf = ({ rendered, statistics, ...ofGame }: RenderedOutcomes): Mathematics => ({
  ofGame: {
    wagerMicros: rendered.wagerMicros,
    maxPayoutMicros: rendered.maxPayoutMicros,
    payoutTable: payoutTable(rendered),
    payoutMicros: rendered.combinations.map((combination) => combination.payoutMicros),
    fragments: fragmentsOf(rendered),
    table: undefined,
    ...ofGame,
  },
  statistics,
});

/** Hash that is equal for equal mathematics, even if they come from different sheets. */
function digestOf({ wagerMicros, maxPayoutMicros, payoutTable, fragments }: Mathematics['ofGame']): string {
  const digest = createHash('sha256').update(`${wagerMicros} ${maxPayoutMicros} `).update(payoutTable);
  for (const fragment of fragments) digest.update(`${fragment.length} `).update(fragment);
  return digest.digest('base64');
}

const sheetIdOf = (known: KnownGame): number | undefined =>
  kindOfGame(known.gameType).mathematics.sheetIdOf(known);

/**
 * Returns the rendered outcomes of a sheet as parts of one buffer, because a sheet may have a hundred
 * thousand combinations.
 */
function fragmentsOf({ combinations }: RenderedSheet): Buffer[] {
  const whole = Buffer.from(combinations.map(({ json }) => json).join(''));
  let at = 0;
  return combinations.map(({ json }) => {
    const from = at;
    at += Buffer.byteLength(json);
    return whole.subarray(from, at);
  });
}

/**
 * Minimum time between reads that find nothing new, in ms. It limits requests for unknown keys and games to
 * 40 reads per second.
 */
const REST_MS = 25;
/**
 * Bounds of the factor by which a process that hears announcements extends its own poll interval. The factor
 * is random, so that another process takes over when the announcing one stops.
 */
const PATIENCE_MIN = 1.1;
const PATIENCE_MAX = 1.4;
/**
 * Maximum age of a process's own poll, in ms. It applies even if announcements arrive, so that the process
 * notices when it has lost Postgres.
 */
const ALONE_EVERY_MS = 5000;

export class Catalog extends PeriodicService {
  readonly name = 'catalog';
  #newest = 0n;
  /**
   * Number of a change up to which all changes are final. If a lower number was never read, its change was
   * rolled back or does not concern the catalog.
   */
  #settled = 0n;
  #newestRestriction = 0n;
  #version = 0;
  #partners = new Map<number, PartnerRow>();
  #keys = new Map<string, ApiKey>();
  #games = new Map<number, Game>();
  #knownGames = new Map<number, KnownGame>();
  /** Mathematics by their hash; equal sheets share one object. */
  readonly #byDigest = new Map<string, Mathematics['ofGame']>();
  readonly #ofSheets = new Map<number, Mathematics>();
  /** Mathematics by game, for games without a PAR sheet. They never change. */
  readonly #ofGames = new Map<number, Mathematics>();
  /** Hash of each operator's key, by the operator's name; `#operatorKeys` has the keys by hash. */
  readonly #operatorHashes = new Map<string, string>();
  readonly #operatorKeys = new Map<string, OperatorKey>();
  #epochs: ReadonlyMap<number, string> = new Map();
  #runs = '';
  #digest = '';
  /**
   * Time when the newest successful read began; `#heardAtMs` is the time of the newest announcement by
   * another process.
   */
  #readAtMs = Number.NEGATIVE_INFINITY;
  #heardAtMs = Number.NEGATIVE_INFINITY;
  #heardNewest = 0n;
  #announcedAtMs = Number.NEGATIVE_INFINITY;
  /**
   * State of the dealing switch for all games; `#undealtPartners` has the partners whose own switch is off.
   */
  #isDealing = true;
  readonly #undealtPartners = new Set<number>();
  readonly #versionEnds = new Map<string, ApiVersionEnd>();
  #isStale = false;
  /** The read that began last. `#next` is the read that follows it. */
  #reading: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #restsUntilMs = 0;

  constructor(
    private readonly sql: Sql,
    private readonly pollMs: number,
    private readonly events: EventEmitter,
  ) {
    super({ everyMs: pollMs });
  }

  override async start(): Promise<void> {
    await this.refresh();
    await super.start();
  }

  /** The stop does not wait for the poll in progress, because nobody needs the poll's result. */
  override async stop(): Promise<void> {
    void super.stop();
  }

  protected async turn(): Promise<void> {
    await this.refresh();
    if (this.#isStale) this.events.emit('CatalogRecovered', {});
    this.#isStale = false;
  }

  protected override onTurnFailed(error: unknown): void {
    // Report an outage of Postgres once, not at each poll.
    if (!this.#isStale) this.events.emit('CatalogStale', { error });
    this.#isStale = true;
  }

  /** Finds a partner's key by the SHA-256 of its text, as a latin1 string of 32 characters. */
  keyByHash(hash: string): ApiKey | undefined {
    return this.#keys.get(hash);
  }

  /** Finds an operator's key by the SHA-256 of its text, as a latin1 string of 32 characters. */
  operatorByHash(hash: string): OperatorKey | undefined {
    return this.#operatorKeys.get(hash);
  }

  partner(partnerId: number): Partner | undefined {
    return this.#partners.get(partnerId);
  }

  dealsFor(partnerId: number): boolean {
    return this.#isDealing && (this.#undealtPartners.size === 0 || !this.#undealtPartners.has(partnerId));
  }

  minReadyBlocks(partnerId: number): number {
    return this.#partners.get(partnerId)?.minReadyBlocks ?? 0;
  }

  /**
   * Returns the payout above which a win of the partner is large, in micro-USD. Undefined if the partner is
   * not in the catalog yet.
   */
  largeWinThreshold(partnerId: number): number | undefined {
    return this.#partners.get(partnerId)?.largeWinThresholdMicros;
  }

  game(gameId: number): Game | undefined {
    return this.#games.get(gameId);
  }

  /**
   * Returns the statistics with which the observed return of a game is assessed. Undefined if the game is
   * unknown or its outcomes are not random.
   */
  statistics(gameId: number): OutcomeStatistics | undefined {
    const known = this.#knownGames.get(gameId);
    return known === undefined ? undefined : this.#cached(known)?.statistics;
  }

  versionEnd(version: string): ApiVersionEnd | undefined {
    return this.#versionEnds.get(version);
  }

  partnersOfCell(cell: number): number {
    let count = 0;
    for (const partner of this.#partners.values()) if (partner.cell === cell) count++;
    return count;
  }

  get knownGames(): readonly KnownGame[] {
    return [...this.#knownGames.values()];
  }

  gamesOfCell(cell: number): KnownGame[] {
    return [...this.#knownGames.values()].filter((game) => game.cell === cell);
  }

  /**
   * Grows with every read that changed this catalog. What was judged under one version must be judged again
   * under another before it takes effect.
   */
  get version(): number {
    return this.#version;
  }

  get newestChange(): bigint {
    return this.#newest;
  }

  /**
   * Number of a change up to which this catalog has all changes that revoke or restrict anything. It is
   * announced through Redis (staleness.ts).
   */
  get newestRestriction(): bigint {
    return this.#newestRestriction;
  }

  /** Version of the request-id runs; each change of the runs gives another version (requestRuns.store.ts). */
  get runsVersion(): string {
    return this.#runs;
  }

  /**
   * Time when this process last read the number of the newest change, or received it from another process, on
   * the scale of performance.now().
   */
  get knownAtMs(): number {
    return Math.max(this.#readAtMs, this.#heardAtMs);
  }

  /** Updates this catalog's state from the announcement of another process that has just read the catalog. */
  heard({ newest, digest }: CatalogState): void {
    const nowMs = performance.now();
    this.#heardAtMs = nowMs;
    if (newest > this.#heardNewest) this.#heardNewest = newest;
    if (newest !== this.#newest || digest !== this.#digest) this.hurry();
    else if (nowMs - this.#readAtMs < ALONE_EVERY_MS)
      this.postpone(this.pollMs * (PATIENCE_MIN + Math.random() * (PATIENCE_MAX - PATIENCE_MIN)));
  }

  /**
   * Polls at once, because the connection for announcements was restored or has failed, and some
   * announcements may have been missed.
   */
  pollNow(): void {
    this.#heardAtMs = Number.NEGATIVE_INFINITY;
    this.hurry();
  }

  /** Returns the epoch that Redis must have for a cell. Undefined if there is no such cell. */
  epochOf(cell: number): string | undefined {
    return this.#epochs.get(cell);
  }

  /** Epochs that Redis must have, by cell. */
  get epochs(): ReadonlyMap<number, string> {
    return this.#epochs;
  }

  /**
   * Reads the changes. Concurrent calls share the next read, so that each caller gets a result that was read
   * after its call. A pause follows each read that found nothing new, because each request with an unknown
   * key or game asks for a read.
   */
  refresh(): Promise<void> {
    this.#next ??= this.#readNext();
    return this.#next;
  }

  async #readNext(): Promise<void> {
    await this.#reading?.catch(() => {});
    const restMs = this.#restsUntilMs - performance.now();
    if (restMs > 0) await pause(restMs);
    // Calls of `refresh` that arrive from now on share the next read.
    this.#next = undefined;
    const known = this.#newest;
    this.#reading = this.#read();
    try {
      await this.#reading;
    } finally {
      if (this.#newest === known) this.#restsUntilMs = performance.now() + REST_MS;
    }
  }

  async #read(): Promise<void> {
    const beganAtMs = performance.now();
    const found = await newestOfAll(this.sql);
    const { change, epochs, runs, isSettled, format } = found;
    this.events.emit('FormatRead', { format, beganAtMs });
    const added = this.#epochs.size === 0 ? [] : [...epochs.keys()].filter((cell) => !this.#epochs.has(cell));
    this.#epochs = epochs;
    this.#runs = runs;
    this.#digest = digestOfNewest(found);
    if (added.length > 0) this.events.emit('CellsAdded', { cells: added });
    if (change !== this.#newest && change !== this.#settled) await this.#readChanges();
    // A lower number than before means that Postgres was restored to an earlier state.
    if (isSettled || change < this.#settled) this.#settled = isSettled ? change : 0n;
    this.#readAtMs = beganAtMs;
    this.#announce();
  }

  /**
   * Announces the result of a read to the other processes, if the result is new or nobody has announced
   * anything for a poll interval.
   */
  #announce(): void {
    const nowMs = performance.now();
    const isNews = this.#newest > this.#heardNewest;
    // The factor allows for timers that fire a millisecond early.
    if (!isNews && nowMs - Math.max(this.#heardAtMs, this.#announcedAtMs) < 0.9 * this.pollMs) return;
    this.#announcedAtMs = nowMs;
    if (isNews) this.#heardNewest = this.#newest;
    this.events.emit('CatalogRead', {
      newest: this.#newest,
      newestRestriction: this.#newestRestriction,
      digest: this.#digest,
    });
  }

  async #readChanges(): Promise<void> {
    const changes = await changesAfter(this.sql, this.#newest);
    const unknown = changes.games
      .map((game) => sheetIdOf(game))
      .filter((id): id is number => id !== undefined && !this.#ofSheets.has(id));
    const sheets = await sheetsOf(this.sql, [...new Set(unknown)]);
    const isRestriction = this.#takesAway(changes);
    if (changes.isDealing !== undefined) this.#isDealing = changes.isDealing;
    for (const partner of changes.partners) this.#learnPartner(partner);
    for (const { hash, ...key } of changes.keys) this.#keys.set(hash, key);
    for (const operator of changes.operators) this.#learnOperator(operator);
    for (const known of changes.games) {
      this.#knownGames.set(known.gameId, known);
      const mathematics = this.#mathematics(known, sheets);
      if (mathematics === undefined) continue;
      this.#games.set(known.gameId, {
        gameId: known.gameId,
        partnerId: known.partnerId,
        kind: kindOfGame(known.gameType),
        status: known.status,
        sealedAtMs: known.sealedAt?.getTime(),
        ...mathematics.ofGame,
      });
    }
    this.#version++;
    if (changes.newest > this.#newest) this.#newest = changes.newest;
    if (isRestriction) {
      this.#newestRestriction = this.#newest;
      this.events.emit('RestrictionRead', {});
    }
    for (const end of changes.apiVersions) this.#versionEnds.set(end.version, end);
    if (changes.apiVersions.length > 0) this.events.emit('VersionEndsChanged', {});
    if (changes.games.length > 0) this.events.emit('GamesChanged', { games: changes.games });
  }

  /**
   * Returns whether the changes may restrict anybody: revoke a key, suspend a game or change an existing
   * partner. If all items are new, a process that can't read them need not stop.
   */
  #takesAway({ partners, keys, games, operators, isDealing }: DirectoryChanges): boolean {
    return (
      isDealing === false ||
      partners.some(({ partnerId, isActive }) => !isActive || this.#partners.has(partnerId)) ||
      keys.some(({ isRevoked }) => isRevoked) ||
      games.some(({ status }) => status === 'SUSPENDED') ||
      operators.some(({ name, isRevoked }) => isRevoked || this.#operatorHashes.has(name))
    );
  }

  #learnPartner(partner: PartnerRow): void {
    const { partnerId, cell: toCell } = partner;
    const fromCell = this.#partners.get(partnerId)?.cell ?? toCell;
    this.#partners.set(partnerId, partner);
    if (partner.isDealing) this.#undealtPartners.delete(partnerId);
    else this.#undealtPartners.add(partnerId);
    if (fromCell !== toCell) this.events.emit('PartnerChangedCell', { partnerId, fromCell, toCell });
  }

  /** Replaces an operator's key. After a rotation the replaced key is no longer accepted. */
  #learnOperator({ hash, name, role, expiresAtMs, isRevoked }: ChangedOperator): void {
    this.#operatorKeys.delete(this.#operatorHashes.get(name) ?? '');
    this.#operatorHashes.set(name, hash);
    this.#operatorKeys.set(hash, { name, role, expiresAtMs, isRevoked });
  }

  #mathematics(known: KnownGame, sheets: ReadonlyMap<number, ParSheet>): Mathematics | undefined {
    const cached = this.#cached(known);
    if (cached !== undefined) return cached;
    const sheetId = sheetIdOf(known);
    const sheet = sheetId === undefined ? undefined : sheets.get(sheetId);
    const rendered = kindOfGame(known.gameType).mathematics.render(known, sheet);
    if (rendered === undefined) return undefined;
    const made = mathematicsOf(rendered);
    if (sheetId === undefined) {
      this.#ofGames.set(known.gameId, made);
      return made;
    }
    const mathematics = { ...made, ofGame: this.#shared(made.ofGame) };
    this.#ofSheets.set(sheetId, mathematics);
    return mathematics;
  }

  /**
   * Returns one shared object for equal sheets of several partners, so that a batch of their spins needs only
   * one payout table.
   */
  #shared(ofGame: Mathematics['ofGame']): Mathematics['ofGame'] {
    const digest = digestOf(ofGame);
    const first = this.#byDigest.get(digest);
    if (first === undefined) this.#byDigest.set(digest, ofGame);
    return first ?? ofGame;
  }

  #cached(known: KnownGame): Mathematics | undefined {
    const sheetId = sheetIdOf(known);
    return sheetId === undefined ? this.#ofGames.get(known.gameId) : this.#ofSheets.get(sheetId);
  }
}
