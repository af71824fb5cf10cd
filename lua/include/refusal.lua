-- To inline. What may refuse a movement of a balance, once for every operation that makes one. Expects, besides the outbox:
-- `tail` of the player's record, nil where a blocked player may do this too; `own`, a status of the operation that comes next,
-- or false; `before`, the balance; `debit` and `credit`, 0 or more, the largest that it may come to; `enforces`, no debit above the
-- balance; `funding` of the partner, below 0 where it has no bound, and `net`, what it has paid. Gives `status`, nil: none.
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
