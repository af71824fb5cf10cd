/**
 * Definitions of all packed records: data in Redis, batches and their replies, and the outbox, with their
 * flags, codes and limits. `npm run layouts` generates the format strings of the Lua scripts
 * (lua/include/layouts) from them, and a test checks that both agree. Stores of released versions contain
 * these bytes, so only a migration may change a layout.
 */
import { RECENCY_MAX, SPLIT_WHOLE, TIER_AMOUNT_MAX_MICROS } from './communal.js';
import {
  bytes,
  i64,
  id,
  layout,
  money,
  nested,
  packedId,
  type RecordOf,
  text8,
  text16,
  u8,
  u16,
  u32,
  u48,
} from './layout.js';
import { REQUEST_KEY_BYTES } from './requestKey.js';

/**
 * Maximum absolute value of a balance, in micro-USD. Every sum of two amounts is exact as a double up to this
 * limit.
 */
export const MONEY_MAX_MICROS = 9_000_000_000_000_000;
/**
 * Maximum absolute net of a partner, in micro-USD: a signed 64-bit integer with room for one batch. A net
 * beyond the limit is stored as the limit. This does no harm: the net is compared only with the funding,
 * which is at most MAX_MICROS. A spin that would bring the net near the upper limit is refused long before,
 * and a net at the lower limit leaves all of the funding.
 */
export const NET_MAX_MICROS = 9_000_000_000_000_000_000n;
/**
 * Minimum number of outcomes that a read-ahead takes from a block (it copies them into the record of the
 * game's queue).
 */
export const READ_AHEAD = 16;
/** Length, in bytes, of the fingerprint of a request. Requests with the same requestId are compared by it. */
export const FINGERPRINT_BYTES = 10;

// Cells --------------------------------------------------------------------------------------------------

/** Numbers of ledger entries and of their bytes in the outbox, summed since the cell's epoch began. */
export const TOTALS = layout({ entries: u48, bytes: u48 });
export type Totals = RecordOf<typeof TOTALS>;

/** Time of an entry of the cell, and the entry's sequence number within the millisecond of this time. */
export const MOMENT = layout({ timeMs: u48, sequence: u16 });

/** Field `last`: the newest ledger entry, and TOTALS up to it. */
export const LAST = layout({ ...MOMENT.members, ...TOTALS.members });

/** Field `booked`: the newest entry that Redis knows to be committed, and TOTALS up to it. */
export const BOOKED = layout({ id, ...TOTALS.members });

/**
 * Start of the field `segments`. The ids of the newest entries of the closed segments follow, one for each.
 * The open segment, to which request ids are added, comes after the closed ones.
 */
export const SEGMENTS = layout({
  /** Entry id up to which the request ids of all entries were released. */
  releasedId: id,
  /** Number of the oldest segment in Redis. */
  first: u32,
});

export const ENTRY_ID = layout({ id });

// Games --------------------------------------------------------------------------------------------------

/**
 * Queue of a game. The outcomes that were read ahead of the block, from the next index on, follow (u16 each),
 * if there are any.
 */
export const GAME = layout({
  nextIndex: u48,
  /** Index after the last loaded outcome. */
  queueEnd: u48,
  /** First index of the block that is being dealt from. */
  blockFrom: u48,
  blockEnd: u48,
  /** Number of blocks with at least one outcome left. */
  readyBlocks: u32,
});

// Partners -----------------------------------------------------------------------------------------------

/**
 * The windows of a partner's rate limits for spins and for API requests, each with its minute and the number
 * of requests counted in it. The partner's net (payouts − wagers) follows.
 */
export const PARTNER = layout({
  spinMinute: u32,
  spins: u32,
  apiMinute: u32,
  apiRequests: u32,
  netMicros: i64,
});

// Players and their entries ------------------------------------------------------------------------------

/** Result of a spin. */
export const CORE = layout({ id, outcomeCode: u16, balanceMicros: money });

/** CORE with an id that the script copies without unpacking it. */
export const CORE_OF_ID = layout({ ...CORE.members, id: packedId });

/** Payout of an outcome code in the payout table of a sheet. */
export const PAYOUT = layout({ micros: money });

/**
 * State of a player: CORE of its newest entry, the number of its entries (including the opening), and the
 * time of its creation.
 */
export const PLAYER = layout({ ...CORE.members, entries: u32, createdAtMs: u48 });

/** PLAYER with a CORE that the script copies without unpacking it. */
export const PLAYER_OF_CORE = layout({ core: nested(CORE, 'CORE'), entries: u32, createdAtMs: u48 });

/**
 * Follows PLAYER if the player's status was ever changed or a share waits for the player. It has the
 * PLAYER_FLAGS and the number of the latest change of the status (0: never changed). The waiting shares
 * follow.
 */
export const PLAYER_STATUS = layout({ flags: u8, change: u32 });

/** Bits of the player's flags. `hasListed` means that more shares wait in the player's list. */
export const PLAYER_FLAGS = { isBlocked: 1, hasListed: 2 } as const;

/**
 * Binding of a requestId: CORE of its entry and the request's fingerprint. An optional tail follows, which a
 * replay repeats.
 */
