/**
 * Audits sealed blocks and pools: their commitments, gaps between blocks, and whether Redis has the same
 * bytes. On request it also draws every block again.
 */
import { createHash } from 'node:crypto';
import { setImmediate as othersTurn } from 'node:timers/promises';
import { shufflePool } from '../../domain/games/rafflePool.js';
import { packOutcomes, unpackOutcomes } from '../../domain/outcome.js';
import { outcomeLeaves, rootOfTree, sealTree, shoeLeaves } from '../../domain/publicLog/blockTree.js';
import { leafKeyOf, leafNonces } from '../../domain/publicLog/leaves.js';
import type { Hashes } from '../../domain/publicLog/subtrees.js';
import { openFields } from '../../engine/blocks/blockSeals.store.js';
import type { RedisAuditReads } from '../../engine/redis/auditReads.js';
import type { GameRecord } from '../../engine/redis/cellRecords.js';
import type { LoadedBlock } from '../../engine/redis/keys.js';
import type { CopyRow } from '../../postgres/copy.js';
import { BLOCKS } from './auditColumns.js';
import type { AuditReads, Facts, Snapshot } from './auditReads.store.js';
import type { AuditedRaffle, AuditedTable } from './gameAuditReads.store.js';
import { drawnAgain, drawnDifference, type Redrawn } from './redrawn.js';
import type { Findings, Place } from './report.js';
import { judgeShoes, shoeCommitmentsOf, shoesCommitmentOf } from './shoeAudit.js';

const OUTCOME_BYTES = 2;
const OPENED = { seed: BLOCKS.seed, nonce: BLOCKS.nonce, outcomes: BLOCKS.outcomes };
const HASH_BYTES = 32;
/** Number of blocks read from Postgres at a time. Together these blocks have a few megabytes at most. */
const COMPARED_AT_A_TIME = 8;

export interface RedrawOptions {
  readonly redrawn: Redrawn;
  /**
   * True if every block is drawn again. If false, only blocks whose outcomes were removed are drawn again.
   */
  readonly isEveryBlock: boolean;
}

/** @param onBlocks called with the number of audited blocks after each chunk */
export async function auditSealed(
  { facts, blocks }: Snapshot,
  findings: Findings,
  { redrawn, isEveryBlock }: RedrawOptions,
  onBlocks: (blocks: number) => void,
): Promise<void> {
  let count = 0;
  let outcomeCount = 0;
  let removed = 0;
  let gameId = -1;
  let end = 0;
  const trees: KeptTree[] = [];
  const judge = (row: CopyRow): void => {
    openFields(row, BLOCKS.sealed, OPENED);
    const fromIndex = row.safe(BLOCKS.fromIndex);
    const toIndex = row.safe(BLOCKS.toIndex);
    let outcomes = row.bytes(BLOCKS.outcomes);
    if (row.int(BLOCKS.gameId) !== gameId) {
      gameId = row.int(BLOCKS.gameId);
      end = 0;
    }
    const at = { game: gameId, from: fromIndex, to: toIndex };
    if (fromIndex !== end && !isVoided(facts, gameId, end, fromIndex)) {
      findings.found(
        'blocks',
        'the block does not begin at the end of the previous block',
        at,
        end,
        fromIndex,
      );
    }
    end = toIndex;
    const bytes = (toIndex - fromIndex) * OUTCOME_BYTES;
    const draw = (): Uint16Array =>
      redrawn.draw({ gameId, fromIndex, seed: row.bytes(BLOCKS.seed), count: toIndex - fromIndex });
    const isRemoved = outcomes.length === 0 && !row.isNull(BLOCKS.exhaustedAt);
    if (isRemoved) {
      removed++;
      const drawn = drawnAgain(draw);
      if (typeof drawn === 'string') return void findings.found('blocks', drawn, at);
      if (toIndex > (facts.progress.get(gameId) ?? 0))
        findings.found('blocks', 'the outcomes were removed before all were dealt', at);
      outcomes = Buffer.from(packOutcomes(drawn));
    }
    if (outcomes.length !== bytes) {
      findings.found('blocks', 'the size of the block in bytes is wrong', at, bytes, outcomes.length);
    }
    const commitment = row.bytes(BLOCKS.commitment).toString('hex');
    const raffle = facts.raffles.get(gameId);
    const table = facts.tables.get(gameId);
    if (table !== undefined) judgeShoes(row, table, findings, at);
    const sealed = sealedBy(row, outcomes, table, raffle);
    const isLogged = !row.isNull(BLOCKS.tree);
    const mayBeRoot = isLogged && table === undefined && raffle === undefined;
    if (sealed === commitment || mayBeRoot) {
      if (isLogged) trees.push(keptTree(row, outcomes, table, sealed !== commitment));
    } else findings.found('blocks', 'the commitment does not match the block', at, sealed, commitment);
    if (raffle !== undefined) judgePool(raffle, outcomes, findings, at);
    if (isEveryBlock && !isRemoved && table === undefined) {
      const pool = raffle && { ...raffle, prizes: raffle.counts.map((prizes) => ({ count: prizes })) };
      const drawn = pool === undefined ? draw : () => shufflePool(pool, row.bytes(BLOCKS.seed));
      const problem = drawnDifference(drawn, outcomes);
      if (problem !== undefined) findings.found('blocks', problem, at);
    }
    count++;
    outcomeCount += outcomes.length / OUTCOME_BYTES;
  };
  await blocks(judge, async () => {
    onBlocks(count);
    for (const tree of trees.splice(0)) await judgeTree(tree, findings);
  });
  for (const tree of trees.splice(0)) await judgeTree(tree, findings);
  findings.looked('blocks', 'blocks', count);
  findings.looked('blocks', isEveryBlock ? 'outcomes drawn again' : 'outcomes', outcomeCount);
  if (removed > 0) findings.looked('blocks', 'blocks with removed outcomes, drawn again', removed);
}

