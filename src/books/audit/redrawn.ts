/**
 * Draws the outcomes of exhausted blocks again from PAR sheet and seed, because the database no longer has
 * these outcomes.
 */
import { drawBlock } from '../../../workers/drawBlock.js';
import { packOutcomes } from '../../domain/outcome.js';
import type { ParSheet } from '../../domain/par.js';
import type { AuditReads, Facts } from './auditReads.store.js';

const OUTCOME_BYTES = 2;
/** Maximum number of redrawn blocks in memory. Each takes 512 KB at the default block size. */
const HELD_MAX = 8;

interface Seeded {
  readonly gameId: number;
  readonly fromIndex: number;
  readonly seed: Uint8Array;
  readonly count: number;
}

export class Redrawn {
  readonly #sheetIds: ReadonlyMap<number, number | null>;
  readonly #sheets = new Map<number, ParSheet>();
  /** Redrawn blocks, least recently used first. */
  readonly #held = new Map<string, Uint16Array>();

  constructor(
    { games }: Pick<Facts, 'games'>,
    private readonly read: (ids: readonly number[]) => Promise<ReadonlyMap<number, ParSheet>>,
  ) {
    this.#sheetIds = new Map(games.map((game) => [game.gameId, game.parSheetId]));
  }

  /** Loads the PAR sheets of games. {@link draw} needs them. */
  async load(gameIds: readonly number[]): Promise<void> {
    const wanted = new Set(gameIds.map((gameId) => this.#sheetIds.get(gameId) ?? -1));
    const missing = [...wanted].filter((id) => id >= 0 && !this.#sheets.has(id));
    if (missing.length === 0) return;
    for (const [id, sheet] of await this.read(missing)) this.#sheets.set(id, sheet);
  }

  /**
   * Wraps audit reads so that removed outcomes are drawn again. A block that can't be drawn has no outcomes
   * in the result; the block audit reports it.
   */
  filling(reads: AuditReads): AuditReads {
    return {
      ...reads,
      sealed: async (gameId, index, count) => {
        const pieces = await reads.sealed(gameId, index, count);
        if (pieces.some(({ removed }) => removed !== undefined)) await this.load([gameId]);
        return pieces.map((piece) => {
          const { removed, fromIndex } = piece;
          if (removed === undefined || !this.#canDraw(gameId)) return piece;
          const drawn = this.draw({ gameId, ...removed }).subarray(fromIndex - removed.fromIndex);
          return { fromIndex, outcomes: Buffer.from(packOutcomes(drawn.subarray(0, count))) };
        });
      },
    };
  }

  #canDraw(gameId: number): boolean {
    return this.#sheets.has(this.#sheetIds.get(gameId) ?? -1);
  }

  /** @throws Error if the game's sheet was not loaded or does not exist */
  draw({ gameId, fromIndex, seed, count }: Seeded): Uint16Array {
    const key = `${gameId}/${fromIndex}`;
    const held = this.#held.get(key);
    if (held !== undefined) return held;
    const sheet = this.#sheets.get(this.#sheetIds.get(gameId) ?? -1);
    if (sheet === undefined) throw new Error("the game's PAR sheet is missing");
    const drawn = drawBlock(sheet, seed, count);
    this.#held.set(key, drawn);
    if (this.#held.size > HELD_MAX) this.#held.delete(this.#held.keys().next().value!);
    return drawn;
  }
}

/** Returns the drawn outcomes, or a message if the block can't be drawn. */
export function drawnAgain(draw: () => Uint16Array): Uint16Array | string {
  try {
    return draw();
  } catch (error) {
    return `the block can't be drawn again: ${(error as Error).message}`;
  }
}

/**
 * Returns a message if the outcomes of a block differ from those drawn from its seed; undefined if they are
 * equal.
 */
export function drawnDifference(draw: () => Uint16Array, outcomes: Buffer): string | undefined {
  const drawn = drawnAgain(draw);
  if (typeof drawn === 'string') return drawn;
  const place = drawn.findIndex((code, i) => code !== outcomes.readUInt16LE(i * OUTCOME_BYTES));
  if (place < 0) return undefined;
  return `the block differs from the outcomes drawn from its seed, first at place ${place}: drawn ${drawn[place]}, sealed ${outcomes.readUInt16LE(place * OUTCOME_BYTES)}`;
}
