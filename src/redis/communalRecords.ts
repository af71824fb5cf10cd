/**
 * Readers and writers of what the scripts keep of communal progressives (lua/include/communalRecords.lua), and of their
 * notes in the outbox. Little endian.
 */
import {
  COMMUNITY_SIZE_MAX,
  type CommunalRules,
  type CommunalTier,
  type EventStatus,
  type PotRecord,
  type PotState,
  type ToldBonus,
} from '../domain/communal.js';
import { readId, readSafeInt64 } from './records.js';

// STATE and RULES ----------------------------------------------------------------------------------------------------

const STATE_BYTES = 19;
const REMEMBERS = 1;
const RULE_FLAGS = { enabled: 1, returnsToBudget: 2, paysRemaining: 4 } as const;

export function readState(buffer: Buffer, at = 0): PotState {
  return {
    version: buffer.readUInt32LE(at),
    remembersPlayers: (buffer[at + 4]! & REMEMBERS) !== 0,
    progress: buffer.readUIntLE(at + 5, 6),
    budgetMicros: readSafeInt64(buffer, at + 11),
  };
}

export function writeState({ version, remembersPlayers, progress, budgetMicros }: PotState): Buffer {
  const buffer = Buffer.alloc(STATE_BYTES);
  buffer.writeUInt32LE(version, 0);
  buffer[4] = remembersPlayers ? REMEMBERS : 0;
  buffer.writeUIntLE(progress, 5, 6);
  buffer.writeBigInt64LE(BigInt(budgetMicros), 11);
  return buffer;
}

export function writeRules(partnerId: number, rules: CommunalRules): Buffer {
  const head = Buffer.alloc(15);
  head.writeUInt32LE(partnerId, 0);
  head[4] =
    (rules.enabled ? RULE_FLAGS.enabled : 0) |
    (rules.emptyCommunity === 'RETURN_TO_BUDGET' ? RULE_FLAGS.returnsToBudget : 0) |
    (rules.onShortBudget === 'PAY_REMAINING' ? RULE_FLAGS.paysRemaining : 0);
  head.writeUInt32LE(rules.triggerInterval, 5);
  head.writeUInt16LE(rules.triggerSplit, 9);
  head.writeUInt16LE(rules.windowMinutes, 11);
  head[13] = Math.min(rules.communitySize, COMMUNITY_SIZE_MAX);
  head[14] = rules.tiers.length;
  const tiers = rules.tiers.map(({ triggerAtSpins, amountMicros, tierName }) => {
    const name = Buffer.from(tierName);
    const tier = Buffer.alloc(14);
    tier.writeUInt32LE(triggerAtSpins, 0);
    tier.writeBigInt64LE(BigInt(amountMicros), 4);
    tier.writeUInt16LE(name.length, 12);
    return Buffer.concat([tier, name]);
  });
  return Buffer.concat([head, ...tiers]);
}

/** The record of a game: STATE and RULES. */
export function readPot(record: Buffer): PotRecord {
  const at = STATE_BYTES;
  const flags = record[at + 4]!;
  const tiers: CommunalTier[] = [];
  let tierAt = at + 15;
  for (let tierLevel = 1; tierLevel <= record[at + 14]!; tierLevel++) {
    const nameAt = tierAt + 14;
    const end = nameAt + record.readUInt16LE(tierAt + 12);
    tiers.push({
      tierLevel,
      tierName: record.toString('utf8', nameAt, end),
      triggerAtSpins: record.readUInt32LE(tierAt),
      amountMicros: readSafeInt64(record, tierAt + 4),
    });
    tierAt = end;
  }
  return {
    ...readState(record),
    partnerId: record.readUInt32LE(at),
    rules: {
      enabled: (flags & RULE_FLAGS.enabled) !== 0,
      triggerInterval: record.readUInt32LE(at + 5),
      triggerSplit: record.readUInt16LE(at + 9),
      tiers,
      windowMinutes: record.readUInt16LE(at + 11),
      communitySize: record[at + 13]!,
      emptyCommunity: (flags & RULE_FLAGS.returnsToBudget) !== 0 ? 'RETURN_TO_BUDGET' : 'TO_TRIGGER',
      onShortBudget: (flags & RULE_FLAGS.paysRemaining) !== 0 ? 'PAY_REMAINING' : 'SKIP',
    },
  };
}

// TOLD and SHARE ----------------------------------------------------------------------------------------------------

const TOLD_BYTES = 26;
/** Lua's UNTOLD_BYTES_MAX: bytes behind PLAYER, its status included, beyond which shares go to the player's list. */
const UNTOLD_BYTES_MAX = 2048;
const STATUS_BYTES = 5;

export const readTold = (tail: Buffer): ToldBonus => ({
  eventId: readId(tail, 0),
  tierLevel: tail[8]!,
  isTrigger: tail[9] === 1,
  paidMicros: readSafeInt64(tail, 10),
  shareMicros: readSafeInt64(tail, 18),
  tierName: tail.toString('utf8', TOLD_BYTES),
});

