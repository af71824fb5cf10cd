-- Refuses whoever is not the owner that has claimed the cell (claimCell.lua): a later owner has come, or Redis has lost what it
-- held. Every script that writes on behalf of an owner has this. Expects KEYS[1], {cN}:cell, and `fence`, the caller's. What is
-- written as a part of a partner's move names the move's step, too, "<fence> <partner id> <step>" (setAway.lua): once the cell has
-- seen a later step, a write that was held in the network, or by a process that was paused, is refused.
--
-- Errors   FENCED <fence>: the cell is claimed by another fence, or none, or has seen a later step; nothing was done.
local ownFence, movedPartner, moveStep = string.match(fence, '^(%d+) (%d+) (%d+)$')
local claimedBy, newestStep = unpack(call('HMGET', KEYS[1], 'fence', 'step:' .. (movedPartner or '')))
if claimedBy ~= (ownFence or fence) or newestStep ~= (moveStep or newestStep) then
  return redis.error_reply('FENCED ' .. (claimedBy or 'none'))
end
