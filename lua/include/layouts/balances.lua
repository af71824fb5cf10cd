-- Made by `npm run layouts` of src/domain/layouts.ts: change it there.
-- BALANCE_REPLY: status u8, balanceMicros i64
local BALANCE_REPLY_FORMAT = '<Bi8'
