-- FORCED   outcome code u16, until when it stands u48 (ms since the epoch)
local FORCED_FORMAT = '<I2I6'
-- The tail of a spin whose outcome was forced (src/redis/records.ts).
local FORCED_TAIL = '\1'
