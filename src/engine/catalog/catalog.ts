/**
 * Partners, keys, games and operators in memory, so that a spin is judged without a question to Postgres.
 *
 * Read whole at the start; after that a poll asks for the number of the newest change and reads what came after the
 * last one it saw, so a change made anywhere holds here within one poll. One of all processes polls, and announces to the others what it
 * found (catalogAnnouncements.ts): who hears of nothing new puts its own poll off. What is not found is asked for at once
 * (`refresh`), since it may have been made a moment ago by another process. While Postgres is away what is known stays
 * known: nothing can be changed then either.
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

/** A game as the block keeper needs it. */
export type KnownGame = CatalogGame;

/** What its PAR sheet, or its own record, makes of a game. */
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

/** Of what all is the same, whatever sheet it was made of. */
function digestOf({ wagerMicros, maxPayoutMicros, payoutTable, fragments }: Mathematics['ofGame']): string {
  const digest = createHash('sha256').update(`${wagerMicros} ${maxPayoutMicros} `).update(payoutTable);
  for (const fragment of fragments) digest.update(`${fragment.length} `).update(fragment);
  return digest.digest('base64');
}

const sheetIdOf = (known: KnownGame): number | undefined =>
  kindOfGame(known.gameType).mathematics.sheetIdOf(known);

/** In one piece of memory: a sheet may have a hundred thousand combinations. */
function fragmentsOf({ combinations }: RenderedSheet): Buffer[] {
  const whole = Buffer.from(combinations.map(({ json }) => json).join(''));
  let at = 0;
  return combinations.map(({ json }) => {
    const from = at;
    at += Buffer.byteLength(json);
    return whole.subarray(from, at);
  });
}

/** At the most 40 reads a second find nothing new, however many ask for what there is not. */
const REST_MS = 25;
/** Who hears that others poll waits so many polls for the next to be announced: another time for each, so that one goes on for all. */
const PATIENCE_MIN = 1.1;
const PATIENCE_MAX = 1.4;
/** After so long a process polls once by itself, whatever it hears: it must notice that it has lost Postgres. */
const ALONE_EVERY_MS = 5000;

export class Catalog extends PeriodicService {
  readonly name = 'catalog';
  readonly #sql: Sql;
  readonly #events: EventEmitter;
  readonly #pollMs: number;
  #newest = 0n;
  /** Nothing is to come up to this number: what has none was undone, or changed nothing that is kept here. */
  #settled = 0n;
  #newestRestriction = 0n;
  #partners = new Map<number, PartnerRow>();
  #keys = new Map<string, ApiKey>();
  #games = new Map<number, Game>();
  #knownGames = new Map<number, KnownGame>();
  /** What sheets have in common, by the digest of it. */
  readonly #byDigest = new Map<string, Mathematics['ofGame']>();
  /** By PAR sheet, for all games on it. */
  readonly #ofSheets = new Map<number, Mathematics>();
  /** By game, where it needs no sheet: what its record has of its mathematics never changes. */
  readonly #ofGames = new Map<number, Mathematics>();
  /** Hash of each operator's key by name, and the keys by it. */
  readonly #operatorHashes = new Map<string, string>();
  readonly #operatorKeys = new Map<string, OperatorKey>();
  #epochs: ReadonlyMap<number, string> = new Map();
  #runs = '';
  #digest = '';
  /** When the newest read that succeeded began, and when another process announced one. */
  #readAtMs = Number.NEGATIVE_INFINITY;
  #heardAtMs = Number.NEGATIVE_INFINITY;
  #heardNewest = 0n;
  /** When this process announced a read. */
  #announcedAtMs = Number.NEGATIVE_INFINITY;
  /** The switch of all games, and the partners whose own is off. */
  #isDealing = true;
  readonly #undealtPartners = new Set<number>();
  readonly #versionEnds = new Map<string, ApiVersionEnd>();
  #isStale = false;
  /** The read that has begun last, and the one that comes after it. */
  #reading: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #restsUntilMs = 0;

  constructor(sql: Sql, pollMs: number, events: EventEmitter) {
    super({ everyMs: pollMs, firstAfterMs: pollMs });
    this.#sql = sql;
    this.#events = events;
    this.#pollMs = pollMs;
  }

  /** Reads everything and begins to poll. */
  override async start(): Promise<void> {
    await this.refresh();
    await super.start();
  }

  /** Does not wait for the poll under way: nobody needs what it reads. */
  override async stop(): Promise<void> {
    void super.stop();
  }

