/**
 * Every packed record, once: what Redis keeps, what a batch and its reply are, what the outbox carries; with the flags,
 * codes and limits in them. `npm run layouts` makes the formats of the scripts (lua/include/layouts) of it, and a test
 * holds them together. Stores of released versions have these bytes: a layout is changed by a migration only.
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

/** A balance stays within ± this, micro-USD: every sum of two amounts is then exact as a double. */
export const MONEY_MAX_MICROS = 9_000_000_000_000_000;
/**
 * The largest net of a partner, of either sign, micro-USD: what a signed 64-bit integer holds with room for a batch.
 * Beyond it the net stays there. It is compared with the funding alone, which is at most MAX_MICROS: a spin that brings
 * the net near this from below is refused long before, and one far below zero leaves all of the funding.
 */
export const NET_MAX_MICROS = 9_000_000_000_000_000_000n;
/** Outcomes that are read at a time at the least. */
export const READ_AHEAD = 16;
/** What a requestId is bound to is compared by so many bytes. */
export const FINGERPRINT_BYTES = 10;

// Of a cell --------------------------------------------------------------------------------------------------------

/** Ledger entries, and their bytes in the outbox, summed since the cell's epoch began. */
export const TOTALS = layout({ entries: u48, bytes: u48 });
export type Totals = RecordOf<typeof TOTALS>;

/** When an entry of the cell was made, and which of that moment it is. */
export const MOMENT = layout({ timeMs: u48, sequence: u16 });

/** The field `last`: the newest ledger entry, and TOTALS up to it. */
export const LAST = layout({ ...MOMENT.members, ...TOTALS.members });

/** The field `booked`: the newest entry that is known to be in the ledger, and TOTALS up to it. */
export const BOOKED = layout({ id, ...TOTALS.members });

/**
 * The field `segments` begins so; behind it the newest entry's id of each closed segment. The segment that follows them is
 * written.
 */
export const SEGMENTS = layout({
  /** Request ids of entries up to this one are released. */
  releasedId: id,
  /** Number of the oldest segment. */
  first: u32,
});

/** An id alone. */
export const ENTRY_ID = layout({ id });

// Of a game --------------------------------------------------------------------------------------------------------

/** The queue of a game; behind it the outcomes from the next index on that were read ahead of the block (u16 each), or none. */
export const GAME = layout({
  /** Index of the next outcome to deal. */
  nextIndex: u48,
  /** Index after the last loaded outcome. */
  queueEnd: u48,
  /** The block that is dealt from. */
  blockFrom: u48,
  blockEnd: u48,
  /** Blocks with at least one outcome left. */
  readyBlocks: u32,
});

// Of a partner -----------------------------------------------------------------------------------------------------

/** The windows of a partner by the minute they are of, with the requests that they counted, and payouts − wagers. */
export const PARTNER = layout({
  spinMinute: u32,
  spins: u32,
  apiMinute: u32,
  apiRequests: u32,
  netMicros: i64,
});

// Of a player and its entries ------------------------------------------------------------------------------------------------------

/** What a spin came to. */
export const CORE = layout({ id, outcomeCode: u16, balanceMicros: money });

/** The same, of an id that is packed. */
export const CORE_OF_ID = layout({ ...CORE.members, id: packedId });

/** What an outcome code pays, in the table of a sheet. */
export const PAYOUT = layout({ micros: money });

/** A player: CORE of its newest entry, the number of its entries (the opening included), when it was made. */
export const PLAYER = layout({ ...CORE.members, entries: u32, createdAtMs: u48 });

/** The same, of a CORE that is packed. */
export const PLAYER_OF_CORE = layout({ core: nested(CORE, 'CORE'), entries: u32, createdAtMs: u48 });

/** Behind PLAYER where its status was ever changed or a share waits for it: PLAYER_FLAGS, number of the change (0: never); then shares. */
export const PLAYER_STATUS = layout({ flags: u8, change: u32 });

/** By their bits. `hasListed`: more shares wait in the player's list. */
export const PLAYER_FLAGS = { isBlocked: 1, hasListed: 2 } as const;