/** Computes the commitment of a block by the scheme used before the public log existed. */
function sealedBy(
  row: CopyRow,
  outcomes: Buffer,
  table: AuditedTable | undefined,
  raffle: AuditedRaffle | undefined,
): string {
  const [gameId, nonce] = [row.int(BLOCKS.gameId), row.bytes(BLOCKS.nonce)];
  if (table !== undefined) return shoesCommitmentOf(row, table);
  if (raffle === undefined) return commitmentOf(nonce, gameId, row.safe(BLOCKS.fromIndex), outcomes);
  return poolCommitmentOf(nonce, row.bytes(BLOCKS.seed), gameId, raffle.text, outcomes);
}

/**
 * Returns whether all indices of a range are voided. After a restore, a game continues far above the indices
 * that were leased, so the range in between is voided.
 */
function isVoided({ voids }: Facts, gameId: number, fromIndex: number, toIndex: number): boolean {
  let reached = fromIndex;
  for (const range of voids) {
    if (range.gameId === gameId && range.fromIndex <= reached) reached = Math.max(reached, range.toIndex);
  }
  return fromIndex < toIndex && reached >= toIndex;
}

/**
 * Data of a block from which its Merkle tree can be computed again. The computation takes some time, so it is
 * done later.
 */
interface KeptTree {
  readonly at: Place;
  readonly leaves: { readonly count: number; readonly of: (from: number, to: number) => Hashes };
  readonly kept: Buffer;
  readonly commitment: Buffer;
  /** True if the commitment of the block is the root of its Merkle tree. */
  readonly isRoot: boolean;
}

/**
 * Number of leaves hashed before control returns to the event loop. Hashing them takes a few milliseconds.
 */
const LEAVES_AT_ONCE = 16_384;

function keptTree(
  row: CopyRow,
  outcomes: Buffer,
  table: AuditedTable | undefined,
  isRoot: boolean,
): KeptTree {
  const [gameId, fromIndex] = [row.int(BLOCKS.gameId), row.safe(BLOCKS.fromIndex)];
  const codes = unpackOutcomes(Uint8Array.from(outcomes));
  const commitments = table && shoeCommitmentsOf(row, table);
  const key = leafKeyOf({ gameId, fromIndex, nonce: Buffer.from(row.bytes(BLOCKS.nonce)) });
  const nonces = (first: number, count: number): Buffer => leafNonces(key, count, first);
  const of = (from: number, to: number): Hashes =>
    commitments === undefined
      ? outcomeLeaves({ gameId, fromIndex, codes, nonces }, from, to)
      : shoeLeaves(gameId, fromIndex + from, commitments.slice(from, to));
  return {
    at: { game: gameId, from: fromIndex, to: row.safe(BLOCKS.toIndex) },
    leaves: { count: codes.length, of },
    kept: Buffer.from(row.bytes(BLOCKS.tree)),
    commitment: Buffer.from(row.bytes(BLOCKS.commitment)),
    isRoot,
  };
}

/**
 * Verifies that the stored Merkle tree, from which proofs are made, is the tree of the block. For a slot game
 * the root of the tree is also the commitment of the block.
 */
