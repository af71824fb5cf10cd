/** Program of a worker thread that draws the outcomes of a block again. */
import { packOutcomes } from '../src/domain/outcome.js';
import type { ParSheet } from '../src/domain/par.js';
import { drawBlock } from './drawBlock.js';

export default function redraw(task: { sheet: ParSheet; seed: Uint8Array; count: number }): Uint8Array {
  return packOutcomes(drawBlock(task.sheet, task.seed, task.count));
}
