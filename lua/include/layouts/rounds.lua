-- Made by `npm run layouts` of src/domain/layouts.ts: change it there.
-- ROUND: shoeIndex u48, dealId u64, steps u16
local ROUND_FORMAT = '<I6I4I4I2'
-- ROUND_DEAL_REPLY: timeMs u48, status u8, core CORE, shoeIndex u48, steps u16, newestId u64
local ROUND_DEAL_REPLY_FORMAT = '<I6Bc18I6I2I4I4'
-- ROUND_ACT_REPLY: timeMs u48, status u8, core CORE, newestId u64
local ROUND_ACT_REPLY_FORMAT = '<I6Bc18I4I4'
