-- The packed records that more than one operation reads or writes. Little endian.
-- The readers outside Lua are src/redis/records.ts; change both together (test/cells/scripts.test.ts holds them together).
--
-- GAME     next outcome index u48, end of the queue u48, current block from u48, its end u48, ready blocks u32;
--          behind it the outcomes from the next index on that were read ahead of the block (u16 each, 16 at most), or none
-- PARTNER  spin window's minute u32, its count u32, API window's minute u32, its count u32,
--          net paid to players i64 (payouts - wagers, micro-USD)
-- CORE     ledger entry id as low u32 and high u32, outcome code u16, balance after i64 (micro-USD)
-- PLAYER   CORE of the newest entry, number of entries u32, created at u48 (ms since the epoch);
--          behind it, where the player's status was ever changed or a share is still to be told: flags u8 (1 blocked,
--          2 more shares are in its list), number of the change u32 (0: never), shares (include/communalRecords.lua)
-- BOUND    CORE of the entry that a requestId is bound to, fingerprint of its request (10 bytes; src/redis/records.ts has
--          that of an adjustment); behind it a tail of any length that a replay repeats, or none
-- REFUSED  in the place of BOUND: why an adjustment was refused u8, number of its intent u48
-- TOTALS   ledger entries u48 and their bytes u48, summed since the cell's epoch began
-- LAST     ms u48 and sequence u16 of the newest ledger entry, TOTALS up to it (version 1.0.0 ended before them: zeros)
-- BOOKED   id u64 of the newest entry that is known to be in the ledger, TOTALS up to it
-- SEGMENTS id of the entry up to which request ids are released, as low u32 and high u32, number of the oldest segment u32;
--          behind it the newest entry's id of each closed segment, likewise: the segment that follows them is written
-- include: library
local GAME_FORMAT = '<I6I6I6I6I4'
local GAME_BYTES = 28
local PARTNER_FORMAT = '<I4I4I4I4i8'
local CORE_BYTES = 18
local NO_CORE = rep('\0', CORE_BYTES)
local PLAYER_FORMAT = '<I4I4I2i8I4I6'
local PLAYER_BYTES = 28
local PLAYER_STATUS_FORMAT, PLAYER_STATUS_BYTES = '<BI4', 5
local BOUND_BYTES = 28
local REFUSED_FORMAT = '<BI6'
local REFUSED_BYTES = 7
local TOTALS_FORMAT = '<I6I6'
local LAST_FORMAT = '<I6I2I6I6'
local SEGMENTS_FORMAT = '<I4I4I4'
local SEGMENTS_BYTES = 12
-- A balance stays within ± this, micro-USD: every sum of two amounts is then exact as a double.
local MONEY_MAX = 9e15
