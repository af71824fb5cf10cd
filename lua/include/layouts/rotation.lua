-- Made by `npm run layouts` of src/domain/layouts.ts: change it there.
-- ROTATION: toIndex u48
local ROTATION_FORMAT = '<I6'
-- ROTATE_REPLY: status u8, id u64, fromIndex u48, toIndex u48
local ROTATE_REPLY_FORMAT = '<Bc8I6I6'