/** What a requestId is bound to: CORE of its entry, and the request's fingerprint; behind it a tail that a replay repeats, or none. */
export const BOUND = layout({ core: nested(CORE, 'CORE'), fingerprint: bytes(FINGERPRINT_BYTES) });

// Entries ----------------------------------------------------------------------------------------------------------

/** A ledger entry in the outbox, in the three parts in which the scripts make it; then the player's name and the requestId. */
export const ENTRY_HEAD = layout({
  /** The code of an EntryDefinition (ledgerEntry.ts). */
  kind: u8,
  gameId: u32,
  wagerMicros: money,
});

export const ENTRY_BODY = layout({
  outcomeIndex: u48,
  /** What the player got: the payout of a spin, the amount of an opening or (of either sign) of an adjustment. */
  creditMicros: money,
  ...CORE.members,
  /** The player's entry before, 0 for the first. */
  previousId: id,
  /** 1 for the player's opening, then 2, 3, … for its spins; an adjustment has that of the entry before it. */
  entryNumber: u32,
});

/** Bytes of `<partner id>:<playerId>`, and of the requestId. */
export const ENTRY_TEXT = layout({ playerLength: u16, requestLength: u16 });
export const ENTRY = layout({ ...ENTRY_HEAD.members, ...ENTRY_BODY.members, ...ENTRY_TEXT.members });

// A batch of spins and its reply (lua/deal.lua) ----------------------------------------------------------------------

/** A batch begins so; partners follow, then the payout tables, games, spins, players and requestIds. */
export const BATCH = layout({
  partners: u16,
  games: u16,
  players: u16,
  requestIds: u16,
  spins: u16,
  /** Bytes of the payout tables. */
  tableBytes: u32,
  /** Where players, then requestIds, begin. */
  listsAt: u32,
  spinsAt: u32,
});

export const BATCH_PARTNER = layout({
  spinLimit: u32,
  apiLimit: u32,
  openingMicros: money,
  /** −1: no bound. */
  fundingMicros: money,
  flags: u8,
  /** Number of its newest move that the caller knows; 0: none. */
  newestMove: u32,
  digitsOfId: text8,
});

export const PARTNER_FLAGS = { enforcesBalance: 1, isSandbox: 2 } as const;
export const BATCH_GAME = layout({
  gameId: u32,
  wagerMicros: money,
  maxPayoutMicros: money,
  /** Where its payouts begin: i64 by outcome code. Games may share theirs. */
  payoutsAt: u32,
  payoutCount: u16,
  /** Tickets of its pool; 0: a slot game, whose queue has no end. */
  poolSize: u32,
  /** In this batch. */
  spins: u16,
  digitsOfId: text8,
});

/** Places count from 1, and 0 is none. It ends as a ledger entry does: ENTRY_TEXT, player, requestId. */
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

/** What a member of a batch asks for. `dealCounted`: a deal that has counted against its window before. */
export const BATCH_KIND = { deal: 1, countSpin: 2, countApi: 3, dealCounted: 4 } as const;
/** `<partner id>:<playerId>` */
export const BATCH_PLAYER = layout({ name: text16 });
export const BATCH_REQUEST = layout({ key: bytes(REQUEST_KEY_BYTES) });

/** A reply begins so; for each partner REPLY_PARTNER, for each spin REPLY_SPIN, then the tails, each with REPLY_TAIL before it. */
export const REPLY = layout({ timeMs: u48 });
/** What the windows had counted before the batch. */
export const REPLY_PARTNER = layout({ spinsUsed: u32, apiUsed: u32 });
export const REPLY_SPIN = layout({ status: u8, core: nested(CORE, 'CORE') });
/** Place of its spin, from 0. */
export const REPLY_TAIL = layout({ place: u16, length: u16 });

// Intents, chosen outcomes, rounds -----------------------------------------------------------------------------------

/** What an intent came to: SPIN_STATUS; CORE of what was booked (lua/include/intents.lua). */
export const INTENT_REPLY = layout({ status: u8, core: nested(CORE, 'CORE') });

