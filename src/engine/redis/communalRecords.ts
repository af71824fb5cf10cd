/**
 * Encodes and decodes the records of communal progressives in Redis, and their notes in the outbox. Only
 * records and notes that are more than a fixed layout (domain/layouts.ts) are handled here.
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

/** Decodes the record of a game's pot: POT_STATE, POT_RULES, tiers. */
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

/** A share that its player has not been notified of. */
export interface WaitingShare extends BonusNotice {
  /** Id of the ledger entry that credited the share. */
  readonly entryId: bigint;
}

/** Size of the length field of a WAITING_SHARE, in bytes. The length does not include the field itself. */
const LENGTH_BYTES = WAITING_SHARE.at.entryId;

export function writeWaitingShare({ entryId, ...share }: WaitingShare): Buffer {
  const notice = writeNotice(share);
  const length = WAITING_SHARE.bytes - LENGTH_BYTES + notice.length;
  return Buffer.concat([WAITING_SHARE.make({ length, entryId }), notice]);
}

/**
 * Decodes the shares that a player has not been notified of, oldest first.
 * @throws RangeError if the bytes are malformed
 */
export function readWaitingShares(bytes: Buffer): WaitingShare[] {
  const shares: WaitingShare[] = [];
  let at = 0;
  while (at < bytes.length) {
    const { length, entryId } = WAITING_SHARE.read(bytes, at);
    const end = at + LENGTH_BYTES + length;
    if (end > bytes.length) throw new RangeError("The record of a player's shares is too short");
    shares.push({ entryId, ...readNotice(bytes.subarray(at + WAITING_SHARE.bytes, end)) });
    at = end;
  }
  return shares;
}

/**
 * Splits shares by where they are stored: the oldest ones after PLAYER, as many as fit, and all later ones in
 * the player's list.
 */
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

/** A recent player of a game, named by the field of its record, with the time of its last spin. */
export interface RecentPlayer {
  readonly name: string;
  readonly spunMs: number;
}

/** @param players recent players of a game, most recent first, without duplicates */
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

export type NoteCause = keyof typeof NOTE_CAUSE;
const nameOf = <K extends string>(codes: Readonly<Record<K, number>>, code: number): K | undefined =>
  (Object.keys(codes) as K[]).find((name) => codes[name] === code);

/** Changes that a call made to a pot's counter and budget. */
export interface StateNote {
  readonly type: 'state';
  readonly cause: NoteCause;
  /** Version of the rules that applied, or the intent id of a funding. */
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
  /** Amount of the event's tier, in micro-USD. */
  readonly amountMicros: number;
  readonly paidMicros: number;
  readonly winners: number;
}

/** Records that a spin has notified its player of a share. */
export interface NotifiedNote {
  readonly type: 'notified';
  readonly shareId: bigint;
  readonly spinId: bigint;
}

export type CommunalNote = StateNote | CommunalEventNote | NotifiedNote;

/** @throws RangeError if its type is unknown */
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
  throw new RangeError('A note of a communal progressive has an unknown type');
}