export function writeTold(told: ToldBonus): Buffer {
  const head = Buffer.alloc(TOLD_BYTES);
  head.writeBigUInt64LE(told.eventId, 0);
  head[8] = told.tierLevel;
  head[9] = told.isTrigger ? 1 : 0;
  head.writeBigInt64LE(BigInt(told.paidMicros), 10);
  head.writeBigInt64LE(BigInt(told.shareMicros), 18);
  return Buffer.concat([head, Buffer.from(told.tierName)]);
}

/** A share that its player is still to be told of. */
export interface UntoldShare extends ToldBonus {
  /** Ledger entry of the share. */
  readonly entryId: bigint;
}

export function writeUntold(share: UntoldShare): Buffer {
  const told = writeTold(share);
  const head = Buffer.alloc(10);
  head.writeUInt16LE(8 + told.length, 0);
  head.writeBigUInt64LE(share.entryId, 2);
  return Buffer.concat([head, told]);
}

/** Shares that a player is still to be told of, oldest first. @throws RangeError where they can't be read. */
export function readUntold(bytes: Buffer): UntoldShare[] {
  const shares: UntoldShare[] = [];
  let at = 0;
  while (at < bytes.length) {
    const end = at + 2 + bytes.readUInt16LE(at);
    if (end > bytes.length) throw new RangeError("A player's shares can't be read");
    shares.push({ entryId: readId(bytes, at + 2), ...readTold(bytes.subarray(at + 10, end)) });
    at = end;
  }
  return shares;
}

/** Where shares are kept: the oldest behind PLAYER, as many as fit, and the rest in the player's list. */
export function placeUntold(shares: readonly Buffer[]): { behindPlayer: Buffer; listed: readonly Buffer[] } {
  let bytes = STATUS_BYTES;
  let count = 0;
  while (count < shares.length && bytes + shares[count]!.length <= UNTOLD_BYTES_MAX)
    bytes += shares[count++]!.length;
  return { behindPlayer: Buffer.concat(shares.slice(0, count)), listed: shares.slice(count) };
}

// RECENT --------------------------------------------------------------------------------------------------------------

/** A player that a game remembers, by the field of its record, and when it spun last. */
export interface RecentPlayer {
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly spunMs: number;
}

/** @param players the most recent first, each once */
export function writeRecent(players: readonly RecentPlayer[]): string {
  let momentMs: number | undefined;
  return players
    .toReversed()
    .flatMap(({ name, spunMs }) => {
      if (spunMs === momentMs) return [name];
      momentMs = spunMs;
      return [`=${spunMs}`, name];
    })
    .join('\n');
}

// Notes --------------------------------------------------------------------------------------------------------------

export type NoteCause = 'spins' | 'rules' | 'funding';
const CAUSES: readonly (NoteCause | undefined)[] = [undefined, 'spins', 'rules', 'funding'];
const STATUSES: readonly (EventStatus | undefined)[] = [undefined, 'PAID', 'SKIPPED_BUDGET'];

/** What a call changed of a pot: its counter and its budget. */
export interface StateNote {
  readonly type: 'state';
  readonly cause: NoteCause;
  /** The version of the rules; of funding, its intent. */
  readonly reference: number;
  readonly progressBefore: number;
  readonly progress: number;
  readonly budgetBeforeMicros: number;
  readonly budgetMicros: number;
}

export interface EventNote {
  readonly type: 'event';
  readonly eventId: bigint;
  readonly version: number;
  readonly tierLevel: number;
  readonly tierName: string;
  readonly status: EventStatus;
  readonly progress: number;
  /** Of the tier. */
  readonly amountMicros: number;
  readonly paidMicros: number;
  readonly winners: number;
}

/** A spin has told a share. */
export interface ToldNote {
  readonly type: 'told';
  readonly shareId: bigint;
  readonly spinId: bigint;
}

export type CommunalNote = StateNote | EventNote | ToldNote;

/** Reads the payload of a note. @throws RangeError where it is of no known type. */
export function readNote(payload: Buffer): CommunalNote {
  switch (payload[0]) {
    case 1: {
      const cause = CAUSES[payload[1]!];
      if (cause === undefined) break;
      return {
        type: 'state',
        cause,
        reference: payload.readUIntLE(2, 6),
        progressBefore: payload.readUIntLE(8, 6),
        progress: payload.readUIntLE(14, 6),
        budgetBeforeMicros: readSafeInt64(payload, 20),
        budgetMicros: readSafeInt64(payload, 28),
      };
    }
    case 2: {
      const status = STATUSES[payload[14]!];
      if (status === undefined) break;
      return {
        type: 'event',
        eventId: readId(payload, 1),
        version: payload.readUInt32LE(9),
        tierLevel: payload[13]!,
        status,
        progress: payload.readUIntLE(15, 6),
        amountMicros: readSafeInt64(payload, 21),
        paidMicros: readSafeInt64(payload, 29),
        winners: payload[37]!,
        tierName: payload.toString('utf8', 38),
      };
    }
    case 3:
      return { type: 'told', shareId: readId(payload, 1), spinId: readId(payload, 9) };
  }
  throw new RangeError('A communal note is of an unknown type');
}

/** What the outbox record of a share has beside its entry: event id u64, and 1 where its player fired the event, u8. */
export const SHARE_OF_TRIGGER = 1;