  protected async turn(): Promise<void> {
    await this.refresh();
    if (this.#isStale) this.#events.emit('CatalogRecovered', {});
    this.#isStale = false;
  }

  protected onTurnFailed(error: unknown): void {
    // Once for each time that Postgres goes away, not once for each poll.
    if (!this.#isStale) this.#events.emit('CatalogStale', { error });
    this.#isStale = true;
  }

  /** A key by the SHA-256 of its text, as a latin1 string of 32 characters. */
  keyByHash(hash: string): ApiKey | undefined {
    return this.#keys.get(hash);
  }

  /** An operator's key, likewise. */
  operatorByHash(hash: string): OperatorKey | undefined {
    return this.#operatorKeys.get(hash);
  }

  partner(partnerId: number): Partner | undefined {
    return this.#partners.get(partnerId);
  }

  /** Whether the switches let anything be dealt for a partner. */
  dealsFor(partnerId: number): boolean {
    return this.#isDealing && (this.#undealtPartners.size === 0 || !this.#undealtPartners.has(partnerId));
  }

  minReadyBlocks(partnerId: number): number {
    return this.#partners.get(partnerId)?.minReadyBlocks ?? 0;
  }

  /** Payouts above this are large wins of the partner's, micro-USD; undefined where the partner is not known yet. */
  largeWinThreshold(partnerId: number): number | undefined {
    return this.#partners.get(partnerId)?.largeWinThresholdMicros;
  }

  game(gameId: number): Game | undefined {
    return this.#games.get(gameId);
  }

  /** What the return of the game's spins is judged by; undefined: the game is not known, or is left to no chance. */
  statistics(gameId: number): OutcomeStatistics | undefined {
    const known = this.#knownGames.get(gameId);
    return known === undefined ? undefined : this.#cached(known)?.statistics;
  }

  /** The announced end of a version of the partner API. */
  versionEnd(version: string): ApiVersionEnd | undefined {
    return this.#versionEnds.get(version);
  }

  /** How many partners live in a cell. */
  partnersOfCell(cell: number): number {
    let count = 0;
    for (const partner of this.#partners.values()) if (partner.cell === cell) count++;
    return count;
  }

  gamesOfCell(cell: number): KnownGame[] {
    return [...this.#knownGames.values()].filter((game) => game.cell === cell);
  }

  /** Number of the newest change that is known here. */
  get newestChange(): bigint {
    return this.#newest;
  }

  /** Number of a change up to which all are known here that take something away: it is announced through Redis (staleness.ts). */
  get newestRestriction(): bigint {
    return this.#newestRestriction;
  }

  /** Another one each time that there are other runs of request ids (requestRuns.store.ts). */
  get runsVersion(): string {
    return this.#runs;
  }

  /** When the number of the newest change was last read here, or announced by another process; as performance.now() counts. */
  get knownAtMs(): number {
    return Math.max(this.#readAtMs, this.#heardAtMs);
  }

  /** Another process has read this just now. */
  heard({ newest, digest }: CatalogState): void {
    const nowMs = performance.now();
    this.#heardAtMs = nowMs;
    if (newest > this.#heardNewest) this.#heardNewest = newest;
    if (newest !== this.#newest || digest !== this.#digest) this.hurry();
    else if (nowMs - this.#readAtMs < ALONE_EVERY_MS)
      this.postpone(this.#pollMs * (PATIENCE_MIN + Math.random() * (PATIENCE_MAX - PATIENCE_MIN)));
  }

  /** What others read is heard again, or no more: nobody knows what was missed. */
  pollNow(): void {
    this.#heardAtMs = Number.NEGATIVE_INFINITY;
    this.hurry();
  }

  /** The epoch that Redis must be at for this cell; undefined where there is no such cell. */
  epochOf(cell: number): string | undefined {
    return this.#epochs.get(cell);
  }

  /** The same of all cells. */
  get epochs(): ReadonlyMap<number, string> {
    return this.#epochs;
  }

  /**
   * Reads what changed. Calls share the next read: each caller gets an answer that was read after it asked. After a read
   * that found nothing new comes a rest, since strangers' keys and unknown games ask for a read with each request.
   */
  refresh(): Promise<void> {
    this.#next ??= this.#readNext();
    return this.#next;
  }

  async #readNext(): Promise<void> {
    await this.#reading?.catch(() => {});
    const restMs = this.#restsUntilMs - performance.now();
    if (restMs > 0) await pause(restMs);
    // Who asks from now on gets the read after this one.
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
    const found = await newestOfAll(this.#sql);
    const { change, epochs, runs, isSettled } = found;
    const added = this.#epochs.size === 0 ? [] : [...epochs.keys()].filter((cell) => !this.#epochs.has(cell));
    this.#epochs = epochs;
    this.#runs = runs;
    this.#digest = digestOfNewest(found);
    if (added.length > 0) this.#events.emit('CellsAdded', { cells: added });
    if (change !== this.#newest && change !== this.#settled) await this.#readChanges();
    // A lower one than before: Postgres was put back to an earlier state.
    if (isSettled || change < this.#settled) this.#settled = isSettled ? change : 0n;
    this.#readAtMs = beganAtMs;
    this.#announce();
  }

  /** Announces to the others what was read, where it is news to them or nobody has announced anything for as long as a poll takes. */
  #announce(): void {
    const nowMs = performance.now();
    const isNews = this.#newest > this.#heardNewest;
    // A timer may be early by a millisecond.
    if (!isNews && nowMs - Math.max(this.#heardAtMs, this.#announcedAtMs) < 0.9 * this.#pollMs) return;
    this.#announcedAtMs = nowMs;
    if (isNews) this.#heardNewest = this.#newest;
    this.#events.emit('CatalogRead', {
      newest: this.#newest,
      newestRestriction: this.#newestRestriction,
      digest: this.#digest,
    });
  }

  async #readChanges(): Promise<void> {
    const changes = await changesAfter(this.#sql, this.#newest);
    const unknown = changes.games
      .map((game) => sheetIdOf(game))
      .filter((id): id is number => id !== undefined && !this.#ofSheets.has(id));
    const sheets = await sheetsOf(this.#sql, [...new Set(unknown)]);
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
    if (changes.newest > this.#newest) this.#newest = changes.newest;
    if (isRestriction) {
      this.#newestRestriction = this.#newest;
      this.#events.emit('RestrictionRead', {});
    }
    for (const end of changes.apiVersions) this.#versionEnds.set(end.version, end);
    if (changes.apiVersions.length > 0) this.#events.emit('VersionEndsChanged', {});
    if (changes.games.length > 0) this.#events.emit('GamesChanged', { games: changes.games });
  }

  /** Somebody may do less than before: what is new to everybody holds nobody up who can't read it. */
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
    if (fromCell !== toCell) this.#events.emit('PartnerChangedCell', { partnerId, fromCell, toCell });
  }

  /** A key that was rotated opens nothing any more. */
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

  /** What equal sheets of several partners have in common is there once: a batch of their spins then has one payout table. */
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