export const BOUND = layout({ core: nested(CORE, 'CORE'), fingerprint: bytes(FINGERPRINT_BYTES) });

// Entries ------------------------------------------------------------------------------------------------

/**
 * First of the three parts of a ledger entry in the outbox. Scripts make the parts separately. The player's
 * name and the requestId follow the last part.
 */
export const ENTRY_HEAD = layout({
  /** Code of an EntryDefinition (ledgerEntry.ts). */
  kind: u8,
  gameId: u32,
  wagerMicros: money,
});

export const ENTRY_BODY = layout({
  outcomeIndex: u48,
  /**
   * Amount credited to the player: the payout of a spin, the amount of an opening, or that of an adjustment,
   * which may be negative.
   */
  creditMicros: money,
  ...CORE.members,
  /** Id of the player's previous entry; 0 for the first. */
  previousId: id,
  /**
   * Number of the entry: 1 for the player's opening, then 2, 3, … for its spins. An adjustment has the number
   * of the entry before it.
   */
  entryNumber: u32,
});

/** Length of `<partner id>:<playerId>` and length of the requestId, in bytes. */
export const ENTRY_TEXT = layout({ playerLength: u16, requestLength: u16 });
export const ENTRY = layout({ ...ENTRY_HEAD.members, ...ENTRY_BODY.members, ...ENTRY_TEXT.members });

// A batch of spins and its reply (lua/deal.lua) -----------------------------------------------------------

/** Header of a batch. The partners follow, then the payout tables, games, spins, players and requestIds. */
export const BATCH = layout({
  partners: u16,
  games: u16,
  players: u16,
  requestIds: u16,
  spins: u16,
  tableBytes: u32,
  /** Offset of the players, after which the requestIds come. */
  listsAt: u32,
  spinsAt: u32,
});

export const BATCH_PARTNER = layout({
  spinLimit: u32,
  apiLimit: u32,
  openingMicros: money,
  /** Funding in micro-USD; −1 means no limit. */
  fundingMicros: money,
  flags: u8,
  /** Number of the partner's newest move that the caller knows; 0 if there is none. */
  newestMove: u32,
  digitsOfId: text8,
});

export const PARTNER_FLAGS = { enforcesBalance: 1, isSandbox: 2 } as const;
export const BATCH_GAME = layout({
  gameId: u32,
  wagerMicros: money,
  maxPayoutMicros: money,
  /**
   * Offset of the game's payouts in the payout tables (i64 by outcome code). Several games may share a payout
   * table.
   */
  payoutsAt: u32,
  payoutCount: u16,
  /** Number of tickets in a raffle's pool; 0 for a slot game, whose queue has no end. */
  poolSize: u32,
  spins: u16,
  digitsOfId: text8,
});

/**
 * A spin of a batch. Positions count from 1; 0 means none. The spin ends like a ledger entry: ENTRY_TEXT,
 * player, requestId.
 */
export const BATCH_SPIN = layout({
  kind: u8,
  deny: u8,
  partner: u16,
  game: u16,
  player: u16,
  requestId: u16,
  fingerprint: bytes(FINGERPRINT_BYTES),
  ...ENTRY_TEXT.members,
});

/** Kinds of batch members. `dealCounted` is a deal that the rate limit window has already counted. */
export const BATCH_KIND = { deal: 1, countSpin: 2, countApi: 3, dealCounted: 4 } as const;
/** Name of a player: `<partner id>:<playerId>`. */
export const BATCH_PLAYER = layout({ name: text16 });
export const BATCH_REQUEST = layout({ key: bytes(REQUEST_KEY_BYTES) });

/**
 * Header of a reply. The following parts are REPLY_PARTNER for each partner, REPLY_SPIN for each spin, and
 * the tails, each after its REPLY_TAIL.
 */
export const REPLY = layout({ timeMs: u48 });
/** Numbers of requests that the rate limit windows had counted before the batch. */
export const REPLY_PARTNER = layout({ spinsUsed: u32, apiUsed: u32 });
export const REPLY_SPIN = layout({ status: u8, core: nested(CORE, 'CORE') });
/** Header of a tail. `place` is the position of its spin, from 0. */
export const REPLY_TAIL = layout({ place: u16, length: u16 });

// Intents, forced outcomes, rounds -----------------------------------------------------------------------

/** Result of an intent: SPIN_STATUS, and CORE of the entry that the intent made (lua/include/intents.lua). */
export const INTENT_REPLY = layout({ status: u8, core: nested(CORE, 'CORE') });

/** Outcome chosen by a tester, and its expiry in milliseconds since the epoch. */
export const FORCED = layout({ outcomeCode: u16, untilMs: u48 });
export const FORCED_REPLY = layout({ status: u8, untilMs: u48 });
/** Tail of a spin whose outcome a tester chose. It is shorter than the tail of a communal progressive. */
export const FORCED_TAIL = Buffer.of(1);

