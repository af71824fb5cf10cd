--[[
Removes fields of a hash, or whole keys, on behalf of a cell's owner, if the owner has claimed the cell and no
other has claimed it since.

KEYS[1]  {cN}:cell  hash   fence: fence of the owner that has claimed the cell (claimCell.lua)
KEYS[2…] hash whose fields are removed; if no fields are given, keys of the same cell that are removed

ARGV[1]  fence of the caller
ARGV[2…] fields

Reply    number of removed fields or keys
Errors   FENCED <fence>: the cell is claimed by another fence or by none. Nothing was done.
]]
-- include: library
local fence = ARGV[1]
-- include: ownerFence
if #ARGV > 1 then
  return call('HDEL', KEYS[2], unpack(ARGV, 2))
end
return call('UNLINK', unpack(KEYS, 2))
