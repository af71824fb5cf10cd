-- Refuses a command of a partner that has moved to another cell, or is about to, or has moved more often than the caller knows. Needs
-- `awayPartner`, its id.
--
-- Errors   AWAY: nothing was done here, or ever will be while the partner is away, or the caller's view of it is old.
-- include: away
if away and isTurnedAway(away, awayPartner, tonumber(ARGV[#ARGV - 3])) then
  return redis.error_reply('AWAY the partner has left the cell, or has come back to it')
end
