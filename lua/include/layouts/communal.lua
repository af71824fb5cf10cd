-- Made by `npm run layouts` of src/domain/layouts.ts: change it there.
-- POT_STATE: version u32, flags u8, progress u48, budgetMicros i64
local POT_STATE_FORMAT = '<I4BI6i8'
local POT_STATE_BYTES = 19
-- POT_RULES: partnerId u32, flags u8, triggerInterval u32, triggerSplit u16, windowMinutes u16, communitySize u8, tiers u8
local POT_RULES_FORMAT = '<I4BI4I2I2BB'
-- TIER: triggerAtSpins u32, amountMicros i64, tierName u16 and as many bytes
local TIER_FORMAT = '<I4i8I2c0'
-- BONUS_NOTICE: eventId u64, tierLevel u8, isTrigger u8, paidMicros i64, shareMicros i64
local BONUS_NOTICE_FORMAT = '<c8BBi8i8'
-- WAITING_SHARE: length u16, entryId u64
local WAITING_SHARE_FORMAT = '<I2I4I4'
-- SHARE_TEXT: eventId u64, isTrigger u8
local SHARE_TEXT_FORMAT = '<c8B'
local SHARE_TEXT_BYTES = 9
-- STATE_NOTE: type u8, cause u8, reference u48, progressBefore u48, progress u48, budgetBeforeMicros i64, budgetMicros i64
local STATE_NOTE_FORMAT = '<BBI6I6I6i8i8'
-- EVENT_NOTE: type u8, eventId u64, version u32, tierLevel u8, status u8, progress u48, amountMicros i64, paidMicros i64, winners u8
local EVENT_NOTE_FORMAT = '<Bc8I4BBI6i8i8B'
local REMEMBERS_PLAYERS = 1
local ENABLED = 1
local RETURNS_TO_BUDGET = 2
local PAYS_REMAINING = 4
local STATE_NOTE = 1
local EVENT_NOTE = 2
local NOTIFIED_NOTE = 3
local BY_SPINS = 1
local BY_RULES = 2
local BY_FUNDING = 3
local PAID = 1
local SKIPPED_BUDGET = 2
local SPLIT_WHOLE = 10000
local TIER_AMOUNT_MAX = 1e12
local RECENCY_MAX = 201
local RECENCY_CALLS_MAX = 32
local WAITING_BYTES_MAX = 2048
local WAITING_TAKEN = 16
local WAITING_MAX = 10000
local ENTRIES_MAX = 256
