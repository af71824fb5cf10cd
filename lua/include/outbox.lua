-- The outbox: the ledger entries of this call, the totals before and after them, and the bound of what may wait.
-- include: entryIds
local outboxRecords, outboxPieces, outboxEntries = {}, 0, 0
local totalEntries, totalBytes = 0, 0
local isOutboxFull

local function beginOutbox(last, booked)
  if last and #last > 8 then
    totalEntries, totalBytes = unpackStruct(TOTALS_FORMAT, last, 9)
  end
  local bookedEntries, bookedBytes = 0, 0
  if booked then
    bookedEntries, bookedBytes = unpackStruct(TOTALS_FORMAT, booked, 9)
  end
  isOutboxFull = totalEntries - bookedEntries >= tonumber(ARGV[4]) or totalBytes - bookedBytes >= tonumber(ARGV[5])
end

-- Writes what was booked. It comes first of all writes: it is the only one that Redis itself could refuse (an id that is
-- not the newest).
local function writeOutbox()
  local bytes = concat(outboxRecords)
  call('XADD', KEYS[5], format('%.0f-%d', idMs, idSequence), 'b', bytes, 't',
    pack(TOTALS_FORMAT, totalEntries, totalBytes))
  totalEntries, totalBytes = totalEntries + outboxEntries, totalBytes + #bytes
end

-- LAST after `writeOutbox`.
local function packLast()
  return pack(LAST_FORMAT, idMs, idSequence, totalEntries, totalBytes)
end
