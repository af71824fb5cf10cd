-- The outbox: the ledger entries of this call, the totals before these entries, and whether the outbox is
-- full (`isOutboxFull`). `bookedKeys` collects the keys of the requestIds of a batch's dealt spins, in order.
-- include: entryIds
-- include: layouts/entries
local outboxRecords, outboxPieces, outboxEntries = {}, 0, 0
local bookedKeys, bookedKeyCount = {}, 0
local totalEntries, totalBytes, bookedEntries, bookedBytes = 0, 0, 0, 0
if last then
  totalEntries, totalBytes = unpackStruct(TOTALS_FORMAT, last, LAST_ENTRIES_AT)
end
if booked then
  bookedEntries, bookedBytes = unpackStruct(TOTALS_FORMAT, booked, BOOKED_ENTRIES_AT)
end
local isOutboxFull =
  totalEntries - bookedEntries >= tonumber(ARGV[4]) or totalBytes - bookedBytes >= tonumber(ARGV[5])
