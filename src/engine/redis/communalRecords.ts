/**
 * Readers and writers of what the scripts keep of communal progressives, and of their notes in the outbox: what has more
 * to it than a layout (domain/layouts.ts).
 */
import {
  type BonusNotice,
  COMMUNITY_SIZE_MAX,
  type CommunalRules,
  type CommunalTier,
  type EventStatus,
  type PotRecord,
  type PotState,
} from '../../domain/communal.js';
import {
  COMMUNAL_LIMITS,
  EVENT_NOTE,
  NOTE_CAUSE,
  NOTE_STATUS,
  NOTE_TYPE,
  NOTIFIED_NOTE,
  PLAYER_STATUS,
  POT_FLAGS,
  POT_RULES,
  POT_STATE,
  RULE_FLAGS,
  STATE_NOTE,
  TIER,
  WAITING_SHARE,
} from '../../domain/layouts.js';
import { readNotice, writeNotice } from '../../domain/spinTail.js';

// Pots -----------------------------------------------------------------------------------------------------------------

export function readState(buffer: Buffer, at = 0): PotState {
  const { flags, ...state } = POT_STATE.read(buffer, at);
  return { ...state, remembersPlayers: (flags & POT_FLAGS.remembersPlayers) !== 0 };
}

export const writeState = ({ version, remembersPlayers, progress, budgetMicros }: PotState): Buffer =>
  POT_STATE.make({
    version,
    flags: remembersPlayers ? POT_FLAGS.remembersPlayers : 0,
    progress,
    budgetMicros,
  });

export function writeRules(partnerId: number, rules: CommunalRules): Buffer {
  const { triggerInterval, triggerSplit, windowMinutes } = rules;
  const flags =
    (rules.enabled ? RULE_FLAGS.enabled : 0) |
    (rules.emptyCommunity === 'RETURN_TO_BUDGET' ? RULE_FLAGS.returnsToBudget : 0) |
    (rules.onShortBudget === 'PAY_REMAINING' ? RULE_FLAGS.paysRemaining : 0);
  const communitySize = Math.min(rules.communitySize, COMMUNITY_SIZE_MAX);
  const tiers = rules.tiers.flatMap(({ triggerAtSpins, amountMicros, tierName }) => {
    const name = Buffer.from(tierName);
    return [TIER.make({ triggerAtSpins, amountMicros, tierName: name.length }), name];
  });
  const head = { partnerId, flags, triggerInterval, triggerSplit, windowMinutes, communitySize };
  return Buffer.concat([POT_RULES.make({ ...head, tiers: rules.tiers.length }), ...tiers]);
}

/** The record of a game: POT_STATE, POT_RULES, tiers. */
export function readPot(record: Buffer): PotRecord {
  const { partnerId, flags, tiers: count, ...numbers } = POT_RULES.read(record, POT_STATE.bytes);
  const tiers: CommunalTier[] = [];
  let at = POT_STATE.bytes + POT_RULES.bytes;
  for (let tierLevel = 1; tierLevel <= count; tierLevel++) {
    const { tierName: nameBytes, ...tier } = TIER.read(record, at);
    const nameAt = at + TIER.bytes;
    at = nameAt + nameBytes;
    tiers.push({ tierLevel, tierName: record.toString('utf8', nameAt, at), ...tier });
  }
  return {
    ...readState(record),
    partnerId,
    rules: {
      enabled: (flags & RULE_FLAGS.enabled) !== 0,
      ...numbers,
      tiers,
      emptyCommunity: (flags & RULE_FLAGS.returnsToBudget) !== 0 ? 'RETURN_TO_BUDGET' : 'TO_TRIGGER',
      onShortBudget: (flags & RULE_FLAGS.paysRemaining) !== 0 ? 'PAY_REMAINING' : 'SKIP',
    },
  };
}

// Events and shares ----------------------------------------------------------------------------------------------------

/** A share that waits for its player. */
export interface WaitingShare extends BonusNotice {
  /** Ledger entry of the share. */
  readonly entryId: bigint;
}

/** Bytes of a WAITING_SHARE that its length does not count. */
const LENGTH_BYTES = WAITING_SHARE.at.entryId;

export function writeWaitingShare({ entryId, ...share }: WaitingShare): Buffer {
  const notice = writeNotice(share);
  const length = WAITING_SHARE.bytes - LENGTH_BYTES + notice.length;
  return Buffer.concat([WAITING_SHARE.make({ length, entryId }), notice]);
}

/** Shares that wait for a player, oldest first. @throws RangeError where they can't be read. */
export function readWaitingShares(bytes: Buffer): WaitingShare[] {
  const shares: WaitingShare[] = [];
  let at = 0;
  while (at < bytes.length) {
    const { length, entryId } = WAITING_SHARE.read(bytes, at);
    const end = at + LENGTH_BYTES + length;
    if (end > bytes.length) throw new RangeError("A player's shares can't be read");
    shares.push({ entryId, ...readNotice(bytes.subarray(at + WAITING_SHARE.bytes, end)) });
    at = end;
  }
  return shares;
}

/** Where shares are kept: the oldest behind PLAYER, as many as fit, and the rest in the player's list. */
export function placeWaitingShares(shares: readonly Buffer[]): {
  behindPlayer: Buffer;
  listed: readonly Buffer[];
} {
  let bytes = PLAYER_STATUS.bytes;
  let count = 0;
  while (count < shares.length && bytes + shares[count]!.length <= COMMUNAL_LIMITS.WAITING_BYTES_MAX)
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

export type NoteCause = keyof typeof NOTE_CAUSE;
const nameOf = <K extends string>(codes: Readonly<Record<K, number>>, code: number): K | undefined =>
  (Object.keys(codes) as K[]).find((name) => codes[name] === code);

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

export interface CommunalEventNote {
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

/** A spin has notified its player of a share. */
export interface NotifiedNote {
  readonly type: 'notified';
  readonly shareId: bigint;
  readonly spinId: bigint;
}

export type CommunalNote = StateNote | CommunalEventNote | NotifiedNote;

/** Reads the payload of a note. @throws RangeError where it is of no known type. */
export function readNote(payload: Buffer): CommunalNote {
  switch (nameOf(NOTE_TYPE, payload[0]!)) {
    case 'state': {
      const note = STATE_NOTE.read(payload);
      const cause = nameOf(NOTE_CAUSE, note.cause);
      if (cause === undefined) break;
      return { ...note, type: 'state', cause };
    }
    case 'event': {
      const note = EVENT_NOTE.read(payload);
      const status = nameOf(NOTE_STATUS, note.status);
      if (status === undefined) break;
      return { ...note, type: 'event', status, tierName: payload.toString('utf8', EVENT_NOTE.bytes) };
    }
    case 'notified':
      return { ...NOTIFIED_NOTE.read(payload), type: 'notified' };
  }
  throw new RangeError('A communal note is of an unknown type');
}
