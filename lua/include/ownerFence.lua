-- Refuses a caller that is not the owner that has claimed the cell (claimCell.lua), because a later owner has
-- claimed it or Redis has lost its data. Every script that writes on behalf of an owner includes this file.
-- Expects KEYS[1], {cN}:cell, and `fence` of the caller.
--
-- A write that belongs to a partner's move also names the step of the move, "<fence> <partner id> <step>"
-- (setAway.lua). It is refused once the cell has seen a later step, because it may have been delayed in the
-- network or by a paused process.
--
-- Errors   FENCED <fence>: the cell is claimed by another fence or by none, or has seen a later step. Nothing
--          was done.
local ownFence, movedPartner, moveStep = string.match(fence, '^(%d+) (%d+) (%d+)$')
local claimedBy, newestStep = unpack(call('HMGET', KEYS[1], 'fence', 'step:' .. (movedPartner or '')))
if claimedBy ~= (ownFence or fence) or newestStep ~= (moveStep or newestStep) then
  return redis.error_reply('FENCED ' .. (claimedBy or 'none'))
end
