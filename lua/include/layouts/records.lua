-- Made by `npm run layouts` of src/domain/layouts.ts: change it there.
-- GAME: nextIndex u48, queueEnd u48, blockFrom u48, blockEnd u48, readyBlocks u32
local GAME_FORMAT = '<I6I6I6I6I4'
local GAME_BYTES = 28
-- PARTNER: spinMinute u32, spins u32, apiMinute u32, apiRequests u32, netMicros i64
local PARTNER_FORMAT = '<I4I4I4I4i8'
local CORE_BYTES = 18
-- CORE_OF_ID: id u64, outcomeCode u16, balanceMicros i64
local CORE_OF_ID_FORMAT = '<c8I2i8'
-- PLAYER: id u64, outcomeCode u16, balanceMicros i64, entries u32, createdAtMs u48
local PLAYER_FORMAT = '<I4I4I2i8I4I6'
local PLAYER_BYTES = 28
-- PLAYER_OF_CORE: core CORE, entries u32, createdAtMs u48
local PLAYER_OF_CORE_FORMAT = '<c18I4I6'
-- PLAYER_STATUS: flags u8, change u32
local PLAYER_STATUS_FORMAT = '<BI4'
local PLAYER_STATUS_BYTES = 5
local BOUND_BYTES = 28
-- TOTALS: entries u48, bytes u48
local TOTALS_FORMAT = '<I6I6'
-- MOMENT: timeMs u48, sequence u16
local MOMENT_FORMAT = '<I6I2'
-- LAST: timeMs u48, sequence u16, entries u48, bytes u48
local LAST_FORMAT = '<I6I2I6I6'
local LAST_ENTRIES_AT = 9
local BOOKED_ENTRIES_AT = 9
-- SEGMENTS: releasedId u64, first u32
local SEGMENTS_FORMAT = '<I4I4I4'
local SEGMENTS_BYTES = 12
-- ENTRY_ID: id u64
local ENTRY_ID_FORMAT = '<I4I4'
local ENTRY_ID_BYTES = 8
-- PAYOUT: micros i64
local PAYOUT_FORMAT = '<i8'
local PAYOUT_BYTES = 8
local MONEY_MAX = 9e15
local NET_MAX = 9e18
local READ_AHEAD = 16
local FORMAT_NEWEST = 1
local IS_BLOCKED = 1
local HAS_LISTED = 2
