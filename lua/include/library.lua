-- Short names of the library functions that the operations use. Every call to Redis goes through `call`, every message through `announce`: it
-- writes nothing, so it may come after a write and may fail.
local floor, max, min = math.floor, math.max, math.min
local byte, sub, rep, char = string.byte, string.sub, string.rep, string.char
local format, find, match, concat = string.format, string.find, string.match, table.concat
local pack, unpackStruct = struct.pack, struct.unpack
local call = redis.call
local announce = redis.pcall
-- Whether a flag, which is a power of two, is among flags.
local function hasFlag(flags, flag)
  return flags % (2 * flag) >= flag
end
