-- Refuses whoever is not the owner that has claimed the cell (claimCell.lua): a later owner has come, or Redis has lost what it
-- held. Every script that writes on behalf of an owner has this. Expects KEYS[1], {cN}:cell, and `fence`, the caller's.
--
-- Errors   FENCED <fence>: the cell is claimed by another fence, or none; nothing was done.
local claimedBy = call('HGET', KEYS[1], 'fence')
if claimedBy ~= fence then
  return redis.error_reply('FENCED ' .. (claimedBy or 'none'))
end
