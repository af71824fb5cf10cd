-- For inlining. Decides whether a movement of a balance is refused, with the same rules for every operation.
--
-- Expects  the outbox, and:
--          tail: part of the player's record after PLAYER, or nil if blocked players may make this movement
--          own: status of a check of the operation itself, or false
--          before: balance
--          debit, credit: largest possible amounts, 0 or more
--          enforces: true if a debit above the balance is refused
--          funding: funding of the partner, negative if unlimited
--          net: amount that the partner has paid on balance
-- Gives    status, nil if the movement is allowed
if isBlocked(tail) then
  status = PLAYER_BLOCKED
elseif own then
  status = own
elseif isOutboxFull then
  status = OUTBOX_FULL
elseif enforces and debit > 0 and before < debit then
  status = INSUFFICIENT_BALANCE
elseif funding >= 0 and funding - net < credit then
  status = FUNDING_UNAVAILABLE
elseif before > MONEY_MAX - credit or before < debit - MONEY_MAX then
  status = OVERFLOW
end
