/** Compares the statuses of players (blocked or active) in Redis with those in Postgres. */
import { setTimeout as pause } from 'node:timers/promises';
import type { PlayerStatus } from '../../domain/playerStatus.js';
import type { PlayerStatusReads } from '../../engine/cells/playerStatuses.store.js';
import type { RedisAuditReads } from '../../engine/redis/auditReads.js';
import { hasStatus, readPlayer } from '../../engine/redis/cellRecords.js';
import { playerField } from '../../engine/redis/keys.js';
import type { Facts } from './auditReads.store.js';
import type { Findings } from './report.js';

const TRIES = 8;
const PAUSE_MS = 125;

/** Player statuses found in Redis, by cell and by the player's field name. */
export class SeenStatuses {
  readonly #byCell = new Map<number, Map<string, PlayerStatus>>();

  note(cell: number, field: Buffer, record: Buffer): void {
    if (hasStatus(record)) this.of(cell).set(field.toString(), readPlayer(record).status);
  }

  of(cell: number): Map<string, PlayerStatus> {
    let statuses = this.#byCell.get(cell);
    if (statuses === undefined) {
      statuses = new Map();
      this.#byCell.set(cell, statuses);
    }
    return statuses;
  }
}

/** Differences are compared again a few times, because a change in progress may explain them. */
export async function auditPlayerStatuses(audit: {
  readonly facts: Facts;
  readonly findings: Findings;
  readonly onRecord: PlayerStatusReads;
  readonly redis: Pick<RedisAuditReads, 'playerStatus'>;
  readonly seen: SeenStatuses;
}): Promise<void> {
  const { facts, findings, redis, seen } = audit;
  for (let cell = 0; cell < facts.cells; cell++) {
    const found = seen.of(cell);
    let disagreeing: readonly (readonly [player: string, expected: PlayerStatus])[] = [];
    for (let attempt = 0; attempt < TRIES; attempt++) {
      if (attempt > 0) await pause(PAUSE_MS);
      const onRecord = new Map<string, PlayerStatus>();
      for (const { partnerId, playerId, status } of await audit.onRecord.playerStatuses(cell))
        onRecord.set(playerField(partnerId, playerId), status);
      if (attempt === 0) findings.looked('statuses', 'statuses on record', onRecord.size);
      const players = attempt === 0 ? new Set([...onRecord.keys(), ...found.keys()]) : found.keys();
      // A player without a status is active in both stores.
      disagreeing = [...players].flatMap((player) => {
        const expected = onRecord.get(player) ?? 'ACTIVE';
        return expected === (found.get(player) ?? 'ACTIVE') ? [] : [[player, expected] as const];
      });
      if (disagreeing.length === 0) break;
      found.clear();
      for (const [player] of disagreeing) found.set(player, await redis.playerStatus(cell, player));
    }
    for (const [player, expected] of disagreeing) {
      const problem = 'the status of the player in Redis differs from Postgres';
      const colon = player.indexOf(':');
      const at = { cell, partner: Number(player.slice(0, colon)), player: player.slice(colon + 1) };
      findings.found('statuses', problem, at, expected, found.get(player) ?? 'ACTIVE');
    }
  }
}
