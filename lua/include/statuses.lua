-- What a command came to: src/redis/statuses.ts, SPIN_STATUS.
local DEALT, REPLAY, CONFLICT, LIMITED, DENIED = '\0', '\1', '\2', '\3', '\4'
local INSUFFICIENT, FUNDING, EXHAUSTED, NO_BLOCK, COUNTED, OVERFLOW = '\5', '\6', '\7', '\8', '\9', '\10'
local OUTBOX_FULL, CLOSED, BLOCKED, PLAYER_UNKNOWN, DEFERRED, SHORT = '\11', '\12', '\13', '\14', '\15', '\16'
local FULL = '\17'
local ROUND_OPEN, ROUND_MOVED = '\20', '\21'
-- Of a partner that has left the cell: nothing was done, and it did not count.
local AWAY = '\22'
-- The requestId is free here, and the ledger may have it: nothing was done.
local MAY_BE_BOUND = '\23'

-- By what a caller says of a request that may not be dealt unless its requestId is bound: src/redis/statuses.ts, DENY.
local DENIALS = { DENIED, MAY_BE_BOUND }
