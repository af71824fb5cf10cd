--[[
Removes fields of a hash, or whole keys, on behalf of a cell's owner, once it has claimed the cell and while nobody has since.

KEYS[1]  {cN}:cell  hash   fence: that of the owner that has claimed the cell (claimCell.lua)
KEYS[2…] hash whose fields are removed; without fields: keys of the same cell that are removed

ARGV[1]  fence of the caller
ARGV[2…] fields

Reply    how many were there
Errors   FENCED <fence>: the cell is claimed by another fence, or none. Nothing was done.
]]
-- include: library
local fence = ARGV[1]
-- include: ownerFence
if #ARGV > 1 then
  return call('HDEL', KEYS[2], unpack(ARGV, 2))
end
return call('UNLINK', unpack(KEYS, 2))
