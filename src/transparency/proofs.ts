/** Proofs of what was dealt (docs/proofs.md), made of what Postgres has: the path in the block, the entry, and the log's proof of it. */
import { type BlackjackRules, rulesHash } from '../domain/games/blackjackRules.js';
import { SHOE_SEED_BYTES, shoeCommitment } from '../domain/games/shoe.js';
import { unpackOutcomes } from '../domain/outcome.js';
import { blockPath, GROUP_LEAVES, outcomeLeaves, shoeLeaves } from '../domain/transparency/blockTree.js';
import { tlogProofText } from '../domain/transparency/checkpoints.js';
import { labelOf } from '../domain/transparency/entries.js';
import { leafKeyOf, leafNonces } from '../domain/transparency/leaves.js';
import { openedText } from '../domain/transparency/openings.js';
import { hashInTile, tileWith } from '../domain/transparency/tiles.js';
import { inclusionPath } from '../domain/transparency/tree.js';
import type { LoggedEntry, PublicLogReads, Published } from '../postgres/publicLogReads.js';

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

/** @throws Error where nothing is published, which no entry that is published allows */
async function newest(reads: PublicLogReads, logId: number): Promise<Published> {
  const published = await reads.publishedOf(logId);
  if (published === undefined) throw new Error('No checkpoint is published');
  return published;
}

/** Proves by the newest published checkpoint of its log that it has an entry. */
export async function proveEntry(reads: PublicLogReads, logged: LoggedEntry): Promise<EntryProof> {
  const { opening, logId, logIndex } = logged;
  const { size, note } = await newest(reads, logId);
  const tiles = await reads.tilesFor(logId, logIndex, size);
  const path = inclusionPath(logIndex, size, (level, index) => {
    const place = tileWith(level, index, size);
    return hashInTile(tiles.get(`${place.level}/${place.index}`)!, level, index);
  });
  return {
    entry: openedText(opening),
    salt: hex(logged.salt),
    label: hex(labelOf(opening.labelKey, opening.number)),
    logIndex,
    loggedAt: logged.loggedAt.toISOString(),
    tlogProof: tlogProofText({ index: logIndex, path, checkpoint: note }),
  };
}

/** An outcome or ticket that was dealt. */
export interface DealtOutcome {
  readonly gameId: number;
  readonly index: number;
}

/** Gives the packed outcomes of a block again whose outcomes are removed (blocks/redrawing.ts). */
export type DrawAgain = (block: { gameId: number; seed: Buffer; count: number }) => Promise<Buffer>;

/** The path of an outcome in its block, and what its leaf is made of. */
export async function proveOutcome(
  { reads, drawAgain }: { readonly reads: PublicLogReads; readonly drawAgain: DrawAgain },
  { opening }: LoggedEntry,
  { gameId, index }: DealtOutcome,
): Promise<{ outcome: { index: number; code: number; nonce: string }; path: string[] }> {
  const { fromIndex } = opening;
  const place = index - fromIndex;
  const { count, seed, nonce, tree, isRemoved, parts } = await reads.blockPart(opening, place, GROUP_LEAVES);
  const drawn = isRemoved ? unpackOutcomes(await drawAgain({ gameId, seed, count })) : undefined;
  const key = leafKeyOf({ gameId, fromIndex, nonce });
  const codesAt = (from: number): Uint16Array =>
    drawn?.subarray(from, from + GROUP_LEAVES) ?? unpackOutcomes(parts.get(from)!);
  const path = blockPath(place, count, tree, (from, to) =>
    outcomeLeaves({
      ...{ gameId, fromIndex: fromIndex + from, codes: codesAt(from).subarray(0, to - from) },
      nonces: (first, wanted) => leafNonces(key, wanted, from + first),
    }),
  );
  const code = codesAt(place - (place % GROUP_LEAVES))[place % GROUP_LEAVES]!;
  return { outcome: { index, code, nonce: hex(leafNonces(key, 1, place)) }, path: path.map(hex) };
}

/** The path of a shoe in its block, and its commitment. */
export async function proveShoe(
  reads: PublicLogReads,
  { opening }: LoggedEntry,
  { gameId, index, rules }: DealtOutcome & { readonly rules: BlackjackRules },
): Promise<{ commitment: string; path: string[] }> {
  const { fromIndex } = opening;
  const place = index - fromIndex;
  const { count, tree, parts } = await reads.blockPart(opening, place, GROUP_LEAVES);
  const hash = rulesHash(rules);
  const commitmentsAt = (from: number): Buffer[] => {
    const seeds = parts.get(from)!;
    return Array.from({ length: seeds.length / SHOE_SEED_BYTES }, (_, at) => {
      const seed = seeds.subarray(at * SHOE_SEED_BYTES, (at + 1) * SHOE_SEED_BYTES);
      return shoeCommitment({ gameId, index: fromIndex + from + at, rulesHash: hash, seed });
    });
  };
  const path = blockPath(place, count, tree, (from, to) =>
    shoeLeaves(gameId, fromIndex + from, commitmentsAt(from).slice(0, to - from)),
  );
  const commitment = commitmentsAt(place - (place % GROUP_LEAVES))[place % GROUP_LEAVES]!;
  return { commitment: hex(commitment), path: path.map(hex) };
}
