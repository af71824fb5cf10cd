-- The outbox: the ledger entries of this call, the totals before them, and the bound of what may wait (`isOutboxFull`).
-- include: entryIds
local outboxRecords, outboxPieces, outboxEntries = {}, 0, 0
local totalEntries, totalBytes, bookedEntries, bookedBytes = 0, 0, 0, 0
if last and #last > 8 then
  totalEntries, totalBytes = unpackStruct(TOTALS_FORMAT, last, 9)
end
if booked then
  bookedEntries, bookedBytes = unpackStruct(TOTALS_FORMAT, booked, 9)
end
local isOutboxFull =
  totalEntries - bookedEntries >= tonumber(ARGV[4]) or totalBytes - bookedBytes >= tonumber(ARGV[5])
