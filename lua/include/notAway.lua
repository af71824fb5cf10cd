-- Refuses a command of a partner that has moved to another cell, is about to move, or has moved more often
-- than the caller knows. Needs `awayPartner`, the partner's id.
--
-- Errors   AWAY: nothing was done. The same call will never succeed in this cell as long as the partner is
--          away or the caller does not know of its newest move.
-- include: away
if away and isTurnedAway(away, awayPartner, tonumber(ARGV[#ARGV - 3])) then
  return redis.error_reply('AWAY the partner has left the cell, or has come back to it')
end
