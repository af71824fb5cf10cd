-- Refuses a command of a partner that has moved to another cell, or is about to. Needs `awayPartner`, its id.
--
-- Errors   AWAY: nothing was done here, or ever will be while the partner is away.
-- include: cell
if cell[7] and find(cell[7], ';' .. awayPartner .. ';', 1, true) then
  return redis.error_reply('AWAY the partner has left the cell')
end
