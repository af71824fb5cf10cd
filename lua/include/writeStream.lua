-- Writes the outbox before all other writes, because this is the only write that Redis could refuse (if the
-- id of the stream entry is not the newest). Gives `newLast`, the new value of the cell's field `last`, which
-- the including script writes.
-- include: outbox
local outboxBytes = concat(outboxRecords)
call('XADD', KEYS[5], format('%.0f-%d', idMs, idSequence), 'b', outboxBytes, 't',
  pack(TOTALS_FORMAT, totalEntries, totalBytes), 'k', concat(bookedKeys))
local newLast = pack(LAST_FORMAT, idMs, idSequence, totalEntries + outboxEntries, totalBytes + #outboxBytes)
