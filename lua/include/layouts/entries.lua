-- Made by `npm run layouts` of src/domain/layouts.ts: change it there.
-- ENTRY_HEAD: kind u8, gameId u32, wagerMicros i64
local ENTRY_HEAD_FORMAT = '<BI4i8'
local ENTRY_HEAD_BYTES = 13
-- ENTRY_BODY: outcomeIndex u48, creditMicros i64, id u64, outcomeCode u16, balanceMicros i64, previousId u64, entryNumber u32
local ENTRY_BODY_FORMAT = '<I6i8I4I4I2i8I4I4I4'
local ENTRY_BODY_ID_AT = 15
-- ENTRY_TEXT: playerLength u16, requestLength u16
local ENTRY_TEXT_FORMAT = '<I2I2'
local ENTRY_BODY_CORE_END = 32
local SPIN_ENTRY = 1
local OPENING_ENTRY = 2
local ADJUSTMENT_ENTRY = 3
local COMMUNAL_SHARE_ENTRY = 4
local COMMUNAL_NOTE_ENTRY = 5
local ROUND_DEAL_ENTRY = 6
local FORCED_SPIN_ENTRY = 9
local ROTATION_ENTRY = 10
