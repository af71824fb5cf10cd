/** Outcomes that the database has no more, since their block was exhausted long ago: its PAR sheet and seed give them again. */
import { drawBlock } from '../../../workers/drawBlock.js';
import { packOutcomes } from '../../domain/outcome.js';
import type { ParSheet } from '../../domain/par.js';
import type { AuditReads, Facts } from './auditReads.store.js';

const OUTCOME_BYTES = 2;
/** Blocks whose outcomes are held: 512 KB each as they are made by default. */
const HELD_MAX = 8;

interface Seeded {
  readonly gameId: number;
  readonly fromIndex: number;
  readonly seed: Uint8Array;
  readonly count: number;
}

export class Redrawn {
  readonly #sheetIds: ReadonlyMap<number, number | null>;
  readonly #read: (ids: readonly number[]) => Promise<ReadonlyMap<number, ParSheet>>;
  readonly #sheets = new Map<number, ParSheet>();
  /** The least recently used first. */
  readonly #held = new Map<string, Uint16Array>();

  constructor(
    { games }: Pick<Facts, 'games'>,
    read: (ids: readonly number[]) => Promise<ReadonlyMap<number, ParSheet>>,
  ) {
    this.#sheetIds = new Map(games.map((game) => [game.gameId, game.parSheetId]));
    this.#read = read;
  }

  /** Reads the sheets of games: {@link draw} needs them. */
  async load(gameIds: readonly number[]): Promise<void> {
    const wanted = new Set(gameIds.map((gameId) => this.#sheetIds.get(gameId) ?? -1));
    const missing = [...wanted].filter((id) => id >= 0 && !this.#sheets.has(id));
    if (missing.length === 0) return;
    for (const [id, sheet] of await this.#read(missing)) this.#sheets.set(id, sheet);
  }

  /** Reads in which what is removed is drawn again. A block that can't be drawn has no outcomes there, and is told of as a block. */
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

  /** @throws Error where the sheet was not loaded, or is not there */
  draw({ gameId, fromIndex, seed, count }: Seeded): Uint16Array {
    const key = `${gameId}/${fromIndex}`;
    const held = this.#held.get(key);
    if (held !== undefined) return held;
    const sheet = this.#sheets.get(this.#sheetIds.get(gameId) ?? -1);
    if (sheet === undefined) throw new Error("the game's PAR sheet is not there");
    const drawn = drawBlock(sheet, seed, count);
    this.#held.set(key, drawn);
    if (this.#held.size > HELD_MAX) this.#held.delete(this.#held.keys().next().value!);
    return drawn;
  }
}

/** What is drawn, or why it can't be. */
export function drawnAgain(draw: () => Uint16Array): Uint16Array | string {
  try {
    return draw();
  } catch (error) {
    return `the block can't be drawn again: ${(error as Error).message}`;
  }
}

/** What is wrong where a block is not what its seed gives; undefined where it is. */
export function drawnDifference(draw: () => Uint16Array, outcomes: Buffer): string | undefined {
  const drawn = drawnAgain(draw);
  if (typeof drawn === 'string') return drawn;
  const place = drawn.findIndex((code, i) => code !== outcomes.readUInt16LE(i * OUTCOME_BYTES));
  if (place < 0) return undefined;
  return `the block is not what its seed gives, from place ${place} on: ${drawn[place]} is drawn there, not ${outcomes.readUInt16LE(place * OUTCOME_BYTES)}`;
}
