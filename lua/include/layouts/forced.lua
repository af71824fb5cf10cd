-- Made by `npm run layouts` of src/domain/layouts.ts: change it there.
-- FORCED: outcomeCode u16, untilMs u48
local FORCED_FORMAT = '<I2I6'
-- FORCED_REPLY: status u8, untilMs u48
local FORCED_REPLY_FORMAT = '<BI6'
local FORCED_TAIL = '\1'