async function judgeTree(
  { at, leaves, kept, commitment, isRoot }: KeptTree,
  findings: Findings,
): Promise<void> {
  const hashes = Buffer.allocUnsafe(leaves.count * HASH_BYTES);
  for (let from = 0; from < leaves.count; from += LEAVES_AT_ONCE) {
    hashes.set(leaves.of(from, Math.min(leaves.count, from + LEAVES_AT_ONCE)), from * HASH_BYTES);
    await othersTurn();
  }
  const tree = sealTree(hashes);
  const root = rootOfTree(tree);
  if (isRoot && !root.equals(commitment)) {
    const [expected, found] = [root.toString('hex'), commitment.toString('hex')];
    findings.found('blocks', 'the commitment does not match the block', at, expected, found);
  } else if (!kept.equals(tree)) {
    findings.found('blocks', 'the stored tree for proofs does not match the block', at);
  }
}

/** Computes the commitment of a slot block that was sealed before the public log existed. */
function commitmentOf(nonce: Buffer, gameId: number, fromIndex: number, outcomes: Buffer): string {
  const position = Buffer.alloc(16);
  position.writeUInt32BE(gameId, 0);
  position.writeBigUInt64BE(BigInt(fromIndex), 4);
  position.writeUInt32BE(Math.floor(outcomes.length / OUTCOME_BYTES), 12);
  return createHash('sha256')
    .update('spindle block v1\n')
    .update(nonce)
    .update(position)
    .update(outcomes)
    .digest('hex');
}

/**
 * Computes the commitment of a pool independently, by the scheme documented in
 * src/domain/games/rafflePool.ts.
 */
function poolCommitmentOf(
  nonce: Buffer,
  seed: Buffer,
  gameId: number,
  table: string,
  outcomes: Buffer,
): string {
  const number = Buffer.alloc(4);
  number.writeUInt32BE(gameId, 0);
  const tableHash = createHash('sha256').update(table, 'utf8').digest();
  return createHash('sha256')
    .update(Buffer.concat([Buffer.from('spindle pool v1\n'), nonce, seed, number, tableHash, outcomes]))
    .digest('hex');
}

/**
 * Verifies that a pool has as many tickets as its prize table, and each prize exactly as often as the table
 * says.
 */
function judgePool(
  { poolSize, counts }: AuditedRaffle,
  outcomes: Buffer,
  findings: Findings,
  at: Place,
): void {
  const tickets = Math.floor(outcomes.length / OUTCOME_BYTES);
  if (tickets !== poolSize) {
    findings.found(
      'blocks',
      'the number of tickets in the pool differs from the prize table',
      at,
      poolSize,
      tickets,
    );
  }
  const found = new Map<number, number>();
  for (let i = 0; i < tickets; i++) {
    const code = outcomes.readUInt16LE(i * OUTCOME_BYTES);
    found.set(code, (found.get(code) ?? 0) + 1);
  }
  const winning = counts.reduce((sum, count) => sum + count, 0);
  for (const [code, count] of [poolSize - winning, ...counts].entries()) {
    const on = found.get(code) ?? 0;
    if (on !== count) {
      findings.found(
        'blocks',
        'the number of tickets with a prize differs from the prize table',
        { ...at, code },
        count,
        on,
      );
    }
  }
}

/** Compares the blocks loaded in Redis with the sealed blocks. */
export async function auditLoaded(
  facts: Facts,
  findings: Findings,
  postgres: AuditReads,
  redis: RedisAuditReads,
): Promise<void> {
  const cellOf = new Map(facts.games.map((game) => [game.gameId, game.cell]));
  const seen = new Set<string>();
  let batch: LoadedBlock[] = [];
  const compare = async (): Promise<void> => {
    await compareBlocks(batch, findings, postgres, redis);
    batch = [];
  };
  for await (const page of redis.loadedBlocks()) {
    for (const block of page) {
      const { cell, gameId, fromIndex } = block;
      const key = `${gameId}/${fromIndex}`;
      // A scan of Redis may return a key twice. A game created after the snapshot is skipped.
      if (seen.has(key) || !cellOf.has(gameId)) continue;
      if (cell !== cellOf.get(gameId)) {
        const at = { game: gameId, from: fromIndex };
        findings.found('blocks', 'the block is in the wrong cell of Redis', at, cellOf.get(gameId), cell);
        continue;
      }
      seen.add(key);
      batch.push(block);
      if (batch.length >= COMPARED_AT_A_TIME) await compare();
    }
  }
  await compare();
  findings.looked('blocks', 'blocks in Redis', seen.size);
  for (const { gameId, cell } of facts.games) {
    // The kind of game is decided by the rows of the database, because the audit must not depend on rules of
    // domain/games.
    const goesOn = facts.raffles.has(gameId) || facts.tables.has(gameId);
    await auditQueue({ cell, gameId, goesOn }, seen, findings, postgres, redis);
  }
}

