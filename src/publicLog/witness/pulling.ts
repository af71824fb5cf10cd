/**
 * Witness that polls a log. It verifies that each checkpoint is consistent with the checkpoint that it
 * cosigned last, and cosigns it.
 */

import type { Policy } from '../../domain/publicLog/policy.js';
import { TILE_WIDTH, tilePath } from '../../domain/publicLog/tiles.js';
import { EMPTY_ROOT } from '../../domain/publicLog/tree.js';
import { writeDurably } from '../../platform/files.js';
import { LogError, LogReader, type SeenCheckpoint } from './logReader.js';
import { Mirror } from './mirror.js';
import type { WitnessState } from './witnessState.js';

/**
 * Thrown if the log has signed two inconsistent trees. Both notes are kept as evidence, and the witness no
 * longer signs for the log.
 */
export class InconsistencyError extends Error {}

/**
 * Splits a size into path parts: `1234567` becomes `x001/x234/567`, as for tiles, so that no folder gets many
 * files.
 */
const placeOf = (size: number): string[] =>
  tilePath({ level: 0, index: size, width: TILE_WIDTH }).split('/').slice(2);

export class Pulling {
  readonly #log: LogReader;
  readonly #mirror: Mirror | undefined;

  constructor(
    private readonly options: {
      readonly policy: Policy;
      readonly state: WitnessState;
      /** URL of the log; `checkpoint` and `tile/` are below it. */
      readonly url: string;
      /** Folder in which tiles and bundles are mirrored; undefined for no mirror. */
      readonly mirror: string | undefined;
      readonly say: (line: string) => void;
    },
  ) {
    this.#log = new LogReader(options.url);
    this.#mirror = options.mirror === undefined ? undefined : new Mirror(options.mirror, this.#log);
  }

  /**
   * Checks the newest checkpoint of the log once.
   * @throws LogError if the log gives an invalid response
   * @throws InconsistencyError if the log has signed inconsistent trees
   */
  async look(): Promise<void> {
    const { policy, state, say } = this.options;
    const seen = await this.#log.checkpoint(policy.logs);
    const { origin, size } = seen.checkpoint;
    await state.inTurn(origin, async () => {
      if (await state.hasEvidence(origin))
        throw new InconsistencyError(
          `there are contradictory notes of ${origin}, so its checkpoints are no longer signed`,
        );
      if (!(await this.#isNewer(seen))) {
        say(`${origin} shows ${size} records, fewer than before, so it is an old copy`);
        return;
      }
      await this.#mirror?.follow(seen);
      await state.cosign(seen.note, seen.signers);
      const { note } = (await state.newest(origin))!;
      await writeDurably(state.pathOf(origin, 'checkpoints', ...placeOf(size)), note);
      say(`cosigned ${origin} ${size}`);
    });
  }

  /**
   * Returns whether the tree contains the tree that was cosigned last. False if the tree is older.
   * @throws InconsistencyError if neither tree contains the other
   */
  async #isNewer(seen: SeenCheckpoint): Promise<boolean> {
    const { checkpoint } = seen;
    if (checkpoint.size === 0 && !checkpoint.root.equals(EMPTY_ROOT))
      throw new LogError('the root is not the root of an empty log');
    const kept = await this.options.state.newest(checkpoint.origin);
    if (kept === undefined || kept.checkpoint.size === 0) return true;
    const before = kept.checkpoint;
    const isNewer = before.size <= checkpoint.size;
    const [older, newer] = isNewer ? [before, checkpoint] : [checkpoint, before];
    if (older.size === 0) return isNewer;
    const root = older.size === newer.size ? newer.root : await this.#log.rootWithin(older.size, newer);
    if (root.equals(older.root)) return isNewer;
    const folder = await this.options.state.keepEvidence(checkpoint.origin, kept.note, seen.text);
    throw new InconsistencyError(
      `${checkpoint.origin} has signed two contradictory trees, of ${before.size} and ${checkpoint.size} records; both notes are in ${folder}`,
    );
  }
}
