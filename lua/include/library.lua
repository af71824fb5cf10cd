-- Short names of the library functions that the scripts use. Scripts send every Redis command through `call`,
-- and publish every announcement through `announce`. No command that can fail may follow a write. An
-- announcement is an exception, because it changes no data.
local floor, max, min = math.floor, math.max, math.min
local byte, sub, rep, char = string.byte, string.sub, string.rep, string.char
local format, find, match, concat = string.format, string.find, string.match, table.concat
local pack, unpackStruct = struct.pack, struct.unpack
local call = redis.call
local announce = redis.pcall
-- True if a flag, which is a power of two, is set in `flags`.
local function hasFlag(flags, flag)
  return flags % (2 * flag) >= flag
end