/** An open round: the index of its shoe, the entry of its deal, and the number of steps after the deal. */
export const ROUND = layout({ shoeIndex: u48, dealId: id, steps: u16 });
/**
 * Reply to the script call `roundDeal`. `newestId` is the player's newest entry; 0 if Redis does not have the
 * player.
 */
export const ROUND_DEAL_REPLY = layout({
  timeMs: u48,
  status: u8,
  core: nested(CORE, 'CORE'),
  shoeIndex: u48,
  steps: u16,
  newestId: id,
});

export const ROUND_ACT_REPLY = layout({
  timeMs: u48,
  status: u8,
  core: nested(CORE, 'CORE'),
  newestId: id,
});

// Rotation -----------------------------------------------------------------------------------------------

/**
 * Note of a rotation, which the outbox has in place of a requestId. The outcomes of the game from the note's
 * outcome index up to `toIndex` (exclusive) are voided.
 */
export const ROTATION = layout({ toIndex: u48 });
/**
 * Result of a rotation: SPIN_STATUS, the id of the rotation's note (0 if there was nothing to void), and the
 * voided indices (`toIndex` is exclusive).
 */
export const ROTATE_REPLY = layout({ status: u8, id: packedId, fromIndex: u48, toIndex: u48 });

// Communal progressives ----------------------------------------------------------------------------------

/** State of a pot: version of its rules, POT_FLAGS, number of counted spins, and budget. */
export const POT_STATE = layout({ version: u32, flags: u8, progress: u48, budgetMicros: money });
/** `remembersPlayers` is set when the pot is enabled for the first time. */
export const POT_FLAGS = { remembersPlayers: 1 } as const;
/** Rules of a pot, which follow POT_STATE. The tiers follow the rules. */
export const POT_RULES = layout({
  partnerId: u32,
  flags: u8,
  triggerInterval: u32,
  triggerSplit: u16,
  windowMinutes: u16,
  communitySize: u8,
  tiers: u8,
});

/**
 * `returnsToBudget`: if the community is empty, its part returns to the budget. `paysRemaining`: if the
 * budget is too small for a tier, the event pays what is left.
 */
export const RULE_FLAGS = { enabled: 1, returnsToBudget: 2, paysRemaining: 4 } as const;
export const TIER = layout({ triggerAtSpins: u32, amountMicros: money, tierName: text16 });

/**
 * Bonus that a spin notifies its player of, as the tail of the spin's reply. The name of the tier follows.
 */
export const BONUS_NOTICE = layout({
  eventId: packedId,
  tierLevel: u8,
  /** 1 if the spin triggered the event. The share is part of the spin's balance in that case. */
  isTrigger: u8,
  /** Total payout of the event, in micro-USD. */
  paidMicros: money,
  shareMicros: money,
});

/**
 * A share that waits for its player: the length of the following bytes, and the entry of the share.
 * BONUS_NOTICE and the name of the tier follow.
 */
export const WAITING_SHARE = layout({ length: u16, entryId: id });
/**
 * Takes the place of the requestId in the ledger entry of a share. `isTrigger` is 1 if the player triggered
 * the event.
 */
export const SHARE_TEXT = layout({ eventId: packedId, isTrigger: u8 });

/**
 * Note of a change of a pot by a script call, which the outbox has in place of a requestId: NOTE_CAUSE, the
 * version of the rules or the number of the intent, and the state before and after.
 */
export const STATE_NOTE = layout({
  type: u8,
  cause: u8,
  reference: u48,
  progressBefore: u48,
  progress: u48,
  budgetBeforeMicros: money,
  budgetMicros: money,
});

/** Note of an event of a communal progressive. The name of the tier follows. */
export const EVENT_NOTE = layout({
  type: u8,
  eventId: packedId,
  version: u32,
  tierLevel: u8,
  status: u8,
  progress: u48,
  amountMicros: money,
  paidMicros: money,
  winners: u8,
});

/** Note in the outbox: a spin has notified its player of a share. */
export const NOTIFIED_NOTE = layout({ type: u8, shareId: packedId, spinId: id });
export const NOTE_TYPE = { state: 1, event: 2, notified: 3 } as const;
export const NOTE_CAUSE = { spins: 1, rules: 2, funding: 3 } as const;
export const NOTE_STATUS = { PAID: 1, SKIPPED_BUDGET: 2 } as const;

export const COMMUNAL_LIMITS = {
  SPLIT_WHOLE,
  TIER_AMOUNT_MAX: TIER_AMOUNT_MAX_MICROS,
  RECENCY_MAX,
  /** Number of script calls after which the lists of recent players are merged into one. */
  RECENCY_CALLS_MAX: 32,
  /**
   * Maximum number of bytes that follow PLAYER in a player's record, including PLAYER_STATUS. Further shares
   * go to the player's list.
   */
  WAITING_BYTES_MAX: 2048,
  /** Number of shares that are taken off the player's list at a time. */
  WAITING_TAKEN: 16,
  /** Maximum number of shares that may wait for a player. */
  WAITING_MAX: 10_000,
  /**
   * Maximum number of ledger entries that a script call adds if it triggers an event, so that no call blocks
   * the cell for long.
   */
  ENTRIES_MAX: 256,
} as const;
