/** Compares dealt outcomes with the sealed ones, and wagers and credits with the PAR sheet or prize table. */
import type { AuditReads, Facts } from './auditReads.store.js';
import { type IndexCheck, isIndex } from './indexCheck.js';
import { type CheckedEntry, isDealt, type LedgerCheck } from './ledgerCheck.js';
import { allPayouts, type Payouts } from './payouts.js';
import type { Findings, Place } from './report.js';

/** Sealed outcomes of a game that are held in memory. They take 64 KB. */
const STRETCH_OUTCOMES = 16_384;
/** Outcomes to load beyond the next index: more than a network chunk has rows, so that none runs out. */
const AHEAD_OUTCOMES = 4096;
const NOT_SEALED = -1;
const NOTHING = new Int32Array(0);

interface Game {
  readonly gameId: number;
  readonly partnerId: number;
  readonly payouts: Payouts | undefined;
  /** Sealed outcomes from the index `from` on; {@link NOT_SEALED} where no block has one. */
  stretch: Int32Array;
  from: number;
  /** Whether the game had rows since the last pause. */
  isTouched: boolean;
}

/** An entry whose sealed outcome is not loaded yet. */
interface Unjudged {
  readonly game: Game;
  readonly index: number;
  readonly code: number;
  readonly place: Place;
}

export class OutcomeCheck implements LedgerCheck {
  readonly #games = new Map<number, Game>();
  #touched: Game[] = [];
  #unjudged: Unjudged[] = [];
  #spins = 0;
  #forcedSpins = 0;

  constructor(
    private readonly facts: Pick<Facts, 'games' | 'sheets' | 'raffles' | 'tables' | 'sandboxPartners'>,
    private readonly findings: Findings,
    private readonly indices: Pick<IndexCheck, 'nextOf'>,
    private readonly reads: Pick<AuditReads, 'sealed'>,
  ) {
    const { payouts, prizes } = allPayouts(facts, findings);
    for (const { gameId, partnerId, parSheetId } of facts.games) {
      const own = parSheetId === null ? prizes.get(gameId) : payouts.get(parSheetId);
      const game = { gameId, partnerId, payouts: own, stretch: NOTHING, from: 0, isTouched: false };
      this.#games.set(gameId, game);
    }
  }

  row(entry: CheckedEntry): void {
    const { kind, partnerId } = entry;
    const isForced = kind === 'forcedSpin';
    if (isForced) {
      this.#forcedSpins++;
      if (!this.facts.sandboxPartners.has(partnerId))
        this.#found(entry.place, 'a production partner has a forced outcome', 'a sandbox', partnerId);
    } else if (isDealt(kind)) this.#spins++;
    else return;
    const game = this.#games.get(entry.gameId);
    if (game?.partnerId !== partnerId)
      this.#found(entry.place, 'the game belongs to another partner', partnerId, game?.partnerId);
    if (game === undefined) return;
    if (!isForced) this.#dealt(entry, game);
    this.#paid(entry, game);
  }

  #dealt({ index, code, place }: CheckedEntry, game: Game): void {
    if (!game.isTouched) {
      game.isTouched = true;
      this.#touched.push(game);
    }
    const sealed = isIndex(index) ? this.#sealed(game, index) : NOT_SEALED;
    if (sealed === undefined) this.#unjudged.push({ game, index, code, place: place() });
    else this.#judge(sealed, code, place);
  }

  #paid({ code, credit, wager, place }: CheckedEntry, { payouts }: Game): void {
    if (payouts === undefined) {
      this.#found(place, "the PAR sheet or prize table of the game can't be read");
      return;
    }
    const paid = payouts.paid[code];
    if (credit !== paid) {
      const problem = 'the credit differs from the payout of the PAR sheet or prize table';
      this.#found(place, problem, paid, credit);
    }
    if (wager !== payouts.wager) {
      const problem = 'the wager is neither the denomination of the sheet nor the ticket price';
      this.#found(place, problem, payouts.wager, wager);
    }
  }

  async pause(): Promise<void> {
    for (const { game, index, code, place } of this.#unjudged) {
      if (this.#sealed(game, index) === undefined) await this.#load(game, index);
      this.#judge(this.#sealed(game, index)!, code, place);
    }
    this.#unjudged = [];
    for (const game of this.#touched) {
      game.isTouched = false;
      const next = this.indices.nextOf(game.gameId);
      if (this.#sealed(game, next + AHEAD_OUTCOMES) === undefined) await this.#load(game, next);
    }
    this.#touched = [];
  }

  async #load(game: Game, index: number): Promise<void> {
    if (game.stretch === NOTHING) game.stretch = new Int32Array(STRETCH_OUTCOMES);
    game.stretch.fill(NOT_SEALED);
    for (const { fromIndex, outcomes } of await this.reads.sealed(game.gameId, index, STRETCH_OUTCOMES)) {
      const place = fromIndex - index;
      const count = Math.min(Math.floor(outcomes.length / 2), STRETCH_OUTCOMES - place);
      for (let i = 0; i < count; i++) game.stretch[place + i] = outcomes.readUInt16LE(i * 2);
    }
    game.from = index;
  }

  /** Undefined if the index is not loaded. */
  #sealed(game: Game, index: number): number | undefined {
    return game.stretch[index - game.from];
  }

  #judge(sealed: number, code: number, place: Place | (() => Place)): void {
    if (sealed === code) return;
    if (sealed === NOT_SEALED)
      this.#found(place, 'no sealed block has an outcome of this index', undefined, code);
    else this.#found(place, 'the outcome differs from the sealed outcome', sealed, code);
  }

  #found(place: Place | (() => Place), problem: string, expected?: number | string, is?: number): void {
    this.findings.found('outcomes', problem, place, expected, is);
  }

  end(): void {
    this.findings.looked('outcomes', 'spins', this.#spins);
    this.findings.looked('outcomes', 'forced spins', this.#forcedSpins);
    this.findings.looked('outcomes', 'PAR sheets', this.facts.sheets.size);
    this.findings.looked('outcomes', 'prize tables', this.facts.raffles.size);
  }
}
