-- Refuses a command of a partner that has moved to another cell, is about to move, or has moved more often
-- than the caller knows. Needs `awayPartner`, the partner's id.
--
-- Errors   AWAY: nothing was done. A repetition of the call fails, too, as long as the partner is away or the
--          caller does not know of its newest move.
-- include: away
if away and isTurnedAway(away, awayPartner, tonumber(ARGV[#ARGV - 3])) then
  return redis.error_reply('AWAY the partner has left the cell, or has come back to it')
end
