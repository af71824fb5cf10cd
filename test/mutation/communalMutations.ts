/**
 * Deliberate faults of communal progressives that the audit must find. The flush detects some of them at
 * once, so in these cases its check is disabled as well.
 */
import { built, lua, type Mutation } from './mutant.js';

const communal = (find: string, replace: string) => lua('include/communal', find, replace);

export const COMMUNAL_MUTATIONS: readonly Mutation[] = [
  {
    name: 'a replay advances a communal progressive',
    faults: [
      communal(
        '  bonus = {',
        '  bonus = { advance = function(game) local pot = pots[game] if pot then pot.progress = pot.progress + 1 end end,',
      ),
      lua(
        'deal',
        'status, core, tail = REPLAY,',
        'if bonus and outboxEntries > 0 then bonus.advance(game) end; status, core, tail = REPLAY,',
      ),
    ],
    found: ['communal'],
  },
  {
    name: 'a share is paid twice',
    faults: [
      communal(
        '        if i > 1 then\n',
        `        if i == 2 then
          entryNumbers[player] = entryNumbers[player] + 1
          bookEntry(player, head, 0, share, 0, balances[player] + share,
            pack('<I2I2', #name, 9) .. name .. eventId .. char(0))
        end
        if i > 1 then
`,
      ),
    ],
    found: ['communal'],
  },
  {
    name: 'the remainder of a division is lost',
    faults: [communal('local share = i <= leftOver and each + 1 or each', 'local share = each')],
    found: ['communal'],
  },
  {
    name: 'a firing is off by one',
    faults: [
      lua('include/communalRecords', 'local count = pot.progress + 1', 'local count = pot.progress + 2'),
    ],
    found: ['communal'],
  },
  {
    name: 'a winner who was told is told again',
    faults: [
      communal('local left = sub(tail, at + 2 + length)', 'local left = sub(tail, at)'),
      built(
        'engine/communal/communalFlush.store.js',
        'if (rows.length !== notified.length)',
        'if (rows.length < 0)',
      ),
    ],
    found: ['communal'],
  },
  {
    name: 'a winner who was told is told again, and the ledger minds',
    faults: [communal('local left = sub(tail, at + 2 + length)', 'local left = sub(tail, at)')],
    found: ['cursors'],
  },
  {
    name: 'a budget forgets what it paid',
    faults: [
      communal('pot.budget = pot.budget - paid', ''),
      built('engine/communal/communalFlush.store.js', 'if (paid !== 0n)', 'if (paid < 0n)'),
    ],
    found: ['communal'],
  },
  {
    name: 'a budget forgets what it paid, and the ledger minds',
    faults: [communal('pot.budget = pot.budget - paid', '')],
    found: ['cursors'],
  },
  {
    name: 'the community has the least recent players',
    faults: [
      communal('0, -1), pot.communitySize + 1)', '0, -1), RECENCY_MAX)'),
      communal(
        'others[i - 1] = names[i]',
        'if #names - i < pot.communitySize then others[#others + 1] = names[i] end',
      ),
    ],
    found: ['communal'],
  },
  {
    name: 'a rebuild forgets whom a share is to be told',
    faults: [
      built('engine/recovery/fill.js', 'untold.get(field) ?? [], mayHaveListed);', '[], mayHaveListed);'),
    ],
    found: ['communal'],
    isWiped: true,
  },
  {
    name: 'a rebuild begins a counter anew',
    faults: [built('engine/recovery/fill.js', 'filler.pot(pot)', 'filler.pot({ ...pot, progress: 0 })')],
    found: ['communal'],
    isWiped: true,
  },
];
