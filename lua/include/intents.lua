-- Decides an intent (an adjustment, a funding, new rules) once, and says what it came to (INTENT_REPLY). An intent that is done
-- is bound to its requestId. An intent that is refused leaves its number: the cell keeps the highest number that it has
-- refused, and never does an intent with that number or a lower one. So a call that was held in the network does nothing once
-- its intent was refused to another call, however late it arrives. The caller draws a new number for an intent that still
-- stands. Needs `refusedField`, a field of KEYS[1] for each sequence of numbers, and `requestKeys`: one requestId or none.
-- include: layouts/statuses
-- include: layouts/intents
-- include: idempotency
local function intentReply(status, core)
  return pack(INTENT_REPLY_FORMAT, byte(status), core)
end

-- Whether an intent of this number, or a later one, was refused.
local function isLapsed(intent)
  return intent <= tonumber(call('HGET', KEYS[1], refusedField) or 0)
end

-- The reply where an earlier call has decided the intent of this fingerprint, or one like no other; nil: none has.
local function decidedEarlier(intent, fingerprint)
  local boundTo = bound[1]
  if boundTo then
    if sub(boundTo, CORE_BYTES + 1, BOUND_BYTES) == fingerprint then
      return intentReply(DEALT, sub(boundTo, 1, CORE_BYTES))
    end
    return intentReply(CONFLICT, NO_CORE)
  end
  return isLapsed(intent) and intentReply(LAPSED, NO_CORE) or nil
end

-- Refuses an intent, and all that were numbered before it, for good: the only write of its call.
local function refuseIntent(status, intent)
  call('HSET', KEYS[1], refusedField, format('%.0f', intent))
  return intentReply(status, NO_CORE)
end
