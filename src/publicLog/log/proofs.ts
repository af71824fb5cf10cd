/**
 * Proofs of what was dealt (docs/proofs.md), made of what Postgres has: the path in the block, the entry, and the log's proof of it. What is given
 * away holds: each path is held against the root that the entry or the checkpoint names.
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

/** Where an entry stands in the log, and that it does. */
interface EntryProof {
  readonly entry: string;
  readonly salt: string;
  readonly label: string;
  readonly logIndex: number;
  readonly loggedAt: string;
  readonly tlogProof: string;
}

/** An outcome or ticket that was dealt. */
export interface DealtOutcome {
  readonly gameId: number;
  readonly index: number;
}

/** Gives the packed outcomes of a block again whose outcomes are removed (blocks/redrawing.ts). */
export type DrawAgain = (block: { gameId: number; seed: Buffer; count: number }) => Promise<Buffer>;

export class Proofs {
  readonly #reads: PublicLogReads;
  readonly #drawAgain: DrawAgain;
  readonly #tiles: LogTiles;
  readonly #known = new KnownSubtrees();

  constructor(reads: PublicLogReads, drawAgain: DrawAgain) {
    this.#reads = reads;
    this.#drawAgain = drawAgain;
    this.#tiles = new LogTiles(reads);
  }

  /** What was made for a block, by the salt of its entry: whatever has the same salt in the log has the same leaves. */
  #remember({ salt }: LoggedEntry): Remember {
    const of = salt.toString('latin1');
    return (name, make) => {
      const known = this.#known.find(`${of} ${name}`) ?? make();
      this.#known.keep(`${of} ${name}`, known);
      return known;
    };
  }

  /** A leaf's path, as texts. @throws Error where it does not lead to the block's root */
  #shown({ opening }: LoggedEntry, index: number, data: Buffer, path: Buffer[]): string[] {
    const { tree, fromIndex, toIndex } = opening;
    const root = rootByInclusion(index - fromIndex, toIndex - fromIndex, leafHash(data), path);
    if (root?.equals(tree!.subarray(0, HASH_BYTES))) return path.map(hex);
    this.#known.clear();
    throw new Error(`What is kept of the block does not prove its index ${index}`);
  }

  /** Proves by a checkpoint of its log, absent the newest published one, that it has an entry. @throws Error where nothing is published of it */
  async entry(logged: LoggedEntry, covering?: Covering): Promise<EntryProof> {
    const { opening, logIndex, salt } = logged;
    const checkpoint = covering ?? (await this.#reads.publishedOf(logged.logId));
    if (checkpoint === undefined) throw new Error('No checkpoint is published');
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

  /** The path of an outcome in its block, and what its leaf is made of. */
  async outcome(
    logged: LoggedEntry,
    { gameId, index }: DealtOutcome,
  ): Promise<{ outcome: Static<typeof ProvenOutcome>; path: string[] }> {
    const { opening } = logged;
    const { fromIndex } = opening;
    const place = index - fromIndex;
    const { count, seed, nonce, kept, isRemoved, parts } = await this.#reads.blockPart(opening, place);
    const drawn = isRemoved ? unpackOutcomes(await this.#drawAgain({ gameId, seed, count })) : undefined;
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

  /** The path of a shoe in its block, and its commitment. */
  async shoe(
    logged: LoggedEntry,
    { gameId, index, rules }: DealtOutcome & { readonly rules: BlackjackRules },
  ): Promise<{ commitment: string; path: string[] }> {
    const { opening } = logged;
    const { fromIndex } = opening;
    const place = index - fromIndex;
    const { count, kept, parts } = await this.#reads.blockPart(opening, place);
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