async function compareBlocks(
  batch: readonly LoadedBlock[],
  findings: Findings,
  postgres: AuditReads,
  redis: RedisAuditReads,
): Promise<void> {
  if (batch.length === 0) return;
  // A block is sealed before it is loaded, so every block in Redis must exist in Postgres.
  const sealed = await postgres.outcomes(batch);
  for (const place of await postgres.unpublished(batch)) {
    const { cell, gameId, fromIndex } = batch[place]!;
    findings.found('log', 'Redis has a block that no published checkpoint covers', {
      cell,
      game: gameId,
      from: fromIndex,
    });
  }
  for (const [i, { cell, gameId, fromIndex }] of batch.entries()) {
    const expected = sealed[i];
    const at = { cell, game: gameId, from: fromIndex };
    if (expected === undefined) {
      findings.found('blocks', 'Redis has a block that was never sealed', at);
      continue;
    }
    const loaded = await redis.block(cell, gameId, fromIndex);
    // The block was removed from Redis after the audit had found its key. The check of the queue decides
    // whether the removal is correct.
    if (loaded === null || loaded.equals(expected)) continue;
    const place = expected.findIndex((byte, position) => byte !== loaded[position]);
    findings.found(
      'blocks',
      'the block in Redis differs from the sealed block',
      { ...at, index: fromIndex + Math.floor((place < 0 ? expected.length : place) / OUTCOME_BYTES) },
      place < 0 ? `${expected.length} bytes` : `byte ${place}: ${expected[place]}`,
      place < 0 ? `${loaded.length} bytes` : `byte ${place}: ${loaded[place] ?? 'none'}`,
    );
  }
}

/**
 * Audits the queue of a game in Redis. It must consist of sealed blocks, and all blocks with outcomes left
 * must be loaded.
 */
async function auditQueue(
  { cell, gameId, goesOn }: { cell: number; gameId: number; goesOn: boolean },
  seen: ReadonlySet<string>,
  findings: Findings,
  postgres: AuditReads,
  redis: RedisAuditReads,
): Promise<void> {
  const game = await redis.game(cell, gameId);
  // After a rebuild of Redis, a raffle or table continues at its index, and its outcomes are loaded a moment
  // later.
  if (game === undefined || (goesOn && (game.queueEnd === 0 || game.queueEnd < game.nextIndex))) return;
  const at = { cell, game: gameId };
  const open = await postgres.blocksFrom(gameId, game.nextIndex);
  const queued = open.filter((block) => block.toIndex <= game.queueEnd);
  const end = queued.at(-1)?.toIndex ?? game.nextIndex;
  if (end !== game.queueEnd) {
    findings.found(
      'blocks',
      'the queue in Redis does not end at the end of a sealed block',
      at,
      end,
      game.queueEnd,
    );
  }
  if (queued.length !== game.readyBlocks) {
    findings.found(
      'blocks',
      'the number of ready blocks in Redis is wrong',
      at,
      queued.length,
      game.readyBlocks,
    );
  }
  await auditAhead(cell, gameId, findings, redis);
  for (const { fromIndex, toIndex } of queued) {
    if (seen.has(`${gameId}/${fromIndex}`) || (await redis.block(cell, gameId, fromIndex)) !== null) continue;
    const now: GameRecord | undefined = await redis.game(cell, gameId);
    if (now !== undefined && now.nextIndex >= toIndex) continue;
    findings.found('blocks', 'a block of the queue is missing in Redis', {
      ...at,
      from: fromIndex,
      to: toIndex,
      next: now?.nextIndex ?? '-',
    });
  }
}

/**
 * Verifies that the outcomes prefetched into the record of a game equal those at its next index in the block.
 */
async function auditAhead(
  cell: number,
  gameId: number,
  findings: Findings,
  redis: RedisAuditReads,
): Promise<void> {
  const game = await redis.ahead(cell, gameId);
  if (game === undefined || game.outcomes.length === 0) return;
  const { nextIndex, blockFrom, outcomes } = game;
  const block = await redis.block(cell, gameId, blockFrom);
  // The block was exhausted and removed from Redis after the audit had read its record.
  if (block === null) return;
  const at = (nextIndex - blockFrom) * 2;
  const sealed = block.subarray(at, at + outcomes.length);
  if (!sealed.equals(outcomes)) {
    findings.found(
      'blocks',
      'the next outcomes of the game in Redis differ from its block',
      { cell, game: gameId, index: nextIndex },
      sealed.toString('hex'),
      outcomes.toString('hex'),
    );
  }
}