/** The outcome that a tester chose, and until when it stands, milliseconds since the epoch. */
export const FORCED = layout({ outcomeCode: u16, untilMs: u48 });
export const FORCED_REPLY = layout({ status: u8, untilMs: u48 });
/** The tail of a spin whose outcome was chosen. That of a communal progressive is longer. */
export const FORCED_TAIL = Buffer.of(1);

/** An open round: index of its shoe, entry of its deal, steps after the deal. */
export const ROUND = layout({ shoeIndex: u48, dealId: id, steps: u16 });
/** `newestId`: the player's newest entry; 0: the player is not known. */
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

// Rotation -----------------------------------------------------------------------------------------------------------

/** A note, in the place of a requestId: the outcomes of its game from its outcome index up to this one (exclusive) are voided. */
export const ROTATION = layout({ toIndex: u48 });
/** What a rotation came to: SPIN_STATUS, its note (0: there was nothing to void), and the voided indices, the last one exclusive. */
export const ROTATE_REPLY = layout({ status: u8, id: packedId, fromIndex: u48, toIndex: u48 });

// Communal progressives ----------------------------------------------------------------------------------------------

/** Where a pot stands: version of its rules, POT_FLAGS, spins counted, budget. */
export const POT_STATE = layout({ version: u32, flags: u8, progress: u48, budgetMicros: money });
/** `remembersPlayers`: from its first enabling on. */
export const POT_FLAGS = { remembersPlayers: 1 } as const;
/** Behind POT_STATE; the tiers follow. */
export const POT_RULES = layout({
  partnerId: u32,
  flags: u8,
  triggerInterval: u32,
  triggerSplit: u16,
  windowMinutes: u16,
  communitySize: u8,
  tiers: u8,
});

/** `returnsToBudget`: the part of an empty community; `paysRemaining`: what a short budget has left. */
export const RULE_FLAGS = { enabled: 1, returnsToBudget: 2, paysRemaining: 4 } as const;
export const TIER = layout({ triggerAtSpins: u32, amountMicros: money, tierName: text16 });

/** What a spin notifies its player of, the tail of its reply; the name of the tier follows. */
export const BONUS_NOTICE = layout({
  eventId: packedId,
  tierLevel: u8,
  /** 1: the spin fired the event, and its balance has the share in it. */
  isTrigger: u8,
  /** Paid in all. */
  paidMicros: money,
  shareMicros: money,
});

/** A share that waits for its player: bytes of the rest, entry of the share; BONUS_NOTICE and the name of the tier follow. */
export const WAITING_SHARE = layout({ length: u16, entryId: id });
/** In the place of a requestId of the entry of a share; 1: its player fired the event. */
export const SHARE_TEXT = layout({ eventId: packedId, isTrigger: u8 });

/** Notes, each in the place of a requestId. What a call changed of a pot: NOTE_CAUSE, its version of the rules or its intent. */
export const STATE_NOTE = layout({
  type: u8,
  cause: u8,
  reference: u48,
  progressBefore: u48,
  progress: u48,
  budgetBeforeMicros: money,
  budgetMicros: money,
});

/** An event; the name of the tier follows. */
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

/** A spin has notified its player of a share. */
export const NOTIFIED_NOTE = layout({ type: u8, shareId: packedId, spinId: id });
export const NOTE_TYPE = { state: 1, event: 2, notified: 3 } as const;
export const NOTE_CAUSE = { spins: 1, rules: 2, funding: 3 } as const;
export const NOTE_STATUS = { PAID: 1, SKIPPED_BUDGET: 2 } as const;

/** Limits of communal progressives. */
export const COMMUNAL_LIMITS = {
  SPLIT_WHOLE,
  TIER_AMOUNT_MAX: TIER_AMOUNT_MAX_MICROS,
  RECENCY_MAX,
  /** Calls after which their list is made one again. */
  RECENCY_CALLS_MAX: 32,
  /** Bytes behind PLAYER, its status included, beyond which shares go to the player's list. */
  WAITING_BYTES_MAX: 2048,
  /** Shares that are taken off the list at a time. */
  WAITING_TAKEN: 16,
  /** Shares that may wait for a player. */
  WAITING_MAX: 10_000,
  /** Ledger entries of a call that fires, at the most: no call holds up the cell for long. */
  ENTRIES_MAX: 256,
} as const;
