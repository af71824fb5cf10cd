/** Finds what a block that an earlier version sealed lacks for the public log, on a worker thread: nothing is drawn again. */
import type { BlackjackRules } from '../src/domain/games/blackjackRules.js';
import { rulesHash } from '../src/domain/games/blackjackRules.js';
import { type PrizeTableUsd, prizeTableText } from '../src/domain/games/prizeTable.js';
import { unpackOutcomes } from '../src/domain/outcome.js';
import type { ParSheet } from '../src/domain/par.js';
import { sealTree, shoeLeaves } from '../src/domain/transparency/blockTree.js';
import { tableHash } from '../src/domain/transparency/mathHash.js';
import { compiledSheet } from './drawBlock.js';
import { treeOf } from './makeBlock.js';
import { dealShoes } from './makeShoes.js';

export interface LateTask {
  readonly gameId: number;
  readonly fromIndex: number;
  /** Packed. */
  readonly outcomes: Uint8Array;
  readonly seed: Uint8Array;
  readonly nonce: Uint8Array;
  /** What decides the game's outcomes: one of these. */
  readonly sheet?: ParSheet;
  readonly table?: PrizeTableUsd;
  readonly rules?: BlackjackRules;
}

export interface LateSeal {
  readonly tree: Uint8Array;
  readonly mathHash: Uint8Array;
}

/** What the pool of threads runs. */
export default function sealLate(task: LateTask): LateSeal {
  const { gameId, fromIndex, seed, sheet, table, rules } = task;
  if (rules !== undefined) {
    const { commitments } = dealShoes({ gameId, rules, fromIndex }, seed);
    return {
      tree: sealTree(shoeLeaves(gameId, fromIndex, commitments)),
      mathHash: Uint8Array.from(rulesHash(rules)),
    };
  }
  const mathHash =
    sheet === undefined ? Uint8Array.from(tableHash(prizeTableText(table!))) : compiledSheet(sheet).mathHash;
  return { tree: treeOf({ ...task, codes: unpackOutcomes(task.outcomes) }), mathHash };
}
