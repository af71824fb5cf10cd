/**
 * Creates proofs of dealt outcomes (docs/proofs.md) from Postgres: the path in the block, the log entry of
 * the block, and the log's proof of that entry. Every path is verified against the root in the entry or the
 * checkpoint before it is returned.
 */
import type { Static } from '#typebox';
import { type BlackjackRules, rulesHash } from '../../domain/games/blackjackRules.js';
import { SHOE_SEED_BYTES, shoeCommitment } from '../../domain/games/shoe.js';
import { unpackOutcomes } from '../../domain/outcome.js';
import {
  blockPath,
  GROUP_LEAVES,
  outcomeLeaves,
  type Remember,
  shoeLeaves,
} from '../../domain/publicLog/blockTree.js';
import { tlogProofText } from '../../domain/publicLog/checkpoints.js';
import {
  leafKeyOf,
  leafNonces,
  outcomeLeafData,
  type ProvenOutcome,
  shoeLeafData,
} from '../../domain/publicLog/leaves.js';
import { entryCommitment, labelOf, privateRecord } from '../../domain/publicLog/logEntries.js';
import { openedText } from '../../domain/publicLog/openings.js';
import { HASH_BYTES, leafHash, rootByInclusion } from '../../domain/publicLog/tree.js';
import { KnownSubtrees } from './knownSubtrees.js';
import { LogTiles } from './logTiles.js';
import type { Covering, LoggedEntry, PublicLogReads } from './publicLogReads.store.js';

const hex = (bytes: Buffer): string => bytes.toString('hex');

interface EntryProof {
  readonly entry: string;
  readonly salt: string;
  readonly label: string;
  readonly logIndex: number;
  readonly loggedAt: string;
  readonly tlogProof: string;
}

export interface DealtOutcome {
  readonly gameId: number;
  readonly index: number;
}

/**
 * Draws the outcomes of a block again if the database has removed them. Returns the outcomes packed
 * (blocks/redrawing.ts).
 */
export type DrawAgain = (block: { gameId: number; seed: Buffer; count: number }) => Promise<Buffer>;

export class Proofs {
  readonly #tiles: LogTiles;
  readonly #known = new KnownSubtrees();

  constructor(
    private readonly reads: PublicLogReads,
    private readonly drawAgain: DrawAgain,
  ) {
    this.#tiles = new LogTiles(reads);
  }

  /**
   * Returns a cache of the subtrees of a block, keyed by the salt of its entry. Entries with the same salt
   * have the same leaves.
   */
  #remember({ salt }: LoggedEntry): Remember {
    const of = salt.toString('latin1');
    return (name, make) => {
      const known = this.#known.find(`${of} ${name}`) ?? make();
      this.#known.keep(`${of} ${name}`, known);
      return known;
    };
  }

  /**
   * Returns a leaf's path in hexadecimal.
   * @throws Error if the path does not lead to the block's root
   */
  #shown({ opening }: LoggedEntry, index: number, data: Buffer, path: Buffer[]): string[] {
    const { tree, fromIndex, toIndex } = opening;
    const root = rootByInclusion(index - fromIndex, toIndex - fromIndex, leafHash(data), path);
    if (root?.equals(tree!.subarray(0, HASH_BYTES))) return path.map(hex);
    this.#known.clear();
    throw new Error(`The stored hashes of the block do not prove its index ${index}`);
  }

  /**
   * Proves that a checkpoint includes a log entry. By default the newest published checkpoint of the entry's
   * log is used.
   * @throws Error if that log has no published checkpoint
   */
  async entry(logged: LoggedEntry, covering?: Covering): Promise<EntryProof> {
    const { opening, logIndex, salt } = logged;
    const checkpoint = covering ?? (await this.reads.publishedOf(logged.logId));
    if (checkpoint === undefined) throw new Error('The public log has no published checkpoint yet');
    const text = openedText(opening);
    const label = labelOf(opening.labelKey, opening.number);
    const record = privateRecord(label, entryCommitment(salt, text));
    const path = await this.#tiles.path(logged, record, checkpoint);
    return {
      entry: text,
      salt: hex(salt),
      label: hex(label),
      logIndex,
      loggedAt: logged.loggedAt.toISOString(),
      tlogProof: tlogProofText({ index: logIndex, path, checkpoint: checkpoint.note }),
    };
  }

  /** Returns the path of an outcome in its block, and the data of its leaf. */
  async outcome(
    logged: LoggedEntry,
    { gameId, index }: DealtOutcome,
  ): Promise<{ outcome: Static<typeof ProvenOutcome>; path: string[] }> {
    const { opening } = logged;
    const { fromIndex } = opening;
    const place = index - fromIndex;
    const { count, seed, nonce, kept, isRemoved, parts } = await this.reads.blockPart(opening, place);
    const drawn = isRemoved ? unpackOutcomes(await this.drawAgain({ gameId, seed, count })) : undefined;
    const key = leafKeyOf({ gameId, fromIndex, nonce });
    const codesAt = (from: number): Uint16Array =>
      drawn?.subarray(from, from + GROUP_LEAVES) ?? unpackOutcomes(parts.get(from)!);
    const leaves = (from: number, to: number) =>
      outcomeLeaves({
        gameId,
        fromIndex: fromIndex + from,
        codes: codesAt(from).subarray(0, to - from),
        nonces: (first, wanted) => leafNonces(key, wanted, from + first),
      });
    const path = blockPath(place, count, kept, leaves, this.#remember(logged));
    const code = codesAt(place - (place % GROUP_LEAVES))[place % GROUP_LEAVES]!;
    const own = leafNonces(key, 1, place);
    const data = outcomeLeafData({ gameId, index }, code, own);
    return { outcome: { index, code, nonce: hex(own) }, path: this.#shown(logged, index, data, path) };
  }

  /** Returns the path of a shoe in its block, and the commitment to the shoe. */
  async shoe(
    logged: LoggedEntry,
    { gameId, index, rules }: DealtOutcome & { readonly rules: BlackjackRules },
  ): Promise<{ commitment: string; path: string[] }> {
    const { opening } = logged;
    const { fromIndex } = opening;
    const place = index - fromIndex;
    const { count, kept, parts } = await this.reads.blockPart(opening, place);
    const hash = rulesHash(rules);
    const commitmentsAt = (from: number): Buffer[] => {
      const seeds = parts.get(from)!;
      return Array.from({ length: seeds.length / SHOE_SEED_BYTES }, (_, at) => {
        const seed = seeds.subarray(at * SHOE_SEED_BYTES, (at + 1) * SHOE_SEED_BYTES);
        return shoeCommitment({ gameId, index: fromIndex + from + at, rulesHash: hash, seed });
      });
    };
    const leaves = (from: number, to: number) =>
      shoeLeaves(gameId, fromIndex + from, commitmentsAt(from).slice(0, to - from));
    const path = blockPath(place, count, kept, leaves, this.#remember(logged));
    const commitment = commitmentsAt(place - (place % GROUP_LEAVES))[place % GROUP_LEAVES]!;
    const data = shoeLeafData({ gameId, index }, commitment);
    return { commitment: hex(commitment), path: this.#shown(logged, index, data, path) };
  }
}
