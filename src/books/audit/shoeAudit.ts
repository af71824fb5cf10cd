/**
 * Audits sealed blocks of shoes: their commitment, and the outcome code of each shoe, which must be the
 * result of the deal from its seed.
 */
import { createHash } from 'node:crypto';
import { rulesHash } from '../../domain/games/blackjackRules.js';
import { shuffleShoe } from '../../domain/games/shoe.js';
import { dealCode } from '../../domain/games/table.js';
import type { CopyRow } from '../../postgres/copy.js';
import { BLOCKS } from './auditColumns.js';
import type { AuditedTable } from './gameAuditReads.store.js';
import type { Findings, Place } from './report.js';

const SEED_BYTES = 32;

const seedsOf = (row: CopyRow): Buffer[] => {
  const seeds = row.bytes(BLOCKS.seed);
  return Array.from({ length: Math.floor(seeds.length / SEED_BYTES) }, (_, i) =>
    seeds.subarray(i * SEED_BYTES, (i + 1) * SEED_BYTES),
  );
};

/**
 * Computes the commitment of a block of shoes, in hexadecimal. The computation follows docs/blackjack.md and
 * does not use the code of the service.
 */
export function shoesCommitmentOf(row: CopyRow, table: AuditedTable): string {
  const whole = createHash('sha256').update('spindle blackjack shoes v1\n');
  for (const commitment of shoeCommitmentsOf(row, table)) whole.update(commitment);
  return whole.digest('hex');
}

export function shoeCommitmentsOf(row: CopyRow, { rules }: AuditedTable): Buffer[] {
  const hash = rulesHash(rules);
  const position = Buffer.alloc(12);
  position.writeUInt32BE(row.int(BLOCKS.gameId), 0);
  return seedsOf(row).map((seed, i) => {
    position.writeBigUInt64BE(BigInt(row.safe(BLOCKS.fromIndex) + i), 4);
    const shoe = createHash('sha256').update('spindle blackjack shoe v1\n');
    return shoe.update(position).update(hash).update(seed).digest();
  });
}

/** Verifies that each shoe has a seed and that its outcome code is the result of the deal from that seed. */
export function judgeShoes(row: CopyRow, { rules }: AuditedTable, findings: Findings, at: Place): void {
  const outcomes = row.bytes(BLOCKS.outcomes);
  const seeds = seedsOf(row);
  if (seeds.length * 2 !== outcomes.length || seeds.length * SEED_BYTES !== row.bytes(BLOCKS.seed).length) {
    findings.found(
      'blocks',
      'the number of seeds of a block differs from its number of shoes',
      at,
      outcomes.length / 2,
      seeds.length,
    );
    return;
  }
  seeds.forEach((seed, i) => {
    const code = dealCode(rules, shuffleShoe(rules.decks, seed));
    const sealed = outcomes.readUInt16LE(i * 2);
    if (code !== sealed)
      findings.found(
        'blocks',
        'the sealed deal of a shoe differs from the deal of its seed',
        { ...at, place: i },
        code,
        sealed,
      );
  });
}
