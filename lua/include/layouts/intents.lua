-- Made by `npm run layouts` of src/domain/layouts.ts: change it there.
-- INTENT_REPLY: status u8, core CORE
local INTENT_REPLY_FORMAT = '<Bc18'
