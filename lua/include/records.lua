-- The packed records that more than one operation reads or writes: src/domain/layouts.ts says what they are.
-- include: library
-- include: layouts/records
local NO_CORE = rep('\0', CORE_BYTES)
