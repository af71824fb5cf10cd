-- ROUND    an open round: index of its shoe u48, id of its deal's entry as low u32 and high u32, steps after the deal u16
local ROUND_FORMAT = '<I6I4I4I2'
